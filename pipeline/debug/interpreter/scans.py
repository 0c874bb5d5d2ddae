"""torch-mlir's scans, scatters and sorts, element by element."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from pipeline.debug.interpreter.frame import Frame
from pipeline.debug.interpreter.handlers import interprets
from pipeline.mlir import ir


@interprets("tm_tensor.scan")
def _scan(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    source, out, running = operands
    dim = ir.IntegerAttr(op.attributes["dimension"]).value
    inclusive = ir.BoolAttr(op.attributes["inclusive"]).value
    results = out.copy()
    for at in range(source.shape[dim]):
        line = (slice(None),) * dim + (at,)
        _, (following,) = frame.run(op, 0, [source[line], running])
        results[line] = following if inclusive else running
        running = np.asarray(following)
    return [results, running]


@interprets("tm_tensor.scatter")
def _scatter(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    updates, indices, original = operands
    dims = list(ir.DenseI64ArrayAttr(op.attributes["dimension_map"]))
    result, window = original.copy(), updates.shape[1:]
    for number, row in enumerate(indices):
        offsets = [0] * original.ndim
        for dim, offset in zip(dims, row, strict=True):
            offsets[dim] = int(offset) + (original.shape[dim] if offset < 0 else 0)
        for at in np.ndindex(*window):
            inner = (0,) * (original.ndim - len(at)) + at
            place = tuple(offset + index for offset, index in zip(offsets, inner, strict=True))
            if not all(0 <= index < size for index, size in zip(place, original.shape, strict=True)):
                continue
            _, (new,) = frame.run(op, 0, [np.asarray(updates[(number, *at)]), np.asarray(result[place])])
            result[place] = new
    return [result]


@interprets("tm_tensor.sort")
def _sort(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    dim = ir.IntegerAttr(op.attributes["dimension"]).value
    moved = [np.moveaxis(array, dim, -1) for array in operands]
    results = [array.copy() for array in moved]
    for line in np.ndindex(*moved[0].shape[:-1]):
        columns = [array[line] for array in moved]

        def comes_first(left: int, right: int, columns: list[np.ndarray] = columns) -> bool:
            pairs = [np.asarray(column[index]) for column in columns for index in (left, right)]
            return bool(frame.run(op, 0, pairs)[1][0])

        def compare(left: int, right: int, comes_first: Any = comes_first) -> int:
            return int(comes_first(right, left)) - int(comes_first(left, right))

        order = sorted(range(len(columns[0])), key=functools.cmp_to_key(compare))
        for result, column in zip(results, columns, strict=True):
            result[line] = column[order]
    return [np.moveaxis(result, -1, dim) for result in results]
