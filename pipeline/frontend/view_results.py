"""Results of torch.compile's graphs that are views of arguments, at places that are known only as the program runs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

Run = Callable[..., list[Any]]


def with_view_results(module: fx.GraphModule, run: Run) -> Run:
    """`run`, which computes the graph's results, with true views in the place of those that are views of arguments.

    Of these, aot_autograd makes views of the caller's tensors by the sizes, strides and offset of what it is given.
    """
    outputs = _outputs(module.graph)
    numbers = [number for number, node in enumerate(outputs) if _is_symbolic_view(node)]
    if not numbers:
        return run
    with unset_fake_temporarily():
        views = copy.deepcopy(module)
    end = next(node for node in views.graph.nodes if node.op == "output")
    end.args = ([_outputs(views.graph)[number] for number in numbers],)
    views.graph.eliminate_dead_code()
    views.recompile()

    def run_with_views(*args: Any) -> list[Any]:
        results = run(*args)
        for number, view in zip(numbers, views(*args), strict=True):
            results[number] = view
        return results

    return run_with_views


def _outputs(graph: fx.Graph) -> list[Any]:
    return list(next(node for node in graph.nodes if node.op == "output").args[0])


def _is_symbolic_view(node: Any) -> bool:
    """Whether it is an argument seen through views, and a size, a stride or the offset is not known."""
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    if not isinstance(value, torch.Tensor) or node.op == "placeholder":
        return False
    geometry = (*value.shape, *value.stride(), value.storage_offset())
    if not any(isinstance(one, torch.SymInt) for one in geometry):
        return False
    while node.op == "call_function" and _is_view_op(node.target):
        node = node.args[0]
    return bool(node.op == "placeholder")


def _is_view_op(target: Any) -> bool:
    arguments = target._schema.arguments if isinstance(target, torch._ops.OpOverload) else ()
    alias = arguments[0].alias_info if arguments else None
    return alias is not None and not alias.is_write
