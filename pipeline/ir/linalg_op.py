"""Linalg ops seen as what they all are: loops, indexing maps, and a body that runs for each iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pipeline.ir.indexing_maps import coefficient
from pipeline.mlir import ir, linalg, terminator

_WIDENING = ("arith.extf", "arith.extsi", "arith.extui")
_ELEMENTWISE = ("linalg.generic", "linalg.transpose", "linalg.broadcast", "linalg.fill")


@dataclass(frozen=True)
class Structured:
    """A linalg op.

    Attributes:
        op: the op.
        maps: from loops to the indices of each operand.
        reductions: which loops are reductions.
    """

    op: ir.Operation
    maps: tuple[ir.AffineMap, ...]
    reductions: tuple[bool, ...]

    @property
    def loops(self) -> int:
        """How many loops there are."""
        return len(self.reductions)

    @property
    def body(self) -> ir.Block:
        """What runs for each iteration; takes an element of each operand."""
        return self.op.regions[0].blocks[0]

    @property
    def inputs(self) -> int:
        """How many operands are inputs."""
        return len(self.op.operands) - len(self.op.results)

    @cached_property
    def yielded(self) -> list[ir.Value]:
        """What the body hands out for each result."""
        return list(terminator(self.body).operands)

    @cached_property
    def body_ops(self) -> list[ir.Operation]:
        """The ops of the body without its terminator."""
        return [op.operation for op in self.body.operations][:-1]

    @cached_property
    def is_elementwise(self) -> bool:
        """Whether each result element is computed once, from the inputs alone; never of what has no body."""
        if not self.op.regions:
            return False
        outputs = list(self.body.arguments)[self.inputs :]
        return (
            not any(self.reductions)
            and all(is_permutation(indexing) for indexing in self.maps[self.inputs :])
            and not any(list(argument.uses) for argument in outputs)
        )

    def size(self, loop: int) -> int | None:
        """How often a loop runs, if that is known; 0 for a loop that is bounded by no dim of an operand."""
        bound = self.bound(loop)
        if bound is None:
            return 0
        kind = ir.ShapedType(self.op.operands[bound[0]].type)
        return None if kind.is_dynamic_dim(bound[1]) else kind.get_dim_size(bound[1])

    def bound(self, loop: int) -> tuple[int, int] | None:
        """(operand, dim) that a loop runs along."""
        for operand, indexing in enumerate(self.maps):
            for dim, expression in enumerate(indexing.results):
                if isinstance(expression, ir.AffineDimExpr) and ir.AffineDimExpr(expression).position == loop:
                    return operand, dim
        return None

    def loops_read(self, operand: int) -> list[int]:
        """The loops that are an index of an operand."""
        return [
            ir.AffineDimExpr(expression).position
            for expression in self.maps[operand].results
            if isinstance(expression, ir.AffineDimExpr)
        ]

    def reads_once(self, operand: int) -> bool:
        """Whether every iteration reads another element of an operand."""
        return is_permutation(self.maps[operand])


def structured(op: ir.Operation | None) -> Structured | None:
    """The op as loops, maps and a body; None if it is none of those that have this view."""
    if op is None or op.name not in _ELEMENTWISE:
        return None
    if op.name == "linalg.generic":
        maps = [ir.AffineMapAttr(attribute).value for attribute in op.attributes["indexing_maps"]]
        return Structured(op, tuple(maps), tuple("reduction" in str(kind) for kind in op.attributes["iterator_types"]))
    rank = ir.ShapedType(op.operands[len(op.operands) - 1].type).rank
    identity = ir.AffineMap.get_identity(rank)
    dims = identity.results
    if op.name == "linalg.fill":
        source = ir.AffineMap.get(rank, 0, [])
    elif op.name == "linalg.transpose":
        permutation = list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
        source = ir.AffineMap.get(rank, 0, [dims[permutation.index(dim)] for dim in range(rank)])
    else:
        added = list(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
        source = ir.AffineMap.get(rank, 0, [dims[dim] for dim in range(rank) if dim not in added])
    return Structured(op, (source, identity), (False,) * rank)


def any_structured(op: ir.Operation | None) -> Structured | None:
    """Like `structured`, for named ops too: matrix products, convolutions, pools; their bodies are read-only."""
    found = structured(op)
    if found is not None or op is None or not op.name.startswith("linalg."):
        return found
    attribute = linalg.get_indexing_maps(op)
    if attribute is None:
        return None
    maps = [ir.AffineMapAttr(entry).value for entry in attribute]
    written = {expression for indexing in maps[len(maps) - len(op.results) :] for expression in indexing.results}
    loops = [ir.AffineDimExpr.get(dim) for dim in range(maps[0].n_dims)]
    return Structured(op, tuple(maps), tuple(loop not in written for loop in loops))


def is_permutation(indexing: ir.AffineMap) -> bool:
    """Whether the indices are the loops, in some order."""
    positions = [
        ir.AffineDimExpr(expression).position
        for expression in indexing.results
        if isinstance(expression, ir.AffineDimExpr)
    ]
    return len(positions) == len(indexing.results) and sorted(positions) == list(range(indexing.n_dims))


def moves_rows(view: Structured) -> bool:
    """Whether an op only gives whole rows another place, repeats them, or makes their elements wider.

    The innermost dim stays the innermost: rows can be read where they are as fast as where they would be put.
    """
    if view.inputs != 1 or not view.is_elementwise or any(op.name not in _WIDENING for op in view.body_ops):
        return False
    if not view.body_ops and view.yielded != [view.body.arguments[0]]:
        return False
    read, wrote = view.loops_read(0), view.loops_read(1)
    return bool(read) and len(read) == len(view.maps[0].results) and read[-1] == wrote[-1]


def reads_input_again(view: Structured) -> bool:
    """Whether a reduction reads an element of an input in several iterations, as contractions and pools do."""
    if not any(view.reductions):
        return False
    for indexing in view.maps[: view.inputs]:
        used = {
            dim
            for dim in range(view.loops)
            if any(coefficient(expression, dim) != 0 for expression in indexing.results)
        }
        if used and (len(used) < view.loops or len(indexing.results) < view.loops):
            return True
    return False


def bounded_loops(maps: Sequence[ir.AffineMap]) -> set[int]:
    """The loops that run along a dimension of an operand with one of these maps, and are bounded by it."""
    return {
        ir.AffineDimExpr(expression).position
        for indexing in maps
        for expression in indexing.results
        if isinstance(expression, ir.AffineDimExpr)
    }


def is_identity(indexing: ir.AffineMap) -> bool:
    """Whether the indices are the loops, in their order."""
    return indexing == ir.AffineMap.get_identity(indexing.n_dims)
