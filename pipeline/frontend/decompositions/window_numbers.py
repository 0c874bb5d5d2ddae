"""One number for all axes of a window, as in `F.max_pool2d(x, [3])`: eager takes it for each of them.

torch-mlir looks for the others behind the end of the list, and most often ends the process there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten

#: What slides windows over planes or volumes, and over how many axes; convolutions do over those of their weight.
_POOLS = {
    aten.avg_pool2d.default: 2,
    aten.avg_pool3d.default: 3,
    aten.max_pool2d_with_indices.default: 2,
    aten.max_pool3d_with_indices.default: 3,
}
_CONVOLUTIONS = (aten.convolution.default, aten.convolution_backward.default)

_OF_WINDOWS = ("kernel_size", "stride", "padding", "dilation", "output_padding")


def number_each_axis(table: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """The table of decompositions, with a number for each axis of a window, and otherwise what the table did."""
    return table | {op: _numbering(op, table.get(op)) for op in (*_POOLS, *_CONVOLUTIONS)}


def _numbering(op: Any, otherwise: Callable[..., Any] | None) -> Callable[..., Any]:
    """max_pool2d(x, [3]) → max_pool2d(x, [3, 3])."""
    names = [argument.name for argument in op._schema.arguments]

    def decomposed(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(names, args, strict=False)) | kwargs
        axes = _POOLS[op] if op in _POOLS else given["weight"].dim() - 2
        alone = {name: given[name] for name in _OF_WINDOWS if axes > 1 and len(given.get(name, ())) == 1}
        if alone:
            return op(**given | {name: [*numbers] * axes for name, numbers in alone.items()})
        return NotImplemented if otherwise is None else otherwise(*args, **kwargs)

    return decomposed
