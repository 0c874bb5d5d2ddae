"""reinterpret-collapsed-buffers: a collapsed buffer is the same memory with fewer dims."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import ClassVar

from pipeline.ir.reshapes import reassociation
from pipeline.ir.rewriting import before, replace
from pipeline.mlir import arith, ir, memref
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class ReinterpretCollapsedBuffers(PatternPass):
    """Turn memref.collapse_shape into memref.reinterpret_cast where it makes one dim of several.

    fold-memref-alias-ops takes accesses of a collapsed buffer for those of the buffer itself, whose indices it divides
    out of each place: several divisions for each vector. Behind a reinterpret_cast a place is one multiplication away.
    """

    name: ClassVar[str] = "reinterpret-collapsed-buffers"
    anchor: ClassVar[str] = "func.func"

    @pattern("memref.collapse_shape")
    def reinterpret(self, collapse: ir.Operation) -> bool:
        """collapse_shape %x [[0, 1]] : 3x5 -> 15   ->   reinterpret_cast %x to [15], strides [1]"""
        groups = reassociation(collapse)
        source, made = collapse.operands[0], ir.MemRefType(collapse.results[0].type)
        kind = ir.MemRefType(source.type)
        if not any(_large_dims(kind, dims) > 1 for dims in groups):
            return False
        strides, offset = made.get_strides_and_offset()
        dynamic = ir.ShapedType.get_dynamic_size()
        with before(collapse):
            parts = memref.ExtractStridedMetadataOp(source)
            known = [
                prod(kind.get_dim_size(dim) for dim in dims) if _is_static(kind, dims) else dynamic for dims in groups
            ]
            sizes = [
                reduce(lambda left, right: arith.MulIOp(left, right).result, [parts.sizes[dim] for dim in dims])
                for dims, size in zip(groups, known, strict=True)
                if size == dynamic
            ]
            last = [_last(kind, dims) for dims in groups]
            steps = [parts.strides[dim] for dim, step in zip(last, strides, strict=True) if step == _DYNAMIC]
            offsets = [parts.offset] if offset == _DYNAMIC else []
            cast = memref.ReinterpretCastOp(made, parts.base_buffer, offsets, sizes, steps, [offset], known, strides)
        replace(collapse, [cast.result])
        return True


_DYNAMIC = ir.ShapedType.get_dynamic_stride_or_offset()


def _is_static(kind: ir.MemRefType, dims: list[int]) -> bool:
    return not any(kind.is_dynamic_dim(dim) for dim in dims)


def _large_dims(kind: ir.MemRefType, dims: list[int]) -> int:
    """How many of some dims may have more than one element."""
    return sum(kind.is_dynamic_dim(dim) or kind.get_dim_size(dim) != 1 for dim in dims)


def _last(kind: ir.MemRefType, dims: list[int]) -> int:
    """The dim whose stride some dims have when they are one: the last one of more than one element."""
    large = [dim for dim in dims if kind.is_dynamic_dim(dim) or kind.get_dim_size(dim) != 1]
    return large[-1] if large else dims[-1]
