"""pipeline-bisect: the pass that first changes what a model computes, that crashes, or that makes it slower."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from pipeline.installation import require_compiler
from pipeline.tools.bisect_arguments import parse_arguments
from pipeline.tools.command_line import exit_code
from pipeline.tools.example_arguments import example_arguments
from pipeline.tools.model_file import Model, load_model

#: What is returned where something was found.
FOUND = 2

_OPTIONS = (
    "target",
    "cpu",
    "capture",
    "precision",
    "weights",
    "group",
    "zero_points",
    "activations",
    "keep",
    "winograd",
    "disable",
    "passes",
    "num_threads",
    "fusion_rules",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the driver; returns the exit code: 0, 1 for errors, 2 if something was found."""
    arguments = parse_arguments(sys.argv[1:] if argv is None else argv)
    found: list[bool] = []
    code = exit_code("pipeline-bisect", lambda: found.append(_run(arguments)))
    return FOUND if code == 0 and found == [True] else code


def _run(arguments: argparse.Namespace) -> bool:
    """Whether something was found."""
    require_compiler()
    from pipeline.debug.bisection import bisect
    from pipeline.passmanager import registry
    from pipeline.tools.compile import quietly

    for path in arguments.load_plugin:
        registry.load_plugin(path)
    model = _model(arguments)
    stderr = sys.stderr  # `quietly` takes it away

    def say(what: str) -> None:
        if not arguments.quiet:
            print(what, file=stderr, flush=True)

    options = {name: getattr(arguments, name) for name in _OPTIONS}
    finding = quietly(
        bisect,
        model.model,
        model.args,
        model.kwargs,
        model.dynamic_shapes,
        options,
        say=say,
        slower=arguments.slower,
    )
    if finding is None:
        print("nothing is wrong: the code computes what the interpreter does" if not arguments.slower else "no pass is")
        return False
    print(f"{finding}\n  replay: {finding.command(finding.write(arguments.output))}")
    return True


def _model(arguments: argparse.Namespace) -> Model:
    """The model, with what is given in place of its example arguments."""
    model = load_model(arguments.model)
    if not arguments.input:
        return model
    args, kwargs = example_arguments(arguments.input)
    return replace(model, args=args, kwargs=kwargs or None)


if __name__ == "__main__":
    sys.exit(main())
