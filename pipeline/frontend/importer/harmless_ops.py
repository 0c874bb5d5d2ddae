"""Which programs torch-mlir's passes take without running away or crashing: those need no process of their own.

A child costs a small model a quarter of its compilation, and this process a page fault at each page that it writes
afterwards. What was found to run away or to crash were sizes that are 0, views of unknown sizes, selections by masks,
divisions of integers, and ops that many rewrites take apart; a program without any is lowered in this process, where
the fuzzer would see it crash. `PIPELINE_SUPERVISE=all` has every program supervised.
"""

from __future__ import annotations

import os
import re

from pipeline.mlir import defining_op, ir, ops_of

#: Beyond so many ops a child costs next to nothing, and Ctrl-C should not have to wait for the passes.
_MOST_OPS = 1000

#: Ops whose lowering is one rewrite to a linalg op, to a scan, scatter or sort of tm_tensor's, to a move of elements or
#: to a few of these, by name without the overload behind the dot. All tests of ops lowered them in children, and none
#: of those was lost.
_NAMES = """
aten.abs aten.acos aten.acosh aten.add aten.addmm aten.alias aten.all aten.amax aten.amin aten.any aten.arange
aten.argmax aten.argmin aten.asin aten.asinh aten.atan aten.atan2 aten.atanh aten.avg_pool2d aten.avg_pool3d
aten.bitwise_and aten.bitwise_left_shift aten.bitwise_not aten.bitwise_or aten.bitwise_right_shift aten.bitwise_xor
aten.bmm aten.Bool aten.cat aten.ceil aten.clamp aten.clamp_max aten.clamp_min aten.clone aten.constant_pad_nd
aten.convolution aten.copy aten.cos aten.cosh aten.cumprod aten.cumsum aten.diagonal aten.div aten.elu aten.embedding
aten.empty aten.empty_like aten.eq aten.erf aten.exp aten.exp2 aten.expand aten.expm1 aten.eye aten.flatten aten.flip
aten.Float aten.floor aten.full aten.full_like aten.gather aten.ge aten.gelu aten.gt aten.index_put aten.index_select
aten.Int aten.isinf aten.isnan aten.le aten.leaky_relu aten.linear aten.log aten.log10 aten.log1p aten.log2
aten.logical_and aten.logical_not aten.logical_or aten.logical_xor aten.lt aten.masked_fill aten.matmul aten.max
aten.max_pool2d_with_indices aten.max_pool3d_with_indices aten.maximum aten.mean aten.min aten.minimum aten.mm
aten.mul aten.native_layer_norm aten.ne aten.neg aten.ones aten.permute aten.pow aten.prod aten.reciprocal aten.relu
aten.repeat aten.roll aten.round aten.rsqrt aten.rsub aten.scalar_tensor aten.select aten.select_scatter aten.sigmoid
aten.sign aten.silu aten.sin aten.sinh aten.slice aten.slice_scatter aten._softmax aten.softmax aten.sort
aten.split_with_sizes aten.sqrt aten.squeeze aten.stack aten.sub aten.sum aten.t aten.tan aten.tanh aten.to
aten._to_copy aten.topk aten.transpose aten.unsqueeze aten.var aten.view aten.where aten.zeros
aten.__and__ aten.numel aten.size
prims.convert_element_type prims.squeeze vtensor.literal
"""
_HARMLESS = frozenset(_NAMES.split())

#: What carries the arguments of those ops, and ops of ours, which code of ours lowers.
_PLUMBING = (
    "pipeline.",
    "torch.constant.",
    "torch.prim.ListConstruct",
    "torch.prim.ListUnpack",
    "torch.prim.NumToTensor",
    "torch.prim.TupleConstruct",
    "torch.runtime.assert",
)

_BORDERS = frozenset({"builtin.module", "func.func", "func.return"})

#: A tensor whose sizes are each unknown or above 0.
_SIZED = re.compile(
    r"!torch\.vtensor<\[((\?|[1-9]\d*)(,(\?|[1-9]\d*))*)?\],(f64|f32|f16|bf16|si64|si32|si16|si8|ui8|i1)>"
)


def is_harmless(module: ir.Module) -> bool:
    """Whether a module in the torch dialect may be lowered in this process."""
    if os.environ.get("PIPELINE_SUPERVISE") == "all":
        return False
    ops = ops_of(module.operation)
    return len(ops) <= _MOST_OPS and all(map(_is_known, ops)) and all(map(_is_sized, _types(ops)))


def _is_known(op: ir.Operation) -> bool:
    name = op.name
    if name in _BORDERS or name.startswith(_PLUMBING):
        return True
    if name.endswith("_mode"):  # a division that rounds: a folder divides integers, perhaps by 0
        return False
    if name == "torch.aten.floordiv.int":
        return _is_positive_constant(op.operands[1])
    if name == "torch.aten.view":  # without its sizes, it is tried in many ways
        return not any("?" in kind for kind in _types([op]))
    if name == "torch.aten.index.Tensor":
        return not _selects_by_mask(op)
    return ".".join(name.removeprefix("torch.").split(".")[:2]) in _HARMLESS


def _is_positive_constant(value: ir.Value) -> bool:
    op = defining_op(value)
    return op is not None and op.name == "torch.constant.int" and ir.IntegerAttr(op.attributes["value"]).value > 0


def _selects_by_mask(index: ir.Operation) -> bool:
    """Whether an `aten.index` has a mask among its indices, or perhaps has."""
    indices = defining_op(index.operands[1])
    if indices is None or indices.name != "torch.prim.ListConstruct":
        return True
    return any(str(each.type).endswith(("i1>", "ui8>")) for each in indices.operands)


def _types(ops: list[ir.Operation]) -> set[str]:
    """Those of all values; an argument of a block is an operand where it matters, as what a list has in it is."""
    return {str(value.type) for op in ops for value in (*op.operands, *op.results)}


def _is_sized(kind: str) -> bool:
    return _SIZED.fullmatch(kind) is not None or not kind.startswith(("!torch.vtensor", "!torch.tensor"))
