"""What pipeline-run does with a model: compiles it; to compare, with fusion and without, or in two precisions."""

from __future__ import annotations

import argparse
from typing import Any

from pipeline.fusion_rules.rules import load_rules
from pipeline.options import PRECISIONS
from pipeline.runtime.executable import Executable
from pipeline.tools.model_file import load_model, takes_inputs


def compile_forms(arguments: argparse.Namespace) -> tuple[dict[str, Executable], tuple[Any, Any] | None]:
    """The model as one executable or, to compare, as two; and its example arguments, if any.

    The two are `fused` and `unfused`, where each op is a kernel of its own, by a table of fusion rules in which nothing
    joins anything; or `f32` and `bf16`.
    """
    from pipeline.compiler import compile
    from pipeline.tools.compile import quietly

    inputs = arguments.input if takes_inputs(arguments.artifact) else ()
    model = load_model(arguments.artifact, inputs)
    table, precision = arguments.fusion_rules, arguments.precision
    options: dict[str, dict[str, Any]] = {arguments.artifact: {"fusion_rules": table, "precision": precision}}
    if arguments.compare_unfused:
        apart = load_rules(table or "cpu").apart()
        options = {
            "fused": {"fusion_rules": table, "precision": precision},
            "unfused": {"fusion_rules": apart, "precision": precision},
        }
    elif arguments.compare_precision:
        options = {name: {"fusion_rules": table, "precision": name} for name in PRECISIONS}
    forms = {
        name: quietly(
            compile,
            model.model,
            model.args,
            model.kwargs,
            dynamic_shapes=model.dynamic_shapes,
            disable=arguments.disable,
            tune=arguments.tune,
            **own,
        )
        for name, own in options.items()
    }
    return forms, None if model.args is None else (model.args, dict(model.kwargs or {}))
