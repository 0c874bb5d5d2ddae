"""lower-tm-tensor: torch-mlir's scan, scatter and sort become loops on tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.errors import CompileError
from pipeline.mlir import arith, defining_op, ir, math, remap_operands, scf, tensor, walk
from pipeline.passes.base import Pass

Body = Callable[[list[ir.Value], list[ir.Value]], list[ir.Value]]


@dataclass(frozen=True)
class LowerTmTensor(Pass):
    """Rewrite tm_tensor.scan, scatter and sort as scf.for nests on tensors, each to become one kernel.

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
    sizes = _sizes(source)
    outer = [size for index, size in enumerate(sizes) if index != dim]

    def one_line(at: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        out, accumulator = carried

        def one_element(step: list[ir.Value], inner: list[ir.Value]) -> list[ir.Value]:
            place = [*at[:dim], *step, *at[dim:]]
            out, running = inner
            element = tensor.ExtractOp(source, place).result
            (following,) = _inline(op, [element, running])
            return [tensor.InsertOp(following if inclusive else running, out, place).result, following]

        running = tensor.ExtractOp(accumulator, at).result
        out, running = _loops([sizes[dim]], [out, running], one_element)
        return [out, tensor.InsertOp(running, accumulator, at).result]

    return _loops(outer, [out, accumulator], one_line)


def _scatter(op: ir.Operation) -> list[ir.Value]:
    """original[indices[u] + w] = combine(updates[u, w], original[..]), one update after the other.

    `indices[u]` are offsets in the dims of `dimension_map`, `w` runs over a window of the last dims of `original`.
    """
    updates, indices, original = op.operands
    dims = list(ir.DenseI64ArrayAttr(op.attributes["dimension_map"]))
    sizes = _sizes(original)

    def one_update(at: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        (target,) = carried
        update, *window = at
        place = [_index(0)] * (len(sizes) - len(window)) + window
        for number, dim in enumerate(dims):
            raw = tensor.ExtractOp(indices, [update, _index(number)]).result
            offset = _wrap(arith.IndexCastOp(ir.IndexType.get(), raw).result, sizes[dim])
            place[dim] = arith.AddIOp(offset, place[dim]).result
        inside = _inside(place, sizes)
        safe = [arith.SelectOp(inside, one, _index(0)).result for one in place]
        old = tensor.ExtractOp(target, safe).result
        (new,) = _inline(op, [tensor.ExtractOp(updates, at).result, old])
        kept = arith.SelectOp(inside, new, old).result
        return [tensor.InsertOp(kept, target, safe).result]

    return _loops(_sizes(updates), [original], one_update)


def _wrap(index: ir.Value, size: ir.Value) -> ir.Value:
    """Index + size where the index is negative, as torch counts from the end."""
    negative = arith.CmpIOp(arith.CmpIPredicate.slt, index, _index(0)).result
    return arith.SelectOp(negative, arith.AddIOp(index, size).result, index).result


def _inside(place: list[ir.Value], sizes: list[ir.Value]) -> ir.Value:
    """Whether an index lies in a tensor of these sizes; unsigned comparison covers negative ones."""
    inside = arith.ConstantOp(ir.IntegerType.get_signless(1), 1).result
    for value, size in zip(place, sizes, strict=True):
        below = arith.CmpIOp(arith.CmpIPredicate.ult, value, size).result
        inside = arith.AndIOp(inside, below).result
    return inside


def _sort(op: ir.Operation) -> list[ir.Value]:
    """Stable merge sort of every line along the dimension, from runs of one element up; all operands move together."""
    dim = ir.IntegerAttr(op.attributes["dimension"]).value
    sizes = _sizes(op.operands[0])
    outer = [size for index, size in enumerate(sizes) if index != dim]
    size = sizes[dim]

    def one_line(at: list[ir.Value], lines: list[ir.Value]) -> list[ir.Value]:
        def place(position: ir.Value) -> list[ir.Value]:
            return [*at[:dim], position, *at[dim:]]

        def one_pass(step: list[ir.Value], lines: list[ir.Value]) -> list[ir.Value]:
            merged = _merge_runs(op, lines, place, size, arith.ShLIOp(_index(1), step[0]).result)

            def copy_back(step: list[ir.Value], lines: list[ir.Value]) -> list[ir.Value]:
                return [
                    tensor.InsertOp(tensor.ExtractOp(source, step).result, line, place(step[0])).result
                    for source, line in zip(merged, lines, strict=True)
                ]

            return _loops([size], lines, copy_back)

        return _loops([_passes(size)], lines, one_pass)

    return _loops(outer, list(op.operands), one_line)


def _passes(size: ir.Value) -> ir.Value:
    """How often runs must double to reach `size`: the bits of size - 1; none for a size of 0."""
    number = ir.IntegerType.get_signless(64)
    last = arith.MaxSIOp(arith.SubIOp(size, _index(1)).result, _index(0)).result
    zeros = math.CountLeadingZerosOp(arith.IndexCastOp(number, last).result).result
    bits = arith.SubIOp(arith.ConstantOp(number, 64).result, zeros).result
    return arith.IndexCastOp(ir.IndexType.get(), bits).result


def _merge_runs(
    op: ir.Operation,
    lines: list[ir.Value],
    place: Callable[[ir.Value], list[ir.Value]],
    size: ir.Value,
    width: ir.Value,
) -> list[ir.Value]:
    """The lines with every two neighbouring runs of `width` sorted elements merged to one, as tensors of one dim."""
    elements = [ir.RankedTensorType(line.type).element_type for line in lines]
    scratch = [tensor.EmptyOp([size], element).result for element in elements]
    both = arith.AddIOp(width, width).result
    runs = scf.ForOp(_index(0), size, both, scratch)
    with ir.InsertionPoint(runs.body):
        start = runs.induction_variable
        middle = arith.MinSIOp(arith.AddIOp(start, width).result, size).result
        end = arith.MinSIOp(arith.AddIOp(start, both).result, size).result
        merge = scf.ForOp(start, end, _index(1), [start, middle, *runs.inner_iter_args])
        with ir.InsertionPoint(merge.body):
            left, right, *into = merge.inner_iter_args
            from_left = _takes_left(op, lines, place, (left, middle), (right, end))
            source = arith.SelectOp(from_left, left, right).result
            into = [
                tensor.InsertOp(tensor.ExtractOp(line, place(source)).result, target, [merge.induction_variable]).result
                for line, target in zip(lines, into, strict=True)
            ]
            following = [arith.AddIOp(one, _index(1)).result for one in (left, right)]
            left = arith.SelectOp(from_left, following[0], left).result
            right = arith.SelectOp(from_left, right, following[1]).result
            scf.YieldOp([left, right, *into])
        scf.YieldOp(list(merge.results)[2:])
    return list(runs.results)


def _takes_left(
    op: ir.Operation,
    lines: list[ir.Value],
    place: Callable[[ir.Value], list[ir.Value]],
    left: tuple[ir.Value, ir.Value],
    right: tuple[ir.Value, ir.Value],
) -> ir.Value:
    """Whether a merge takes from the left run; both runs are given as (position, end)."""
    positions = [arith.MinSIOp(position, arith.SubIOp(end, _index(1)).result).result for position, end in (left, right)]
    pairs = [tensor.ExtractOp(line, place(position)).result for line in lines for position in positions]
    in_order = arith.OrIOp(_inline(op, pairs)[0], _is_nan_in_order(op, pairs[0], pairs[1])).result
    left_remains = arith.CmpIOp(arith.CmpIPredicate.slt, *left).result
    right_is_empty = arith.CmpIOp(arith.CmpIPredicate.sge, *right).result
    return arith.AndIOp(left_remains, arith.OrIOp(right_is_empty, in_order).result).result


def _is_nan_in_order(op: ir.Operation, left: ir.Value, right: ir.Value) -> ir.Value:
    """NaN counts as the greatest number: it may stand on the right in ascending order, on the left in descending."""
    comparison = next((inner for inner in op.regions[0].blocks[0].operations if inner.name == "arith.cmpf"), None)
    if comparison is None:
        return arith.ConstantOp(ir.IntegerType.get_signless(1), 0).result
    ascending = ir.IntegerAttr(comparison.attributes["predicate"]).value in _LESS
    value = right if ascending else left
    return arith.CmpFOp(arith.CmpFPredicate.UNO, value, value).result


_LESS = (arith.CmpFPredicate.OLT, arith.CmpFPredicate.OLE, arith.CmpFPredicate.ULT, arith.CmpFPredicate.ULE)

#: Work on each line along a dimension on its own: the loops around are parallel.
_BY_LINE = ("scan", "sort")

#: Marks loops over lines, which do not depend on each other; GPUs give each a thread.
LINES = "pipeline.lines"


def _mark_lines(loop: ir.Operation, depth: int) -> None:
    """Marks `depth` nested loops, from the outermost one on."""
    for _ in range(depth):
        loop.attributes[LINES] = ir.UnitAttr.get(loop.context)
        loop = next(op.operation for op in loop.regions[0].blocks[0].operations if op.operation.name == "scf.for")


_LOWERINGS = {"scan": _scan, "scatter": _scatter, "sort": _sort}


def _loops(sizes: Sequence[ir.Value], carried: list[ir.Value], body: Body) -> list[ir.Value]:
    """A nest of scf.for, one for each size, that carries values; `body` gets the indices and the values."""
    if not sizes:  # a scalar is a line of one: a loop all the same, so that there is an op to become a kernel
        return _loops([_index(1)], carried, lambda _, values: body([], values))

    def nest(depth: int, at: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        if depth == len(sizes):
            return body(at, carried)
        loop = scf.ForOp(_index(0), sizes[depth], _index(1), carried)
        with ir.InsertionPoint(loop.body):
            scf.YieldOp(nest(depth + 1, [*at, loop.induction_variable], list(loop.inner_iter_args)))
        return list(loop.results)

    return nest(0, [], carried)


def _inline(op: ir.Operation, arguments: list[ir.Value]) -> list[ir.Value]:
    """Copies the region of a tm_tensor op to the insertion point, with its block arguments bound."""
    block = op.regions[0].blocks[0]
    known = dict(zip(block.arguments, arguments, strict=True))
    for inner in block.operations:
        inner = inner.operation
        if inner.name == "tm_tensor.yield":
            return [known.get(value, value) for value in inner.operands]
        copy = inner.clone()
        remap_operands(copy, known)
        known.update(zip(inner.results, copy.results, strict=True))
    raise CompileError(f"{op.location}: {op.name} has no tm_tensor.yield")


def _sizes(value: ir.Value) -> list[ir.Value]:
    kind = ir.RankedTensorType(value.type)
    return [
        tensor.DimOp(value, _index(dim)).result if kind.is_dynamic_dim(dim) else _index(kind.get_dim_size(dim))
        for dim in range(kind.rank)
    ]


def _index(value: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), value).result
