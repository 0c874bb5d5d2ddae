"""Arguments of MLIR that are marked `pipeline.weight`, and whose arrays are given: weights, which calls leave out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pipeline.errors import PipelineError
from pipeline.ir.attributes import ARGUMENT, WEIGHT
from pipeline.ir.rewriting import argument_marks, update_signature
from pipeline.ir.tensor_types import tensor_type
from pipeline.mlir import ir
from pipeline.runtime.call.array_libraries import dtype_and_shape


def marked_weights(main: ir.Operation, given: Mapping[str, Any]) -> dict[int, str]:
    """The names of the arguments of `@main` that are marked, and whose arrays are given, by their numbers.

    Raises `PipelineError` for an array that belongs to no argument, or that has another dtype or shape.
    """
    names = _names(main) if given else {}
    for name in given:
        count = list(names.values()).count(name)
        if count != 1:
            raise PipelineError(
                f'{name} is given: {count} arguments of @main are marked pipeline.weight = "{name}", not 1'
            )
    marked = {number: name for number, name in names.items() if name in given}
    for number, name in marked.items():
        kind = tensor_type(main.regions[0].blocks[0].arguments[number].type)
        dtype, shape = dtype_and_shape(given[name]) if isinstance(given[name], np.ndarray) else ("no NumPy array", ())
        if (dtype, shape) != (kind.dtype, kind.shape):
            raise PipelineError(f"{name}: @main takes {kind.dtype} {list(kind.shape)}, given is {dtype} {list(shape)}")
    return marked


def _names(main: ir.Operation) -> dict[int, str]:
    """What the arguments are marked with, by their numbers."""
    marks = {number: mark[WEIGHT] for number, mark in enumerate(argument_marks(main)) if WEIGHT in mark}
    return {number: mark.value for number, mark in marks.items() if isinstance(mark, ir.StringAttr)}


def move_weights(main: ir.Operation, marked: Mapping[int, str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Puts these arguments behind the others, and says of each what it is; returns the arrays by name."""
    block = main.regions[0].blocks[0]
    number = ir.IntegerType.get_signless(64)
    count = len(block.arguments) - len(marked)
    marks = [ir.DictAttr.get({ARGUMENT: ir.IntegerAttr.get(number, place)}) for place in range(count)]
    for place, name in marked.items():
        moved = block.add_argument(block.arguments[place].type, main.location)
        block.arguments[place].replace_all_uses_with(moved)
        marks.append(ir.DictAttr.get({WEIGHT: ir.StringAttr.get(name)}))
    for place in sorted(marked, reverse=True):
        block.erase_argument(place)
    update_signature(main)
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(marks)
    return {name: given[name] for name in marked.values()}
