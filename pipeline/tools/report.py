"""pipeline-report: compares two reports. It imports neither torch nor MLIR."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline.errors import PipelineError
from pipeline.report.comparison import compare
from pipeline.report.page import comparison_page, read, write_page
from pipeline.tools.command_line import DriverParser, exit_code

_DESCRIPTION = """Compares two reports that `exe.report(FILE)` and `--report=FILE` wrote: which kernels appeared, went,
got faster or slower."""

_EPILOG = """examples:
  pipeline-run resnet.py --report=f32.html
  pipeline-run resnet.py --precision=bf16 --report=bf16.html
  pipeline-report diff f32.html bf16.html -o precision.html"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the driver; returns the exit code, 0 or 1."""
    arguments = _parser().parse_args(sys.argv[1:] if argv is None else argv)
    return exit_code("pipeline-report", lambda: _diff(arguments))


def _parser() -> DriverParser:
    parser = DriverParser(
        prog="pipeline-report",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    diff = commands.add_parser("diff", help="write a page that compares two reports", allow_abbrev=False)
    diff.add_argument("before", metavar="A.html", help="a report")
    diff.add_argument("after", metavar="B.html", help="another report")
    diff.add_argument("-o", dest="output", required=True, metavar="FILE", help="where the page goes")
    return parser


def _diff(arguments: argparse.Namespace) -> None:
    if Path(arguments.output).resolve() in {Path(arguments.before).resolve(), Path(arguments.after).resolve()}:
        raise PipelineError(f"-o {arguments.output}: is one of the reports to compare")
    names = (Path(arguments.before).stem, Path(arguments.after).stem)
    comparison = compare(read(arguments.before), read(arguments.after), names)
    write_page(arguments.output, comparison_page(f"{names[0]} → {names[1]} · pipeline", comparison))
    changes = [row["change"] for row in comparison["kernels"]]
    counts = ", ".join(f"{changes.count(change)} {change}" for change in dict.fromkeys(changes))
    sys.stdout.write(f"kernels: {counts or 'none'}\n")


if __name__ == "__main__":
    sys.exit(main())
