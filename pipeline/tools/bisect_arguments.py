"""The command line of pipeline-bisect."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pipeline.options import ACTIVATIONS, CAPTURE_MODES, PRECISIONS, WEIGHTS, WINOGRAD_TILES
from pipeline.tools.command_line import DriverParser, count
from pipeline.tools.compile_arguments import by_stage

_DESCRIPTION = """Finds the pass that first changes what a model computes, beyond rounding, or that crashes: interprets
the program after each pass, runs the code that comes out, and reduces the program to the ops that the pass goes wrong
on."""

_EPILOG = """the model:
  What pipeline-compile takes: FILE.py[:factory], model.pt2, model.jit or FILE.mlir. It is run on the arrays and numbers
  of --input, else on its example arguments; where it has none, on numbers drawn at random.

what comes out:
  What was found, on stdout: the pass, the kernel and its ops with their source lines, both results, and the command of
  pipeline-opt that replays the pass. In the folder: reduced.mlir, and as .npy files its arguments and both results. The
  exit code is 0 if nothing is wrong, 2 if something is, 1 for errors.

examples:
  pipeline-bisect resnet.py
  pipeline-bisect resnet.py --passes=fused=my-pass --load-plugin=my_pass.py -o found
  pipeline-bisect detector.jit --input=sound.npy --input=rate=16000
  pipeline-bisect softmax.mlir --input=x.npy --target=vulkan
  pipeline-bisect resnet.py --slower"""


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The options, checked as far as the command line goes; `passes` maps stages to pipelines."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    arguments.passes = by_stage(parser, arguments.passes)
    return arguments


def _parser() -> DriverParser:
    parser = DriverParser(
        prog="pipeline-bisect",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help="FILE.py[:factory], or a file with a model, see below")
    parser.add_argument(
        "--input", action="append", default=[], metavar="[NAME=]FILE", help="an argument, a .npy file or a number"
    )
    parser.add_argument(
        "-o", dest="output", default="bisected", metavar="DIR", help="where what is found goes (default: bisected)"
    )
    parser.add_argument(
        "--slower", action="store_true", help="find the pass without which the code is faster, not one that is wrong"
    )
    parser.add_argument("--quiet", action="store_true", help="do not say on stderr what is being done")
    how = parser.add_argument_group("how it is compiled, as in pipeline-compile")
    how.add_argument("--target", default="cpu")
    how.add_argument("--cpu", default="native", metavar="NAME")
    how.add_argument("--capture", choices=CAPTURE_MODES, default="export")
    how.add_argument("--precision", choices=PRECISIONS, default="f32")
    how.add_argument("--weights", choices=WEIGHTS, default="f32")
    how.add_argument("--group", type=count(2), metavar="N")
    how.add_argument("--zero-points", action="store_true")
    how.add_argument("--activations", choices=ACTIVATIONS, default="f32")
    how.add_argument("--keep", action="append", default=[], metavar="PATTERN")
    how.add_argument("--winograd", type=int, choices=WINOGRAD_TILES, default=2)
    how.add_argument("--disable", action="append", default=[], metavar="PASS")
    how.add_argument("--passes", action="append", default=[], metavar="STAGE=PIPELINE")
    how.add_argument("--load-plugin", action="append", default=[], metavar="FILE")
    how.add_argument("--num-threads", type=count(1), metavar="N")
    how.add_argument("--fusion-rules", metavar="TABLE")
    return parser
