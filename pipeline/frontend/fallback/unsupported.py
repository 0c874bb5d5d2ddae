"""Nodes of a functional graph that no part may have, and nodes that belong to no part anyway."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx
from torch._ops import HigherOrderOperator, OpOverload

from pipeline.frontend.decompositions.replacements.factorizations import MOST_ROWS
from pipeline.frontend.importer.graph_reader import has_type

aten = torch.ops.aten

#: The namespaces of the ops that can be lowered.
_NAMESPACES = ("aten", "prims", "prim", "pipeline")

#: What views share with their operands is no work; `_unsafe_view` is a view, too.
_VIEWS = {
    aten.alias.default,
    aten.detach.default,
    aten.expand.default,
    aten.permute.default,
    aten.select.int,
    aten.slice.Tensor,
    aten.split_with_sizes.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.t.default,
    aten.transpose.int,
    aten.unsqueeze.default,
    aten.view.default,
    aten._unsafe_view.default,
    operator.getitem,
}

#: What is taken apart for matrices that are small.
_OF_MATRICES = (
    aten._linalg_det.default,
    aten._linalg_slogdet.default,
    aten._linalg_solve_ex.default,
    aten.cholesky.default,
    aten.cholesky_inverse.default,
    aten.cholesky_solve.default,
    aten.linalg_cholesky_ex.default,
    aten.linalg_inv_ex.default,
    aten.linalg_lu_factor_ex.default,
    aten.linalg_solve_triangular.default,
)


def why_unsupported(node: fx.Node) -> str | None:
    """Why a node cannot be lowered whatever torch-mlir says; None if that has to be tried."""
    target = node.target
    if target in _OF_MATRICES:
        return f"is compiled for square float32 and float64 matrices of up to {MOST_ROWS} rows, which this one is not"
    if isinstance(target, OpOverload) and target.namespace not in _NAMESPACES:
        return "is an op of another library"
    if isinstance(target, HigherOrderOperator) and target.name().startswith("auto_functionalized"):
        return "writes to its operands"
    kinds = {
        _kind(tensor) for value in (node, *node.all_input_nodes) for tensor in _tensors(value) if not has_type(tensor)
    }
    return f"{' and '.join(sorted(kinds))} tensors are not supported" if kinds else None


def is_view(node: fx.Node) -> bool:
    """Whether a node computes nothing."""
    return node.target in _VIEWS


def is_number(node: fx.Node) -> bool:
    """Whether a node gives a number, such as a size, or checks one."""
    if node.op != "call_function" or isinstance(node.target, HigherOrderOperator):
        return False
    value = node.meta.get("val")
    return value is None or isinstance(value, (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool))


def is_dynamic_flag(node: fx.Node) -> bool:
    """Whether a node gives a float or a truth value that differs from call to call, which no part takes."""
    return isinstance(node.meta.get("val"), (torch.SymFloat, torch.SymBool))


def is_random(node: fx.Node) -> bool:
    """Whether a node gives something else each time, or does something besides: their order is that of the model."""
    if isinstance(node.target, OpOverload):
        return torch.Tag.nondeterministic_seeded in node.target.tags or node.target.namespace not in _NAMESPACES
    return isinstance(node.target, HigherOrderOperator)


def _tensors(node: fx.Node) -> Iterator[torch.Tensor]:
    value: Any = node.meta.get("val")
    for result in value if isinstance(value, (tuple, list)) else [value]:
        if isinstance(result, torch.Tensor):
            yield result


def _kind(tensor: torch.Tensor) -> str:
    return str(tensor.dtype if tensor.layout == torch.strided else tensor.layout).removeprefix("torch.")
