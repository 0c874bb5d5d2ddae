"""Strides and dilations of named ops with windows along two dims: MLIR may leave those of one out."""

from __future__ import annotations

from typing import Literal

import numpy as np

from pipeline.mlir import ir


def window_steps(op: ir.Operation, name: Literal["strides", "dilations"]) -> ir.DenseIntElementsAttr:
    """The steps along both dims, which are ones where the op does not say them."""
    if name in op.attributes:
        return ir.DenseIntElementsAttr(op.attributes[name])
    return ir.DenseIntElementsAttr(ir.DenseElementsAttr.get(np.ones(2, np.int64), context=op.context))
