"""Which ops torch takes apart before import, and how: torch-mlir's table with our own decompositions on top."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import get_decompositions
from torch._prims_common import compute_elementwise_output_logical_to_physical_perm
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

from pipeline.frontend.replacements import REPLACEMENTS

aten = torch.ops.aten

#: torch's own decompositions that torch-mlir's table leaves out, though its lowering of these ops is missing or wrong.
_TORCHS = (
    aten.addmv.default,
    aten.isfinite.default,
    aten.logaddexp.default,
)


def decomposition_table() -> dict[Any, Callable[..., Any]]:
    """The decompositions by op, as `ExportedProgram.run_decompositions` takes them."""
    table = {**get_decomposition_table(), **get_decompositions(_TORCHS), **REPLACEMENTS}
    table[aten._scaled_dot_product_flash_attention_for_cpu.default] = _attention
    return {op: function for op, function in table.items() if not _is_in_place(op)}


def _is_in_place(op: Any) -> bool:
    """Whether the op is one like `zero_`: functionalization takes those away, a decomposition would hinder it."""
    return isinstance(op, torch._ops.OpOverload) and op._schema.name.endswith("_") and op._schema.is_mutable


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: torch.Tensor | None = None,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """softmax(query @ key.T * scale + mask) @ value: [N, H, L, E], its dims in memory in the order of the query's.

    Gets round a defect of torch: its own decomposition lays the result out as [L, N, H, E] whatever the query's layout,
    so that a view of the result that was right when exported fails (GPT-2 with a batch). Remove when torch._decomp's
    `scaled_dot_product_flash_attention_for_cpu` keeps the layout that the op itself has, `empty_like(query)`.
    """
    output, weights = aten._scaled_dot_product_attention_math.default(
        query,
        key,
        value,
        attn_mask=attn_mask,
        dropout_p=dropout_p,
        is_causal=is_causal,
        dropout_mask=None,
        scale=scale,
        enable_gqa=query.size(1) != key.size(1),
    )
    order, _ = compute_elementwise_output_logical_to_physical_perm(query)
    back = [order.index(dim) for dim in range(4)]
    return output.permute(order).contiguous().permute(back), weights
