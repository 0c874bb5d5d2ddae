"""What pipeline-run does with a model: compiles it; to compare, unfused or in bf16 as well, or has torch run it too."""

from __future__ import annotations

import argparse
from typing import Any

from pipeline.fusion_rules.rules import load_rules
from pipeline.options import PRECISIONS
from pipeline.tools.model_file import load_model, takes_inputs
from pipeline.tools.quiet import quietly

#: What `--against` takes for the model as torch runs it.
EAGER = "eager"


def compile_forms(arguments: argparse.Namespace) -> tuple[dict[str, Any], tuple[Any, Any] | None]:
    """The model as one executable or, to compare, as two; and its example arguments, if any.

    The two are `fused` and `unfused`, where each op is a kernel of its own, by a table of fusion rules in which nothing
    joins anything; or `f32` and `bf16`; or the executable and the model as torch runs it.
    """
    from pipeline.compiler import compile

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
    forms: dict[str, Any] = {
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
    if arguments.against == EAGER:
        from pipeline.tools.eager_form import EagerForm

        forms[EAGER] = quietly(EagerForm, model.model, forms[arguments.artifact])
    return forms, None if model.args is None else (model.args, dict(model.kwargs or {}))
