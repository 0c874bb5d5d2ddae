"""What pipeline-opt says beside the IR: diagnostics, remarks, time and statistics."""

from __future__ import annotations

import argparse
import sys

from pipeline.diagnostics import Diagnostic
from pipeline.errors import CompileError
from pipeline.remarks import Remark
from pipeline.tools import expected, remark_output
from pipeline.tools.source import NamedText, write
from pipeline.tools.timing_report import Statistics, Timing


class Report:
    """Collects over the chunks of the input; warnings are printed at once, errors last."""

    def __init__(self, arguments: argparse.Namespace):
        self.arguments = arguments
        self.timing = Timing()
        self.statistics = Statistics()
        self._remarks: list[Remark] = []
        self._problems: list[str] = []

    def add(self, source: NamedText, found: list[Diagnostic], failure: CompileError | None, made: list[Remark]) -> None:
        """Takes what was said about one chunk: diagnostics, the error that ended it, remarks."""
        made = self._selected(source, made)
        if self.arguments.verify_diagnostics:
            if failure:
                found = [*found, *(failure.diagnostics or [Diagnostic("error", str(failure))])]
            said = [*map(source.diagnostic, found), *map(remark_output.as_diagnostic, made)]
            self._problems += expected.check(source, said)
            return
        self._remarks += made
        for item in map(source.diagnostic, found):
            if item.severity == "error":
                self._problems.append(str(item))
            else:
                print(f"{item.place or source.name}: {item.severity}: {item.message}", file=sys.stderr)
        if failure:
            self._problems.append(_with_place(source, failure))

    def print_measurements(self) -> None:
        """Prints time, statistics and remarks where they were asked for."""
        if self.arguments.mlir_timing:
            sys.stderr.write(self.timing.report())
        if self.arguments.mlir_pass_statistics:
            sys.stderr.write(self.statistics.report())
        if self.arguments.remarks_filter is not None:
            self._print_remarks()

    def print_problems(self) -> int:
        """Prints the errors; returns the exit code."""
        for problem in self._problems:
            print(f"pipeline-opt: error: {problem}", file=sys.stderr)
        return 1 if self._problems else 0

    def _selected(self, source: NamedText, made: list[Remark]) -> list[Remark]:
        """The remarks that were asked for, with the input's name in their positions."""
        if self.arguments.remarks_filter is None:
            return []
        chosen = remark_output.select(made, self.arguments.remarks_filter)
        return [remark_output.renamed(remark, source.named) for remark in chosen]

    def _print_remarks(self) -> None:
        if self.arguments.remark_format == "yaml":
            text = remark_output.as_yaml(self._remarks)
        else:
            text = remark_output.as_text(self._remarks)
        if self.arguments.remarks_output_file:
            write(self.arguments.remarks_output_file, text)
        else:
            sys.stderr.write(text)


def _with_place(source: NamedText, failure: CompileError) -> str:
    """The message of `failure`, led by its position."""
    place = failure.diagnostics[0].place if failure.diagnostics else ""
    prefix = f"{place or source.name}: "
    return source.named(prefix + str(failure).replace(prefix, "", 1))
