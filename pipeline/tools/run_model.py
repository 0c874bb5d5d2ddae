"""What pipeline-run does with a model: compiles it, with fusion and without."""

from __future__ import annotations

import argparse
from typing import Any

from pipeline.analysis.fusion_rules import load_rules
from pipeline.runtime.executable import Executable
from pipeline.tools.model_file import load_model


def compile_forms(arguments: argparse.Namespace) -> tuple[dict[str, Executable], tuple[Any, Any] | None]:
    """The model as one executable or, to compare, as two, `fused` and `unfused`; and its example arguments, if any.

    Unfused, each op is a kernel of its own, by a table of fusion rules in which nothing joins anything.
    """
    from pipeline.compiler import compile
    from pipeline.tools.compile import quietly

    model = load_model(arguments.artifact)
    tables: dict[str, Any] = {arguments.artifact: arguments.fusion_rules}
    if arguments.compare_unfused:
        tables = {"fused": arguments.fusion_rules, "unfused": load_rules(arguments.fusion_rules or "cpu").apart()}
    forms = {
        name: quietly(
            compile,
            model.model,
            model.args,
            model.kwargs,
            dynamic_shapes=model.dynamic_shapes,
            disable=arguments.disable,
            fusion_rules=table,
        )
        for name, table in tables.items()
    }
    return forms, None if model.args is None else (model.args, dict(model.kwargs or {}))
