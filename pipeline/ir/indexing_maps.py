"""How a linalg op walks over its operands: strides of loops in indexing maps, and which loops to tile."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.mlir import ir, terminator


def coefficient(expression: ir.AffineExpr, dim: int) -> int | None:
    """How far an index moves when loop `dim` moves by one; None if that is not the same everywhere."""
    if isinstance(expression, ir.AffineDimExpr):
        return int(ir.AffineDimExpr(expression).position == dim)
    if isinstance(expression, (ir.AffineConstantExpr, ir.AffineSymbolExpr)):
        return 0
    binary = ir.AffineBinaryExpr(expression)
    left, right = coefficient(binary.lhs, dim), coefficient(binary.rhs, dim)
    if left is None or right is None:
        return None
    if isinstance(expression, ir.AffineAddExpr):
        return left + right
    if isinstance(expression, ir.AffineMulExpr) and isinstance(binary.rhs, ir.AffineConstantExpr):
        return left * ir.AffineConstantExpr(binary.rhs).value
    return 0 if left == right == 0 else None


def moves(indexing: ir.AffineMap, dim: int) -> str:
    """How an operand moves with loop `dim`.

    `fixed`; `unit`, along its innermost dimension, one by one; `strided`, along its innermost dimension in constant
    steps; `blocked`, one by one within blocks of `block_of`; or `other`.
    """
    if block_of(indexing, dim) is not None:
        return "blocked"
    steps = [coefficient(expression, dim) for expression in indexing.results]
    if all(step == 0 for step in steps):
        return "fixed"
    if steps[-1] is None or any(step != 0 for step in steps[:-1]):
        return "other"
    return "unit" if steps[-1] == 1 else "strided"


def block_of(indexing: ir.AffineMap, dim: int) -> int | None:
    """The size of the blocks that an operand moves in with loop `dim`: [.., dim floordiv block, .., dim mod block]."""
    if len(indexing.results) < 2 or not isinstance(indexing.results[-1], ir.AffineModExpr):
        return None
    remainder = ir.AffineBinaryExpr(indexing.results[-1])
    if remainder.lhs != ir.AffineDimExpr.get(dim) or not isinstance(remainder.rhs, ir.AffineConstantExpr):
        return None
    quotient = ir.AffineExpr.get_floor_div(remainder.lhs, remainder.rhs)
    rest = [expression for expression in indexing.results[:-1] if expression != quotient]
    if len(rest) != len(indexing.results) - 2 or any(coefficient(expression, dim) != 0 for expression in rest):
        return None
    return ir.AffineConstantExpr(remainder.rhs).value


@dataclass(frozen=True)
class Loops:
    """The loops of a linalg.generic on buffers.

    Attributes:
        maps: one a operand, inputs first.
        reductions: which loops are reductions.
        sizes: the number of iterations of each, None where it is known at run time only.
        bounds: for each loop an (operand, dimension) that it runs over.
        inputs: how many operands are inputs.
    """

    maps: tuple[ir.AffineMap, ...]
    reductions: tuple[bool, ...]
    sizes: tuple[int | None, ...]
    bounds: tuple[tuple[int, int], ...]
    inputs: int

    @property
    def outputs(self) -> range:
        """The numbers of the output operands."""
        return range(self.inputs, len(self.maps))


def slides(loops: Loops) -> bool:
    """Whether each reduction slides a window along a parallel loop, as in a depthwise convolution or a pool."""
    reductions = [dim for dim, reduces in enumerate(loops.reductions) if reduces]
    return bool(reductions) and all(slid_along(loops, dim) for dim in reductions)


def slid_along(loops: Loops, dim: int) -> set[int]:
    """The parallel loops that an index of an input is the sum of together with loop `dim`; none if it is not linear."""
    found: set[int] = set()
    for expression in (result for indexing in loops.maps[: loops.inputs] for result in indexing.results):
        steps = [coefficient(expression, loop) for loop in range(len(loops.sizes))]
        if None in steps:
            return set()
        if steps[dim]:
            found |= {loop for loop, step in enumerate(steps) if step and not loops.reductions[loop]}
    return {loop for loop in found if loops.sizes[loop] != 1}


def loops_of(generic: ir.Operation) -> Loops | None:
    """The loops of a linalg.generic; None if one of them is bounded by no dimension of an operand alone."""
    maps = tuple(ir.AffineMapAttr(attribute).value for attribute in generic.attributes["indexing_maps"])
    count = maps[0].n_dims
    bounds: dict[int, tuple[int, int]] = {}
    for operand, indexing in enumerate(maps):
        for position, expression in enumerate(indexing.results):
            if isinstance(expression, ir.AffineDimExpr):
                bounds.setdefault(ir.AffineDimExpr(expression).position, (operand, position))
    if len(bounds) != count:
        return None
    sizes = []
    for dim in range(count):
        operand, position = bounds[dim]
        kind = ir.ShapedType(generic.operands[operand].type)
        sizes.append(None if kind.is_dynamic_dim(position) else kind.get_dim_size(position))
    return Loops(
        maps=maps,
        reductions=tuple("reduction" in str(kind) for kind in generic.attributes["iterator_types"]),
        sizes=tuple(sizes),
        bounds=tuple(bounds[dim] for dim in range(count)),
        inputs=len(maps) - len(terminator(generic.regions[0].blocks[0]).operands),
    )


def loop_of(expression: ir.AffineExpr) -> int | None:
    """The number of the loop that an index is; None if it is computed."""
    return expression.position if isinstance(expression, ir.AffineDimExpr) else None
