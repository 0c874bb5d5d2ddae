"""drop-broadcast-loops: what is the same along a loop is computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.indexing_maps import bounded_loops, coefficient
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.rewriting import before, build_generic, copy_attributes, copy_body, read_by
from pipeline.mlir import ir, linalg, tensor, walk
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class DropBroadcastLoops(PatternPass):
    """Drop the loops of an elementwise op along which all its elements are equal; its users read without them.

    As for keys that several heads of an attention share: they would be copied for each. All users have to be linalg ops
    whose loops other operands bound.
    """

    name: ClassVar[str] = "drop-broadcast-loops"
    anchor: ClassVar[str] = "func.func"

    @pattern("linalg.generic", users_first=True)
    def drop(self, generic: ir.Operation) -> bool:
        """y[i, j] = f(x[j]); z = g(y)   ->   y[j] = f(x[j]); z = g(y read at j)"""
        view = structured(generic)
        loops = _broadcast_loops(view) if view is not None else set()
        users = {use.owner.operation for result in generic.results for use in result.uses}
        if view is None or not loops or not all(_reads_without(user, view, loops) for user in users):
            return False
        self.passed(generic, f"is computed once along {len(loops)} of {view.loops} loops")
        _shrink(view, loops)
        return True


def _broadcast_loops(view: LinalgOp) -> set[int]:
    """The loops that neither an input nor the body depends on, of an op with one result and users."""
    if not view.is_elementwise or len(view.op.results) != 1 or not list(view.op.results[0].uses):
        return set()
    used = {ir.IntegerAttr(index.attributes["dim"]).value for index in walk(view.op, "linalg.index")}
    for indexing in view.maps[: view.inputs]:
        used |= {
            loop for loop in range(view.loops) for expression in indexing.results if coefficient(expression, loop) != 0
        }
    free = {loop for loop in range(view.loops) if view.sizes[loop] != 1} - used
    empty = view.op.operands[view.inputs].owner
    is_new = not isinstance(empty, ir.Block) and empty.operation.name == "tensor.empty"
    return free if is_new and len(free) < view.loops else set()


def _reads_without(user: ir.Operation, view: LinalgOp, loops: set[int]) -> bool:
    """Whether a user can read the result without the dims that these loops write."""
    other = structured(user) if user.name == "linalg.generic" else None
    if other is None:
        return False
    result, dims = view.op.results[0], _dims(view, loops)
    reads = [operand == result for operand in user.operands]
    maps = [_without(indexing, dims) if read else indexing for indexing, read in zip(other.maps, reads, strict=True)]
    return not any(reads[other.inputs :]) and len(bounded_loops(maps)) == other.loops


def _dims(view: LinalgOp, loops: set[int]) -> set[int]:
    """The dims of the result that some loops write."""
    return {dim for dim, loop in enumerate(view.loops_read(view.inputs)) if loop in loops}


def _without(indexing: ir.AffineMap, dims: set[int]) -> ir.AffineMap:
    kept = [expression for dim, expression in enumerate(indexing.results) if dim not in dims]
    return ir.AffineMap.get(indexing.n_dims, 0, kept)


def _shrink(view: LinalgOp, loops: set[int]) -> None:
    kept = [loop for loop in range(view.loops) if loop not in loops]
    renamed = [
        ir.AffineDimExpr.get(kept.index(loop)) if loop in kept else ir.AffineConstantExpr.get(0)
        for loop in range(view.loops)
    ]
    rename = ir.AffineMap.get(len(kept), 0, renamed)
    dims = _dims(view, loops)
    result = view.op.results[0]
    with before(view.op):
        out = _smaller(view.op.operands[view.inputs], dims)
        wrote = _without(view.maps[view.inputs], dims)
        maps = [*view.maps[: view.inputs], wrote]
        maps = [
            ir.AffineMap.get(len(kept), 0, [expression.compose(rename) for expression in each.results]) for each in maps
        ]
        made = build_generic(
            list(view.op.operands)[: view.inputs],
            [out],
            maps,
            [view.op.attributes["iterator_types"][loop] for loop in kept],
            lambda elements: copy_body(view, elements, lambda loop: linalg.IndexOp(kept.index(loop)).result),
        )
    copy_attributes(view.op, made)
    for use in list(result.uses):
        user, number = use.owner.operation, use.operand_number
        indexing = ir.AffineMapAttr(user.attributes["indexing_maps"][number]).value
        read_by(user, number, made.results[0], _without(indexing, dims))
    view.op.erase()


def _smaller(empty: ir.Value, dims: set[int]) -> ir.Value:
    """A tensor.empty without some dims."""
    kind = ir.RankedTensorType(empty.type)
    given = iter(empty.owner.operands)
    sizes = [next(given) if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim) for dim in range(kind.rank)]
    return tensor.EmptyOp([size for dim, size in enumerate(sizes) if dim not in dims], kind.element_type).result
