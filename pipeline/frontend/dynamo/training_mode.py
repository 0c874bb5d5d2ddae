"""Whether a graph is one of training: then forward keeps activations for backward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import fx
from torch._dynamo.source import ChainedSource
from torch._dynamo.symbolic_convert import InstructionTranslator


def is_training(graph: fx.GraphModule) -> bool:
    """Whether a module in training mode has a weight that dynamo's graph takes; or no module has any of its inputs.

    A model in evaluation mode that is called without torch.no_grad() is not likely to be asked for gradients.
    """
    modes = [module.training for node in graph.graph.find_nodes(op="placeholder") for module in _modules(node)]
    return any(modes) or not modes


def _modules(node: fx.Node) -> Iterator[torch.nn.Module]:
    """The innermost module that a placeholder is a parameter or a buffer of, if any is."""
    source = getattr(node, "_dynamo_source", None)
    while isinstance(source, ChainedSource):
        source = source.base
        value = _value_of(source)
        if isinstance(value, torch.nn.Module):
            yield value
            return


def _value_of(source: Any) -> Any:
    """What dynamo takes from a source in the call that it compiles for; None where it cannot be told."""
    output = InstructionTranslator.current_tx().output
    try:
        return eval(source.name, {"L": output.local_scope, "G": output.global_scope})
    except Exception:  # a source that is no expression of these two
        return None
