"""The command line of pipeline-run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pipeline.options import PRECISIONS
from pipeline.tools.command_line import DriverParser, count
from pipeline.tools.model_file import is_model

_DESCRIPTION = """Runs an artifact that `pipeline-compile` or `Executable.save` wrote, which needs neither PyTorch nor
MLIR; or a model, which it compiles first."""

_EPILOG = """the model:
  What pipeline-compile takes: FILE.py[:factory], model.pt2, model.jit or FILE.mlir. Without --input it runs on its
  example arguments; a TorchScript archive has none.

inputs and outputs:
  Arrays are .npy files, given in order or by name: --input x.npy, --input mask=m.npy. A number that the model takes is
  given as such: --input n=3. What was a constant when the model was compiled is not given. bfloat16 and float8 arrays
  are those of ml_dtypes, or words of as many bytes where the model takes such numbers. Results are called result,
  result[0], result['logits'].

examples:
  pipeline-run resnet.pipeline --input image.npy
  pipeline-run bert.pipeline --input input_ids=ids.npy --input attention_mask=mask.npy --output "result.logits=out.npy"
  pipeline-run resnet.pipeline --input image.npy --benchmark --repeats 50
  pipeline-run timed.pipeline --input image.npy --profile --trace trace.json
  pipeline-run fused.pipeline --input image.npy --benchmark --against other.pipeline
  pipeline-run resnet.py --benchmark --against=eager
  pipeline-run resnet.py --benchmark --compare-unfused
  pipeline-run resnet.py --compare-precision
  pipeline-run gpt.py --sensitivity --group 64 --bound 0.01
  pipeline-run resnet.py --report resnet.html"""


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The options."""
    parser = DriverParser(
        prog="pipeline-run",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("artifact", metavar="ARTIFACT", help="the file to run: an artifact or a model, see below")
    parser.add_argument(
        "--input", action="append", default=[], metavar="[NAME=]FILE", help="an argument, a .npy file or a number"
    )
    parser.add_argument(
        "--output", action="append", default=[], metavar="[NAME=]FILE", help="where a result goes, as .npy"
    )
    parser.add_argument(
        "--load-plugin", action="append", default=[], metavar="FILE", help="Python file with the device of a target"
    )
    parser.add_argument("--benchmark", action="store_true", help="call it many times and print the time of a call")
    parser.add_argument(
        "--num-threads",
        type=count(1),
        metavar="N",
        help="how many threads share the work of a kernel (default: PIPELINE_NUM_THREADS, or as OpenMP says)",
    )
    parser.add_argument(
        "--profile",
        action="store_true",
        help="print where the time of a call goes, kernel by kernel; the artifact must be compiled with --profile",
    )
    parser.add_argument(
        "--trace", metavar="FILE", help="with --profile: write a trace for chrome://tracing or Perfetto, as JSON"
    )
    parser.add_argument(
        "--report",
        metavar="FILE",
        help="write a page that shows what the model became and where the time of a call goes, for a browser",
    )
    parser.add_argument(
        "--against",
        metavar="ARTIFACT|eager",
        help="with --benchmark: another form of the model, called in turn with the first on the same inputs; eager: of "
        "a model, as PyTorch runs it; prints the times of both and the ratio of the medians, fails if the results "
        "differ by more than rounding",
    )
    parser.add_argument(
        "--compare-unfused",
        action="store_true",
        help="with --benchmark and a model: compiles it without fusion as well, each op a kernel; prints both times",
    )
    parser.add_argument(
        "--precision", choices=PRECISIONS, default="f32", help="for a model: as in pipeline-compile (default: f32)"
    )
    parser.add_argument("--tune", type=float, metavar="SECONDS", help="for a model: as in pipeline-compile")
    parser.add_argument(
        "--compare-precision",
        action="store_true",
        help="for a model: compiles it with --precision=bf16 as well; prints how far its results are off, and with "
        "--benchmark both times",
    )
    parser.add_argument(
        "--sensitivity",
        action="store_true",
        help="for a model: prints how far its results are off when one weight alone is rounded to int8, int4 or bf16, "
        "for each weight of a matrix product, the worst first",
    )
    parser.add_argument(
        "--group", type=count(2), metavar="N", help="with --sensitivity: how many weights of a column share a scale"
    )
    parser.add_argument(
        "--bound",
        type=float,
        metavar="ERROR",
        help="with --sensitivity: also prints which weights to keep so that rounding the others costs no more",
    )
    parser.add_argument(
        "--fusion-rules", metavar="TABLE", help="for a model: what becomes one kernel, as in pipeline-compile"
    )
    parser.add_argument("--disable", action="append", default=[], metavar="PASS", help="for a model: leave a pass out")
    parser.add_argument("--repeats", type=count(1), default=10, metavar="N", help="timed calls (default: 10)")
    parser.add_argument(
        "--warmup", type=count(0), default=3, metavar="N", help="calls before those, not timed (default: 3)"
    )
    arguments = parser.parse_args(argv)
    if arguments.trace is not None and not arguments.profile:
        parser.error("--trace: needs --profile")
    if arguments.against is not None and not arguments.benchmark:
        parser.error("--against: needs --benchmark")
    if arguments.compare_unfused and not arguments.benchmark:
        parser.error("--compare-unfused: needs --benchmark")
    if arguments.compare_unfused and arguments.against is not None:
        parser.error("--compare-unfused: cannot be used together with --against")
    if arguments.compare_precision and (arguments.against is not None or arguments.compare_unfused):
        parser.error("--compare-precision: cannot be used together with --against or --compare-unfused")
    if arguments.compare_precision and arguments.precision != "f32":
        parser.error("--compare-precision: compares with f32; leave --precision out")
    if arguments.sensitivity and arguments.precision != "f32":
        parser.error("--sensitivity: compares with f32; leave --precision out")
    for value, option in ((arguments.group, "--group"), (arguments.bound, "--bound")):
        if value is not None and not arguments.sensitivity:
            parser.error(f"{option}: needs --sensitivity")
    if arguments.bound is not None and not arguments.bound > 0:
        parser.error(f"--bound: expected an error above 0, got {arguments.bound:g}")
    arguments.is_model = is_model(arguments.artifact)
    for given, option in (
        (arguments.against == "eager", "--against eager"),
        (arguments.compare_unfused, "--compare-unfused"),
        (arguments.compare_precision, "--compare-precision"),
        (arguments.sensitivity, "--sensitivity"),
        (arguments.precision != "f32", "--precision"),
        (arguments.tune is not None, "--tune"),
        (arguments.fusion_rules, "--fusion-rules"),
        (arguments.disable, "--disable"),
    ):
        if given and not arguments.is_model:
            parser.error(
                f"{option}: needs a model to compile (FILE.py, model.pt2, model.jit, FILE.mlir), not an artifact"
            )
    return arguments
