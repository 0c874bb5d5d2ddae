"""The command line of pipeline-compile."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pipeline.options import ACTIVATIONS, CAPTURE_MODES, PASS_STAGES, PRECISIONS, WEIGHTS, WINOGRAD_TILES
from pipeline.tools.command_line import DriverParser, count
from pipeline.tools.model_file import takes_inputs
from pipeline.tools.remark_output import FORMATS

STAGES = ("torch", "linalg", "fused", "kernels", "llvm")

#: What may come out: the IR after a stage, assembly, an object file, a shared library, code for GPUs, an artifact.
EMIT = (*STAGES, "asm", "gpu", "ptx", "obj", "so", "cubin", "spirv", "exe")
BINARY = ("obj", "so", "cubin", "spirv", "exe")
LINKED = ("obj", "so")

#: What only some targets have.
OF_TARGET = {"asm": "cpu", "obj": "cpu", "so": "cpu", "gpu": "cuda or vulkan", "ptx": "cuda", "cubin": "cuda"}
OF_TARGET |= {"spirv": "vulkan"}

_DESCRIPTION = """Compiles a model to an artifact, which `pipeline-run` and `pipeline.load` run without PyTorch or MLIR,
or to any of the forms that it takes on the way there."""

_EPILOG = """the model:
  FILE.py[:factory]  a Python function that takes nothing (`model` by default) and returns
                     (model, args), (model, args, kwargs), or a dict with the keys model, args, kwargs
                     and dynamic_shapes, of which all but the first two may be left out
  model.pt2          an archive that torch.export.save wrote
  model.pt, .jit     an archive that torch.jit.save wrote, compiled for the arguments that --input gives
  model.onnx         an ONNX file, compiled for the shapes that it declares
  FILE.mlir, .mlirbc linalg on tensors, StableHLO or TOSA with a function @main, as text or bytecode

the stages:
  torch              torch dialect, as captured
  linalg             linalg on tensors, as imported
  fused              the ops of each kernel in a fusion.group, inside @main
  kernels            one function a kernel
  gpu                targets cuda and vulkan: what a thread does in each launch
  llvm               LLVM dialect; LLVM IR for cuda
  asm                assembly
  obj, so            an object file or a shared object with the weights, and a C header beside it with functions
                     that run the model on DLPack's tensors, see docs/calling-from-c.md
  ptx, cubin         target cuda: its assembly, machine code
  spirv              target vulkan: a folder with a file a kernel
  exe                an artifact: one file with code and weights that pipeline-run and pipeline.load run

examples:
  pipeline-compile resnet.py -o resnet.pipeline
  pipeline-compile nets.py:tiny --emit=linalg | pipeline-opt --canonicalize
  pipeline-compile nets.py:tiny --emit=linalg --print-pipeline -o tiny.mlir 2> passes.txt
  pipeline-opt tiny.mlir --pass-pipeline="$(cat passes.txt)"     # gives what --emit=llvm gives
  pipeline-compile resnet.py --emit=so --cpu=znver4 -o resnet.so
  pipeline-compile model.pt2 --cpu=x86-64-v3 --dump-dir=dumps --timing -o model.pipeline
  pipeline-compile detector.jit --input=sound.npy --input=rate=16000 -o detector.pipeline
  pipeline-compile softmax.mlir --passes=linalg=my-pass,cse --remarks --emit=kernels"""


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The options, checked as far as the command line goes; `passes` maps stages to pipelines."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.report is not None and arguments.emit != "exe":
        parser.error("--report: is for --emit=exe")
    if arguments.prepacked and arguments.emit not in ("exe", *LINKED):
        parser.error("--prepacked: is for --emit=exe, so and obj")
    if arguments.weights_beside and arguments.emit not in LINKED:
        parser.error("--weights-beside: is for --emit=so and obj")
    if arguments.emit in BINARY and arguments.output == "-":
        parser.error(f"--emit={arguments.emit} is binary: say with -o which file it goes to")
    if arguments.input and not takes_inputs(arguments.model):
        parser.error("--input is for TorchScript archives; other models have example arguments of their own")
    wanted = OF_TARGET.get(arguments.emit)
    if wanted is not None and arguments.target.partition(":")[0] not in wanted:
        parser.error(f"--emit={arguments.emit} is for the target {wanted}, not {arguments.target}")
    arguments.passes = by_stage(parser, arguments.passes)
    return arguments


def by_stage(parser: DriverParser, given: Sequence[str]) -> dict[str, str]:
    """What `--passes` gives, `STAGE=PIPELINE` each, as one pipeline a stage."""
    pipelines: dict[str, str] = {}
    for text in given:
        stage, equals, pipeline = text.partition("=")
        if not equals or stage not in PASS_STAGES:
            parser.error(f"--passes={text}: expected STAGE=PIPELINE, with a stage of {', '.join(PASS_STAGES)}")
        pipelines[stage] = f"{pipelines[stage]},{pipeline}" if stage in pipelines else pipeline
    return pipelines


def _parser() -> DriverParser:
    parser = DriverParser(
        prog="pipeline-compile",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help="FILE.py[:factory], or a file with a model, see below")
    parser.add_argument(
        "-o", dest="output", default="-", metavar="FILE", help="where the outcome goes; - for stdout, the default"
    )
    parser.add_argument(
        "--prepacked",
        action="store_true",
        help="with --emit=exe, so, obj: write what is prepared in place of the weights behind it",
    )
    parser.add_argument(
        "--weights-beside",
        action="store_true",
        help="with --emit=so, obj: the weights in a file of their own, FILE with the suffix .weights, not inside",
    )
    parser.add_argument("--emit", choices=EMIT, default="exe", help="what comes out (default: exe)")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="an example argument of a TorchScript archive, a .npy file or a number",
    )
    how = parser.add_argument_group("how it is compiled")
    how.add_argument(
        "--target", default="cpu", help="what for: cpu, vulkan, cuda:sm_90, one of a plugin (default: cpu)"
    )
    how.add_argument("--cpu", default="native", metavar="NAME", help="native, or a name such as x86-64-v3")
    how.add_argument(
        "--capture", choices=CAPTURE_MODES, default="export", help="how a module is captured (default: export)"
    )
    how.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="f32",
        help="bf16: round the operands of matrix products and convolutions, if the CPU is faster then (default: f32)",
    )
    how.add_argument(
        "--weights",
        choices=WEIGHTS,
        default="f32",
        help="int8, int4: round the weights of matrix products to so many bits, dequantized as read (default: f32)",
    )
    how.add_argument(
        "--group",
        type=count(2),
        metavar="N",
        help="with --weights=int8, int4: how many weights of a column share a scale",
    )
    how.add_argument(
        "--zero-points",
        action="store_true",
        help="with --weights=int8, int4: columns or groups have zero points, too, as weights of one sign need",
    )
    how.add_argument(
        "--activations",
        choices=ACTIVATIONS,
        default="f32",
        help="with --weights=int8, int4: round the data they are multiplied with, too, row by row (default: f32)",
    )
    how.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="PATTERN",
        help="with --weights and --precision: leave weights of that name as they are, as lm_head or layers.0.* say; "
        "may be given several times",
    )
    how.add_argument(
        "--winograd",
        type=int,
        choices=WINOGRAD_TILES,
        default=2,
        help="results of a tile of 3x3 convolutions along each dim; 0: only direct convolutions (default: 2)",
    )
    how.add_argument(
        "--tune",
        type=float,
        metavar="SECONDS",
        help="measure variants of the kernels on this machine for so long, and keep the best; 0: only use what is kept",
    )
    how.add_argument("--disable", action="append", default=[], metavar="PASS", help="leave a pass out")
    how.add_argument(
        "--passes", action="append", default=[], metavar="STAGE=PIPELINE", help="run passes of yours after a stage"
    )
    how.add_argument(
        "--load-plugin",
        action="append",
        default=[],
        metavar="FILE",
        help="Python file with passes, dialects and targets",
    )
    how.add_argument(
        "--num-threads",
        type=count(1),
        metavar="N",
        help="with 1, code without threads; else pipeline-run and pipeline.load say how many (default: as OpenMP says)",
    )
    how.add_argument("--profile", action="store_true", help="code that times its kernels, for pipeline-run --profile")
    how.add_argument(
        "--no-cache", dest="cache", action="store_false", help="neither look in the disk cache nor write to it"
    )
    how.add_argument(
        "--fusion-rules",
        metavar="TABLE",
        help="what becomes one kernel: a YAML file like what pipeline-opt --print-fusion-rules=cpu prints",
    )
    look = parser.add_argument_group("looking at it")
    look.add_argument("--dump-dir", metavar="DIR", help="write each stage there: 00-torch.mlir, 01-linalg.mlir, ...")
    look.add_argument(
        "--print-ir-after",
        action="append",
        default=[],
        choices=STAGES,
        metavar="STAGE",
        help="print the IR after a stage on stderr",
    )
    look.add_argument(
        "--print-pipeline",
        action="store_true",
        help="print on stderr all passes from linalg to llvm, or to gpu, as one pipeline for pipeline-opt",
    )
    look.add_argument(
        "--report",
        metavar="FILE",
        help="write a page that shows what the model became, for a browser; compiles it once more, see docs/report.md",
    )
    look.add_argument("--timing", action="store_true", help="print how long each stage and pass took on stderr")
    look.add_argument(
        "--explain",
        action="store_true",
        help="print on stderr the kernels with their source lines, what is not fused, why, and what would change it",
    )
    look.add_argument("--remarks", action="store_true", help="print what was decided, and why, on stderr")
    look.add_argument(
        "--remarks-filter", metavar="REGEX", help="only those of such passes, kinds or reasons, or 'pass/kind/reason'"
    )
    look.add_argument("--remark-format", choices=FORMATS, default="text", help="how they are printed (default: text)")
    look.add_argument("--remarks-output-file", metavar="FILE", help="where they are printed to instead")
    return parser
