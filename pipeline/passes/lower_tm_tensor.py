"""lower-tm-tensor: torch-mlir's scan, scatter and sort become loops on tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.errors import CompileError
from pipeline.mlir import arith, defining_op, ir, tensor, walk
from pipeline.passes.base import Pass
from pipeline.passes.nests import index, inline, loops, sizes_of
from pipeline.passes.sorting import sort_lines


@dataclass(frozen=True)
class LowerTmTensor(Pass):
    """Rewrite tm_tensor.scan, scatter and sort as scf.for nests on tensors, each to become one kernel.

    A sort of which only the first few elements are read, as in `topk`, is a selection of these.
    The dialect's own lowering works on buffers and its bufferization does not mix with one-shot-bufferize.
    """

    name: ClassVar[str] = "lower-tm-tensor"

    def run(self, op: ir.Operation) -> None:
        """Lowers every tm_tensor op in the module."""
        for kind, lower in _LOWERINGS.items():
            for found in walk(op, f"tm_tensor.{kind}"):
                with found.location, ir.InsertionPoint(found):
                    results = lower(found)
                loop = results[0].owner.operation
                if kind in _BY_LINE:
                    _mark_lines(loop, ir.RankedTensorType(found.operands[0].type).rank - 1)
                loop.attributes["pipeline.kernel"] = ir.StringAttr.get(kind, op.context)
                for before, after in zip(found.results, results, strict=True):
                    before.replace_all_uses_with(after)
                found.erase()
        for left in walk(op, "tm_tensor.attention", "tm_tensor.topk"):
            raise CompileError(f"{left.location}: {left.name} is not supported")


def _scan(op: ir.Operation) -> list[ir.Value]:
    """out[.., i, ..] = running = combine(in[.., i, ..], running), for i along the dimension."""
    source, out, accumulator = op.operands
    filled = defining_op(out)
    if filled is not None and filled.name == "linalg.fill":
        out = filled.operands[1]  # every element is written
    dim = ir.IntegerAttr(op.attributes["dimension"]).value
    inclusive = ir.BoolAttr(op.attributes["inclusive"]).value
    sizes = sizes_of(source)
    outer = [size for index, size in enumerate(sizes) if index != dim]

    def one_line(at: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        out, accumulator = carried

        def one_element(step: list[ir.Value], inner: list[ir.Value]) -> list[ir.Value]:
            place = [*at[:dim], *step, *at[dim:]]
            out, running = inner
            element = tensor.ExtractOp(source, place).result
            (following,) = inline(op, [element, running])
            return [tensor.InsertOp(following if inclusive else running, out, place).result, following]

        running = tensor.ExtractOp(accumulator, at).result
        out, running = loops([sizes[dim]], [out, running], one_element)
        return [out, tensor.InsertOp(running, accumulator, at).result]

    return loops(outer, [out, accumulator], one_line)


def _scatter(op: ir.Operation) -> list[ir.Value]:
    """original[indices[u] + w] = combine(updates[u, w], original[..]), one update after the other.

    `indices[u]` are offsets in the dims of `dimension_map`, `w` runs over a window of the last dims of `original`.
    """
    updates, indices, original = op.operands
    dims = list(ir.DenseI64ArrayAttr(op.attributes["dimension_map"]))
    sizes = sizes_of(original)

    def one_update(at: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        (target,) = carried
        update, *window = at
        place = [index(0)] * (len(sizes) - len(window)) + window
        for number, dim in enumerate(dims):
            raw = tensor.ExtractOp(indices, [update, index(number)]).result
            offset = _wrap(arith.IndexCastOp(ir.IndexType.get(), raw).result, sizes[dim])
            place[dim] = arith.AddIOp(offset, place[dim]).result
        inside = _inside(place, sizes)
        safe = [arith.SelectOp(inside, one, index(0)).result for one in place]
        old = tensor.ExtractOp(target, safe).result
        (new,) = inline(op, [tensor.ExtractOp(updates, at).result, old])
        kept = arith.SelectOp(inside, new, old).result
        return [tensor.InsertOp(kept, target, safe).result]

    return loops(sizes_of(updates), [original], one_update)


def _wrap(given: ir.Value, size: ir.Value) -> ir.Value:
    """Index + size where the given index is negative, as torch counts from the end."""
    negative = arith.CmpIOp(arith.CmpIPredicate.slt, given, index(0)).result
    return arith.SelectOp(negative, arith.AddIOp(given, size).result, given).result


def _inside(place: list[ir.Value], sizes: list[ir.Value]) -> ir.Value:
    """Whether an index lies in a tensor of these sizes; unsigned comparison covers negative ones."""
    inside = arith.ConstantOp(ir.IntegerType.get_signless(1), 1).result
    for value, size in zip(place, sizes, strict=True):
        below = arith.CmpIOp(arith.CmpIPredicate.ult, value, size).result
        inside = arith.AndIOp(inside, below).result
    return inside


#: Work on each line along a dimension on its own: the loops around are parallel.
_BY_LINE = ("scan", "sort")

#: Marks loops over lines, which do not depend on each other; GPUs give each a thread.
LINES = "pipeline.lines"


def _mark_lines(loop: ir.Operation, depth: int) -> None:
    """Marks `depth` nested loops, from the outermost one on."""
    for _ in range(depth):
        loop.attributes[LINES] = ir.UnitAttr.get(loop.context)
        loop = next(op.operation for op in loop.regions[0].blocks[0].operations if op.operation.name == "scf.for")


_LOWERINGS = {"scan": _scan, "scatter": _scatter, "sort": sort_lines}
