"""lower-tm-tensor: torch-mlir's scan, scatter and sort become loops on tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.errors import CompileError
from pipeline.mlir import arith, ir, remap_operands, scf, tensor, walk
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
                loop = results[0].owner
                loop.attributes["pipeline.kernel"] = ir.StringAttr.get(kind, op.context)
                for before, after in zip(found.results, results, strict=True):
                    before.replace_all_uses_with(after)
                found.erase()
        for left in walk(op, "tm_tensor.attention", "tm_tensor.topk"):
            raise CompileError(f"{left.location}: {left.name} is not supported")


def _scan(op: ir.Operation) -> list[ir.Value]:
    """out[.., i, ..] = running = combine(in[.., i, ..], running), for i along the dimension."""
    source, out, accumulator = op.operands
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
    rank = ir.RankedTensorType(original.type).rank
    sizes = _sizes(original)

    def one_update(at: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        (target,) = carried
        update, *window = at
        place = [_index(0)] * (rank - len(window)) + window
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
    """Stable insertion sort of every line along the dimension; all operands move together."""
    dim = ir.IntegerAttr(op.attributes["dimension"]).value
    sizes = _sizes(op.operands[0])
    outer = [size for index, size in enumerate(sizes) if index != dim]

    def one_line(at: list[ir.Value], lines: list[ir.Value]) -> list[ir.Value]:
        def insert(step: list[ir.Value], lines: list[ir.Value]) -> list[ir.Value]:
            return _sift(op, lines, at, dim, step[0])

        return _loops([sizes[dim]], lines, insert)

    return _loops(outer, list(op.operands), one_line)


def _sift(op: ir.Operation, lines: list[ir.Value], at: list[ir.Value], dim: int, start: ir.Value) -> list[ir.Value]:
    """Moves the element at `start` down past those that must not stand before it."""

    def place(position: ir.Value) -> list[ir.Value]:
        return [*at[:dim], position, *at[dim:]]

    moving = [tensor.ExtractOp(line, place(start)).result for line in lines]
    types = [start.type, *(line.type for line in lines)]
    loop = scf.WhileOp(types, [start, *lines])
    before = ir.Block.create_at_start(loop.before, types)
    with ir.InsertionPoint(before):
        position, *current = before.arguments
        above = arith.CmpIOp(arith.CmpIPredicate.sgt, position, _index(0)).result
        check = scf.IfOp(above, [ir.IntegerType.get_signless(1)], has_else=True)
        with ir.InsertionPoint(check.then_block):
            previous = arith.SubIOp(position, _index(1)).result
            neighbours = [tensor.ExtractOp(line, place(previous)).result for line in current]
            pairs = [value for pair in zip(neighbours, moving, strict=True) for value in pair]
            (in_order,) = _inline(op, pairs)
            true = arith.ConstantOp(ir.IntegerType.get_signless(1), 1).result
            scf.YieldOp([arith.XOrIOp(in_order, true).result])
        with ir.InsertionPoint(check.else_block):
            scf.YieldOp([arith.ConstantOp(ir.IntegerType.get_signless(1), 0).result])
        scf.ConditionOp(check.results[0], [position, *current])
    after = ir.Block.create_at_start(loop.after, types)
    with ir.InsertionPoint(after):
        position, *current = after.arguments
        previous = arith.SubIOp(position, _index(1)).result
        moved = []
        for line in current:
            neighbour = tensor.ExtractOp(line, place(previous)).result
            moved.append(tensor.InsertOp(neighbour, line, place(position)).result)
        scf.YieldOp([previous, *moved])
    final, *current = loop.results
    return [tensor.InsertOp(value, line, place(final)).result for value, line in zip(moving, current, strict=True)]


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
