"""What pipeline-opt does in its child process: parse, run passes, print, chunk by chunk."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline import remarks
from pipeline.diagnostics import Diagnostic
from pipeline.errors import CompileError, OptionError
from pipeline.mlir import bytecode, context, diagnostic, ir, parse
from pipeline.passmanager import registry
from pipeline.passmanager.options import nearest
from pipeline.passmanager.pass_pipeline import PassPipeline
from pipeline.passmanager.pass_runner import Instrumentation, PipelineStep, describe
from pipeline.tools.isolation import Progress
from pipeline.tools.opt_report import Report
from pipeline.tools.printing import AsmStyle, IRPrinter, When
from pipeline.tools.reproducer import Recipe, write_reproducer
from pipeline.tools.source import SEPARATOR, NamedText, write_bytes


@dataclasses.dataclass
class _Watch(Instrumentation):
    """Tells the parent which pass is running, in case that it never returns."""

    progress: Progress
    chunk: int

    def before(self, step: PipelineStep, op: ir.Operation) -> None:
        self.progress.set(self.chunk, f"pass '{step.pass_.name}' on {describe(op)}")


class Job:
    """One call of the driver."""

    def __init__(self, arguments: argparse.Namespace, recipe: Recipe, progress: Progress):
        self.arguments = arguments
        self.recipe = recipe
        self.progress = progress
        self.report = Report(arguments)

    def run(self, chunks: Sequence[NamedText]) -> int:
        """Does it all; returns the exit code. Raises `OptionError` for what is wrong with the command line."""
        self.progress.set(0, "the pass pipeline")
        for plugin in self.recipe.plugins:
            registry.load_plugin(plugin)
        self._check_names()
        pipeline = PassPipeline.parse(self.recipe.pipeline)
        if self.arguments.dump_pass_pipeline:
            sys.stderr.write(f"{pipeline}\n")
        printed = [self._process(number, chunk, pipeline) for number, chunk in enumerate(chunks)]
        self.report.print_measurements()
        outputs = [output for output in printed if output is not None]
        if outputs:
            write_bytes(self.arguments.output, f"{SEPARATOR}\n".encode().join(outputs))
        return self.report.print_problems()

    def _check_names(self) -> None:
        registry.passes()  # a plugin that cannot be loaded is an error, whatever runs
        for name, _ in self.arguments.passes:
            if not registry.is_pass(name):
                known = [f"--{other}" for other in (*self.arguments.known_options, *registry.all_names())]
                raise OptionError(f"unknown option '--{name}'{nearest(f'--{name}', known)}")
        for name in (*self.arguments.mlir_print_ir_before, *self.arguments.mlir_print_ir_after):
            if not registry.is_pass(name):
                raise registry.unknown_pass(name)

    def _process(self, number: int, source: NamedText, pipeline: PassPipeline) -> bytes | None:
        """The IR that comes out of one chunk, as text or bytecode; None if it fails, which is then reported."""
        found: list[Diagnostic] = []
        failure: CompileError | None = None
        output = None
        with remarks.collect() as made:
            try:
                output = self._compile(number, source, pipeline, found)
            except CompileError as error:
                failure = error
        self.report.add(source, found, failure, made)
        return output

    def _compile(self, number: int, source: NamedText, pipeline: PassPipeline, found: list[Diagnostic]) -> bytes:
        """Parses, runs the passes and prints; what MLIR says without failing is added to `found`."""
        ctx = context()
        ctx.enable_multithreading(not self.arguments.mlir_disable_threading)

        def keep(info: ir.DiagnosticInfo) -> bool:
            found.append(diagnostic(info))
            return True

        with ctx.attach_diagnostic_handler(keep):
            self.progress.set(number, "parsing the input")
            with self.report.timing.phase("Parser"):
                module = self._parse(source, ctx)
            self._run_passes(number, source, pipeline, module)
            self.progress.set(number, "printing")
            with self.report.timing.phase("Output"):
                op = module.operation
                return bytecode(op) if self.arguments.emit_bytecode else self._style(source).text(op).encode()

    def _parse(self, source: NamedText, ctx: ir.Context) -> ir.Module:
        try:
            return parse(source.text, ctx, allow_unregistered=self.arguments.allow_unregistered_dialect)
        except CompileError as error:
            raise CompileError("\n".join(map(str, error.diagnostics)), error.diagnostics) from None

    def _run_passes(self, number: int, source: NamedText, pipeline: PassPipeline, module: ir.Module) -> None:
        if self.arguments.mlir_generate_reproducer:
            write_reproducer(self.arguments.mlir_generate_reproducer, source.text, self._canonical(pipeline))
        watchers = [_Watch(self.progress, number), *self._instrumentation(source)]
        try:
            pipeline.run(module, watchers, verify="each" if self.recipe.verify_each else "never")
        except CompileError:
            if self.arguments.mlir_pass_pipeline_crash_reproducer:
                path = self.arguments.mlir_pass_pipeline_crash_reproducer
                write_reproducer(path, source.text, self._canonical(pipeline))
            raise

    def _canonical(self, pipeline: PassPipeline) -> Recipe:
        """The recipe with the pipeline in full, as mlir-opt wants it."""
        return dataclasses.replace(self.recipe, pipeline=str(pipeline))

    def _instrumentation(self, source: NamedText) -> list[Instrumentation]:
        """What was asked for, from the outermost in: printing is not part of the time of a pass."""
        given = self.arguments
        tree = given.mlir_print_ir_tree_dir
        when = When(
            before=frozenset(given.mlir_print_ir_before),
            after=frozenset(given.mlir_print_ir_after),
            before_all=given.mlir_print_ir_before_all,
            after_all=given.mlir_print_ir_after_all or given.mlir_print_ir_after_change,
            only_changes=given.mlir_print_ir_after_change,
            failures=given.mlir_print_ir_after_failure,
        )
        if tree and not when:
            when = When(after_all=True)
        chosen: list[Instrumentation] = []
        if when:
            chosen.append(IRPrinter(when, self._style(source), Path(tree) if tree else None))
        if given.mlir_pass_statistics:
            chosen.append(self.report.statistics)
        if given.mlir_timing:
            chosen.append(self.report.timing)
        return chosen

    def _style(self, source: NamedText) -> AsmStyle:
        return AsmStyle(
            max_elements=self.arguments.mlir_elide_elementsattrs_if_larger,
            max_resource=self.arguments.mlir_elide_resource_strings_if_larger,
            debug_info=self.arguments.mlir_print_debuginfo,
            pretty_debug_info=self.arguments.mlir_pretty_debuginfo,
            generic=self.arguments.mlir_print_op_generic,
            local_scope=self.arguments.mlir_print_local_scope,
            name=source.named,
        )
