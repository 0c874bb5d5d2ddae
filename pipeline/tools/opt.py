"""pipeline-opt: an mlir-opt in Python, for passes of ours, of plugins and of MLIR.

MLIR may abort() its process. So the driver reads its input, has the work done (`opt_work`) by a forked child, and,
should the child die, says what it was doing and writes a reproducer. The parent never imports MLIR, nothing here
imports torch.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pipeline import logs
from pipeline.errors import PipelineError
from pipeline.fusion_rules.rules import dump, load_rules
from pipeline.installation import require_compiler
from pipeline.tools.command_line import complain
from pipeline.tools.isolation import Crash, Progress, run_isolated
from pipeline.tools.opt_arguments import parse_arguments
from pipeline.tools.reproducer import Recipe, parse_reproducer, write_reproducer
from pipeline.tools.source import NamedText, read, write


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the driver; returns the exit code, 0 or 1."""
    arguments = parse_arguments(sys.argv[1:] if argv is None else argv)
    try:
        logs.set_up()
        require_compiler()
        if arguments.list_passes or arguments.show_dialects:
            outcome = run_isolated(lambda: _list(arguments))
            return _complain(f"{outcome.signal_name}: {outcome.reason}") if isinstance(outcome, Crash) else outcome
        if arguments.print_fusion_rules is not None:
            write(arguments.output, dump(load_rules(arguments.print_fusion_rules)))
            return 0
        source, recipe = _source_and_recipe(arguments)
        return _run(arguments, source, recipe)
    except PipelineError as error:
        return _complain(str(error))


def _source_and_recipe(arguments: argparse.Namespace) -> tuple[NamedText, Recipe]:
    source = read(arguments.input)
    if arguments.run_reproducer:
        source, recipe = parse_reproducer(source)
        return source, Recipe(recipe.pipeline, (*recipe.plugins, *arguments.load_plugin), recipe.verify_each)
    flags = [f"{name}{{{options}}}" if options else name for name, options in arguments.passes]
    text = f"builtin.module({','.join(flags)})" if arguments.pass_pipeline is None else arguments.pass_pipeline
    return source, Recipe(text, tuple(arguments.load_plugin), arguments.verify_each)


def _run(arguments: argparse.Namespace, source: NamedText, recipe: Recipe) -> int:
    chunks = source.split() if arguments.split_input_file else [source]
    progress = Progress()
    outcome = run_isolated(lambda: _work(arguments, chunks, recipe, progress))
    if not isinstance(outcome, Crash):
        return outcome
    reproducer = write_reproducer(arguments.mlir_pass_pipeline_crash_reproducer, chunks[progress.chunk].text, recipe)
    return _complain(f"MLIR died of {outcome.signal_name} at {progress.doing}: {outcome.reason}; see {reproducer}")


def _work(arguments: argparse.Namespace, chunks: Sequence[NamedText], recipe: Recipe, progress: Progress) -> int:
    """The child's part, with its errors said in one line."""
    from pipeline.plugins import one_line

    try:
        from pipeline.tools.opt_work import Job

        return Job(arguments, recipe, progress).run(chunks)
    except PipelineError as error:
        return _complain(str(error))
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:  # a defect of ours, which is no reason to show users a traceback
        return _complain(f"internal error: {one_line(error)}")


def _list(arguments: argparse.Namespace) -> int:
    from pipeline.tools.listing import dialect_listing, pass_listing

    try:
        sys.stdout.write((pass_listing if arguments.list_passes else dialect_listing)(arguments.load_plugin))
    except PipelineError as error:
        return _complain(str(error))
    return 0


def _complain(problem: str) -> int:
    return complain("pipeline-opt", problem)


if __name__ == "__main__":
    sys.exit(main())
