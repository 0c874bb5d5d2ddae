"""Bodies that fold: `out = combine(out, term)`, where NumPy folds a whole axis by `combine`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import defining_op, ir

_COMBINERS = {
    "arith.addf": np.add,
    "arith.mulf": np.multiply,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.addi": np.add,
    "arith.muli": np.multiply,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
}

#: Bools are added up modulo 2.
_COMBINERS_OF_BOOLS = {"arith.addi": np.logical_xor, "arith.muli": np.logical_and}

_PRODUCTS = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli"}


@dataclass(frozen=True)
class Fold:
    """How one output is folded.

    Attributes:
        combine: of what has been folded and the next.
        term: what is folded.
        product: the factors, where that is a product which is read by nothing else.
        skipped: the ops of the body that the fold stands for.
    """

    combine: np.ufunc
    term: ir.Value
    product: tuple[ir.Value, ir.Value] | None
    skipped: tuple[ir.Operation, ...]


def folds_of(view: LinalgOp) -> list[Fold] | None:
    """A fold for each output; None if one of them is folded in another way."""
    folds = []
    for value, output in zip(view.yielded, view.outputs, strict=True):
        fold = _fold(value, view.body.arguments[output], view)
        if fold is None:
            return None
        folds.append(fold)
    return folds


def _fold(value: ir.Value, before: ir.Value, view: LinalgOp) -> Fold | None:
    op = defining_op(value)
    if op is None or op not in view.body_ops or op.name not in _COMBINERS:
        return None
    if len(list(before.uses)) != 1 or len(list(value.uses)) != 1 or before not in list(op.operands):
        return None
    term = op.operands[1] if op.operands[0] == before else op.operands[0]
    is_bool = str(value.type) == "i1"
    combine = _COMBINERS_OF_BOOLS.get(op.name, _COMBINERS[op.name]) if is_bool else _COMBINERS[op.name]
    product = defining_op(term)
    if is_bool or product is None or product not in view.body_ops or product.name != _PRODUCTS.get(op.name):
        return Fold(combine, term, None, (op,))
    if len(list(term.uses)) != 1:
        return Fold(combine, term, None, (op,))
    return Fold(combine, term, (product.operands[0], product.operands[1]), (op, product))
