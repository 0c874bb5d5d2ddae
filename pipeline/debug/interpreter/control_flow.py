"""Branches, loops, calls, groups and checks."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from pipeline.debug.interpreter.frame import FailedCheck, Frame
from pipeline.debug.interpreter.handlers import interprets
from pipeline.debug.interpreter.windows import index_at
from pipeline.mlir import callee, ir


@interprets("func.call")
def _call(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    return frame.interpretation.call(callee(op), operands)


@interprets("fusion.group", "scf.execute_region")
def _region(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    return frame.run(op, 0, operands)[1]


@interprets("scf.if")
def _if(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    region = 0 if operands[0] else 1
    return frame.run(op, region, [])[1] if len(op.regions[region].blocks) else []


@interprets("scf.for")
def _for(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    first, last, step, *carried = operands
    for index in range(int(first), int(last), int(step)):
        _, carried = frame.run(op, 0, [np.asarray(index, first.dtype), *carried])
    return carried


@interprets("scf.while")
def _while(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    carried = operands
    while True:
        _, (goes_on, *carried) = frame.run(op, 0, carried)
        if not goes_on:
            return carried
        _, carried = frame.run(op, 1, carried)


@interprets("scf.index_switch")
def _switch(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    cases = list(ir.DenseI64ArrayAttr(op.attributes["cases"]))
    value = int(operands[0])
    return frame.run(op, cases.index(value) + 1 if value in cases else 0, [])[1]


#: torch-mlir asserts that what is divided by is not zero, even in floats; guard-traps leaves that out, too.
_OF_TORCH_MLIR = "zero element"


@interprets("cf.assert")
def _assert(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    message = ir.StringAttr(op.attributes["msg"]).value
    if not np.all(operands[0]) and _OF_TORCH_MLIR not in message:
        raise FailedCheck(message)
    return []


@interprets("affine.apply", "affine.min", "affine.max")
def _affine(frame: Frame, op: ir.Operation, operands: list[Any]) -> list[Any]:
    indexing = ir.AffineMapAttr(op.attributes["map"]).value
    dims, symbols = operands[: indexing.n_dims], operands[indexing.n_dims :]
    values = [np.asarray(index_at(result, dims, symbols)) for result in indexing.results]
    return [functools.reduce(np.minimum if op.name == "affine.min" else np.maximum, values)]
