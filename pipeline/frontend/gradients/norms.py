"""Norms of 16 bits with gradients: what backward gets of their statistics are float32, as eager's kernels keep them.

torch's own decompositions round them to 16 bits, which the gradients then show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, fx
from torch.utils import _pytree as pytree

aten = torch.ops.aten

Table = Mapping[Any, Callable[..., Any]]

#: By op, the numbers of the operands whose dtypes the results have; None for statistics.
_FORWARD: dict[Any, tuple[int | None, ...]] = {
    aten.native_layer_norm.default: (0, None, None),
    aten.native_group_norm.default: (0, None, None),
    aten._native_batch_norm_legit.no_stats: (0, None, None),
    aten._native_batch_norm_legit_functional.default: (0, None, None, 3, 4),
    aten._native_batch_norm_legit_no_training.default: (0, None, None),
}
_BACKWARD: dict[Any, tuple[int | None, ...]] = {
    aten.native_layer_norm_backward.default: (1, 5, 6),
    aten.native_group_norm_backward.default: (1, 4, 4),
    aten.native_batch_norm_backward.default: (1, 2, 2),
}


def statistics_in_float32(table: Table) -> dict[Any, Callable[..., Any]]:
    """The table of decompositions with those of norms and of their gradients, which differ for 16 bits alone."""
    ops = _FORWARD | _BACKWARD
    return {**table, **{op: _in_float32(op, table[op], operands) for op, operands in ops.items()}}


def _in_float32(op: Any, otherwise: Callable[..., Any], operands: tuple[int | None, ...]) -> Callable[..., Any]:
    """norm(x) → norm(x.float()), its results in the operands' dtypes."""

    def decomposed(*args: Any) -> Any:
        if all(value.dtype.itemsize > 2 for value in args[:2] if isinstance(value, Tensor)):
            return otherwise(*args)
        results = op(*pytree.tree_map_only(Tensor, lambda tensor: tensor.float(), args))
        return tuple(_like(result, args, number) for result, number in zip(results, operands, strict=True))

    return decomposed


def round_results(forward: fx.Graph, first: int, captured: fx.Graph) -> None:
    """Rounds statistics among the results of forward, from number `first` on, to the dtypes that dynamo has captured.

    That are those of eager: `torch.native_layer_norm` returns its statistics.
    """
    output = forward.output_node()
    results = list(output.args[0])
    wanted = pytree.tree_leaves(captured.output_node().args[0])
    for number, (result, original) in enumerate(zip(results[first:], wanted, strict=False), first):
        value, example = (node.meta.get(key) for node, key in ((result, "val"), (original, "example_value")))
        if isinstance(value, Tensor) and isinstance(example, Tensor) and value.dtype != example.dtype:
            with forward.inserting_before(output):
                rounded = forward.call_function(aten._to_copy.default, (result,), {"dtype": example.dtype})
            rounded.meta = {**result.meta, "val": value.to(example.dtype)}
            results[number] = rounded
    output.args = (tuple(results),)


def _like(result: Tensor | None, args: tuple[Any, ...], number: int | None) -> Tensor | None:
    """The result in the dtype of an operand, if there is one."""
    operand = None if number is None else args[number]
    return result if result is None or operand is None else result.to(operand.dtype)
