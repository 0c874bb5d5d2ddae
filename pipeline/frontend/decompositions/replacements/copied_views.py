"""Ops that copy what a view shows: `torch.permute_copy` and its like."""

from __future__ import annotations

from typing import Any

from torch.utils import _pytree as pytree

from pipeline.frontend.decompositions.replacements.table import Decomposition, aten, replaces


def _copied(view: Any) -> Decomposition:
    def decomposed(*args: Any, **kwargs: Any) -> Any:
        return pytree.tree_map(lambda part: part.clone(), view(*args, **kwargs))

    decomposed.__doc__ = f"{view}_copy(x) → {view}(x).clone(); of several parts each."
    return decomposed


#: Views of which torch-mlir's table of decompositions has no copy.
_VIEWS = {
    aten.detach_copy.default: aten.detach.default,
    aten.permute_copy.default: aten.permute.default,
    aten.select_copy.int: aten.select.int,
    aten.slice_copy.Tensor: aten.slice.Tensor,
    aten.split_copy.Tensor: aten.split.Tensor,
    aten.unbind_copy.int: aten.unbind.int,
    aten.view_copy.default: aten.reshape.default,
    aten.view_copy.dtype: aten.view.dtype,
}
for _op, _view in _VIEWS.items():
    replaces(_op)(_copied(_view))
