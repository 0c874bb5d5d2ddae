"""Arguments for a call that nobody has given: numbers drawn at random, the same each time."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.runtime.call.numpy_arrays import NumpyArrays
from pipeline.runtime.call.symbolic_sizes import evaluate, names
from pipeline.runtime.interface.pytree import unflatten
from pipeline.runtime.interface.signature import Argument, Signature, TensorType

#: The size of a dimension that may have any, or the least that it may have, if that is more.
_SIZE = 5


def drawn_arguments(signature: Signature) -> tuple[Any, ...]:
    """The positional arguments of a call that a signature takes."""
    random = np.random.default_rng(0)
    ranges = {name: (low, high) for name, low, high in signature.ranges}
    leaves = [_drawn(argument, ranges, random) for argument in signature.arguments]
    args, _ = unflatten(signature.argument_tree, iter(leaves))
    return args


def _drawn(argument: Argument, ranges: dict[str, tuple[int, int]], random: np.random.Generator) -> Any:
    if argument.kind == "constant":
        return argument.value
    if argument.type is None:
        return _size(argument.value, ranges)
    shape = tuple(_size(size, ranges) if isinstance(size, str) else size for size in argument.type.shape)
    return _array(argument.type, shape, random)


def _size(expression: str, ranges: dict[str, tuple[int, int]]) -> int:
    known = {
        name: min(max(_SIZE, ranges.get(name, (0, 0))[0]), ranges.get(name, (0, _SIZE))[1])
        for name in names(expression)
    }
    return evaluate(expression, known)


def _array(kind: TensorType, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    dtype = NumpyArrays.dtypes[kind.dtype]
    if dtype.kind in "iub":
        return random.integers(0, 2, shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)
