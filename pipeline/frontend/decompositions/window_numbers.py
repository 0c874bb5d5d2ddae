"""The numbers of windows, one for each axis, and those of convolutions known.

Of one number for all axes, as in `F.max_pool2d(x, [3])`, torch-mlir looks for the others behind the end of the list,
and most often ends the process there. Strides, dilations and groups of convolutions that are not known it refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import SymInt

from pipeline.frontend.numbers.assumed_sizes import require

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

#: What a convolution is compiled for.
_KNOWN = ("stride", "dilation", "output_padding", "groups")


def number_each_axis(table: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """The table of decompositions, with a known number for each axis of a window, and otherwise what the table did."""
    return table | {op: _numbering(op, table.get(op)) for op in (*_POOLS, *_CONVOLUTIONS)}


def _numbering(op: Any, otherwise: Callable[..., Any] | None) -> Callable[..., Any]:
    """max_pool2d(x, [3]) → max_pool2d(x, [3, 3]); convolution(x, stride=[s, s]) → convolution(x, stride=[2, 2])."""
    names = [argument.name for argument in op._schema.arguments]

    def decomposed(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(names, args, strict=False)) | kwargs
        axes = _POOLS[op] if op in _POOLS else given["weight"].dim() - 2
        alone = {name: given[name] for name in _OF_WINDOWS if axes > 1 and len(given.get(name, ())) == 1}
        if alone:
            return op(**given | {name: [*numbers] * axes for name, numbers in alone.items()})
        unknown = {name: given[name] for name in _KNOWN if op in _CONVOLUTIONS and _is_unknown(given[name])}
        if unknown:
            return op(**given | {name: _of_the_example(numbers, op) for name, numbers in unknown.items()})
        return NotImplemented if otherwise is None else otherwise(*args, **kwargs)

    return decomposed


def _is_unknown(numbers: Any) -> bool:
    """Whether one of them is symbolic and has a value in the example."""
    several = numbers if isinstance(numbers, Sequence) else [numbers]
    return any(isinstance(number, SymInt) and number.node.has_hint() for number in several)


def _of_the_example(numbers: Any, op: Any) -> Any:
    """The numbers as in the example, which calls are held to."""
    if isinstance(numbers, Sequence):
        return [_of_the_example(number, op) for number in numbers]
    if not isinstance(numbers, SymInt) or not numbers.node.has_hint():
        return numbers
    known = numbers.node.hint
    require(known, numbers, str(op.overloadpacket))
    require(numbers, known, str(op.overloadpacket))
    return known
