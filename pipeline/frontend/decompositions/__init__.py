"""Which ops torch's programs are taken apart to: torch's own tables, and ours where torch has none or a worse one."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch._decomp import get_decompositions
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

from pipeline.frontend.complex_numbers import on_parts
from pipeline.frontend.decompositions import affine, grouped_products, quantized
from pipeline.frontend.decompositions.attention import attention, flash_attention
from pipeline.frontend.decompositions.convolutions import convolution
from pipeline.frontend.decompositions.integer_operands import in_their_common_type
from pipeline.frontend.decompositions.low_precision import compute_in_float32, factors_in_float32
from pipeline.frontend.decompositions.norms import instance_norm, native_group_norm, rms_norm
from pipeline.frontend.decompositions.numbers_alone import tensors_of_numbers_alone
from pipeline.frontend.decompositions.random_op import draws_numbers
from pipeline.frontend.decompositions.rank_zero import give_a_dim
from pipeline.frontend.decompositions.replacements import REPLACEMENTS
from pipeline.frontend.decompositions.required_sizes import require_sizes
from pipeline.frontend.decompositions.transformer_layers import (
    masked_softmax,
    multi_head_attention,
    transformer_encoder_layer,
)
from pipeline.frontend.decompositions.window_numbers import number_each_axis
from pipeline.frontend.float8 import on_codes
from pipeline.frontend.gradients.attention import flash_attention_backward
from pipeline.frontend.gradients.convolutions import convolution_backward
from pipeline.frontend.gradients.embedding_bags import embedding_bag_backward, per_sample_weights_backward
from pipeline.frontend.gradients.foreach import fma, for_each
from pipeline.frontend.gradients.grid_samples import grid_sampler_backward
from pipeline.frontend.gradients.weight_norms import weight_norm_backward
from pipeline.frontend.recurrent import LINEAR_ATTENTION, RECURRENT

aten = torch.ops.aten

#: Views that are taken apart to copies; what as_strided reads of one lies in memory that a copy has not.
COPIED_VIEWS = (aten.as_strided.default, aten.unfold.default)

#: torch's own decompositions that torch-mlir's table leaves out, though its lowering of these ops is missing or wrong.
_TORCHS = (
    aten.addmv.default,
    aten.logaddexp.default,
    aten.logaddexp2.default,
    aten.mish_backward.default,
    aten.rrelu_with_noise_backward.default,
    aten.silu_backward.default,
)


def decomposition_table(random: str = "philox") -> Mapping[Any, Callable[..., Any]]:
    """The decompositions by op, as `ExportedProgram.run_decompositions` takes them; the same object each time.

    It has quantized ops, and those of transformers, once somebody has loaded them. With `random="eager"` ops that draw
    numbers stay whole.
    """
    return _table(quantized.is_loaded(), affine.is_loaded(), grouped_products.is_loaded(), random)


@functools.cache
def _table(
    with_quantized: bool, with_affine: bool, with_experts: bool, random: str
) -> Mapping[Any, Callable[..., Any]]:
    table = {
        **get_decomposition_table(),
        **get_decompositions(_TORCHS),
        **for_each(),
        **REPLACEMENTS,
        **RECURRENT,
        **LINEAR_ATTENTION,
    }
    if with_quantized:
        table.update(quantized.decompositions())
    if with_affine:
        table.update(affine.decompositions())
    if with_experts:
        table.update(grouped_products.decompositions())
    table[aten._scaled_dot_product_flash_attention_for_cpu.default] = flash_attention
    table[aten._scaled_dot_product_attention_math.default] = attention
    table[aten.var_mean.correction] = _var_mean
    table[aten._scaled_dot_product_flash_attention_for_cpu_backward.default] = flash_attention_backward
    table[aten._grouped_mm.default] = grouped_products.grouped_mm
    table[torch.ops.prims.fma.default] = fma
    table[aten.convolution.default] = convolution
    table[aten.convolution_backward.default] = convolution_backward
    table[aten._embedding_bag_backward.default] = embedding_bag_backward
    table[aten._embedding_bag_per_sample_weights_backward.default] = per_sample_weights_backward
    table[aten._weight_norm_interface_backward.default] = weight_norm_backward
    table[aten.grid_sampler_2d_backward.default] = grid_sampler_backward
    table[aten.grid_sampler_3d_backward.default] = grid_sampler_backward
    table[aten.native_group_norm.default] = native_group_norm
    table[aten.instance_norm.default] = instance_norm
    table[aten.rms_norm.default] = rms_norm
    table[aten._transformer_encoder_layer_fwd.default] = transformer_encoder_layer
    table[aten._native_multi_head_attention.default] = multi_head_attention
    table[aten._masked_softmax.default] = masked_softmax
    table[aten._weight_int8pack_mm.default] = quantized.int8_product
    if quantized.knows_int4_packing():
        table[aten._weight_int4pack_mm_for_cpu.default] = quantized.int4_product
    table[aten.var.correction] = lambda *args, **kwargs: _var_mean(*args, **kwargs)[0]
    table = in_their_common_type(compute_in_float32(factors_in_float32(table)))
    table = number_each_axis(tensors_of_numbers_alone(require_sizes(on_codes(on_parts(give_a_dim(table))))))
    table = {op: function for op, function in table.items() if not _is_in_place(op)}
    if random == "eager":
        table = {op: function for op, function in table.items() if not draws_numbers(op)}
    return MappingProxyType(table)


def _is_in_place(op: Any) -> bool:
    """Whether the op is one like `zero_`: functionalization takes those away, a decomposition would hinder it."""
    return isinstance(op, torch._ops.OpOverload) and op._schema.is_mutable and op._schema.name.endswith("_")


def _share(total: torch.Tensor, count: Any, correction: float) -> torch.Tensor:
    """total / max(count - correction, 0); NaN for a count of 0, which torch may not know where sizes are symbolic."""
    if isinstance(count, int):
        return total / max(count - correction, 0)
    if correction == 0:
        return total / count
    all_of_them, rest = (torch.full([], number, dtype=total.dtype) for number in (count, count - correction))
    return total / count * (all_of_them / rest.clamp(min=0))


def _var_mean(
    x: torch.Tensor,
    dim: list[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """var_mean(x) -> sum((x - mean(x))**2) / (n - correction), mean(x): two passes, in float32 for 16 bits.

    torch-mlir computes a variance in float64, which is needless work with two passes.
    """
    dims = [d % x.dim() for d in dim] if dim else list(range(x.dim()))
    wide = x.float() if x.dtype.itemsize == 2 else x
    count = math.prod(x.size(d) for d in dims)
    mean = wide.mean(dims, keepdim=True) if dims else wide
    deviation = wide - mean
    squares = deviation * deviation
    total = squares.sum(dims, keepdim=True) if dims else squares
    var = _share(total, count, 1 if correction is None else correction)
    if not keepdim:
        var, mean = (t.reshape([size for d, size in enumerate(x.shape) if d not in dims]) for t in (var, mean))
    return var.to(x.dtype), mean.to(x.dtype)
