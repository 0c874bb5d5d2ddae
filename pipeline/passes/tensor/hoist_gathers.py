"""hoist-gathers: of what is computed element by element, only what is fetched is computed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

from pipeline.ir.linalg_op import LinalgOp, any_structured, structured
from pipeline.ir.reshapes import RESHAPES
from pipeline.ir.rewriting import (
    before,
    build_generic,
    copy_attributes,
    copy_body,
    is_pure,
    is_unused,
    producer_through_reshapes,
    replace,
)
from pipeline.mlir import clone, ir, tensor
from pipeline.passes.tensor.gather_indices import Index, constant, in_source, read_index
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class HoistGathers(PatternPass):
    """Move gathers in front of the elementwise ops whose results they fetch from.

    generic { tensor.extract f(x)[i] }   ->   generic { f(tensor.extract x[i]) }

    That is done where no more is fetched then than was computed, so that the cross-entropy of logits does not write the
    logarithm of each probability in order to read one in each row. Where f(x) has other readers as well, these go on
    computing all of it: then x has to lie in memory anyway, and `share` times as much has to be computed as is fetched.
    """

    name: ClassVar[str] = "hoist-gathers"
    anchor: ClassVar[str] = "func.func"

    sweeps: ClassVar[int] = 16  # each time over one more op

    share: int = field(default=8, metadata={"help": "how many elements are computed for each that is computed again"})

    @pattern("linalg.generic")
    def hoist(self, generic: ir.Operation) -> bool:
        """generic { tensor.extract f(x)[%i] }   ->   generic { f(tensor.extract x[%i]) }"""
        gather = structured(generic)
        for extract in gather.body_ops if gather is not None else ():
            made = _made(extract) if extract.name == "tensor.extract" else None
            if gather is not None and made is not None and made.op.block == generic.block and self._pays(gather, made):
                self.passed(generic, f"computes what it fetches of {made.op.name}")
                _hoist(gather, extract, made)
                return True
        return False

    def _pays(self, gather: LinalgOp, made: LinalgOp) -> bool:
        reads = made.inputs
        if all(map(_is_fetch, _readers(made.op.results[0]))):
            return _fewer(gather, reads, made)
        is_known = None not in (*gather.sizes, *made.sizes)
        stored = (_is_stored(made, number) for number in range(reads))
        return is_known and _fewer(gather, reads * self.share, made) and all(stored)


def _made(extract: ir.Operation) -> LinalgOp | None:
    """The op that computes, element by element, what an element is fetched from."""
    producer, reshapes = producer_through_reshapes(extract.operands[0])
    return None if producer is None or not all(map(_is_static, reshapes)) else _elementwise(producer)


def _elementwise(op: ir.Operation) -> LinalgOp | None:
    """An op that computes its one result element by element, of which single elements can be computed."""
    view = any_structured(op)
    if view is None or op.name != "linalg.generic" or not view.is_elementwise:
        return None
    plain = all(
        isinstance(expression, (ir.AffineDimExpr, ir.AffineConstantExpr))
        for indexing in view.maps
        for expression in indexing.results
    )
    computes = all(is_pure(inner) or inner.name == "tensor.extract" for inner in view.body_ops)
    return view if plain and computes and view.inputs and len(op.results) == 1 else None


def _hoist(gather: LinalgOp, extract: ir.Operation, made: LinalgOp) -> None:
    """Has a gather compute an element; what it reads by counters of its own loops alone becomes an input of it."""
    counters = _counters(gather, extract, made)
    operands = _inputs(made)
    indices = [[_at(expression, counters) for expression in indexing.results] for indexing in made.maps[: made.inputs]]
    maps = [_indexing(gather, operand, own) for operand, own in zip(operands, indices, strict=False)]
    added = [number for number, indexing in enumerate(maps) if indexing is not None]
    outputs = list(gather.operands)[gather.inputs :]

    def body(elements: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        own, new, out = (
            elements[: gather.inputs],
            dict(zip(added, elements[gather.inputs :], strict=False)),
            elements[-len(outputs) :],
        )
        known: dict[ir.Value, ir.Value] = dict(zip(gather.body.arguments, [*own, *out], strict=True))
        fetched: dict[tuple[ir.Value, ...], ir.Value] = {}

        def fetch(operand: ir.Value, place: Sequence[ir.Value]) -> ir.Value:
            if (operand, *place) not in fetched:
                fetched[operand, *place] = tensor.ExtractOp(operand, place).result
            return fetched[operand, *place]

        for inner in gather.body_ops:
            if inner.name == "tensor.extract" and inner != extract:
                operand, *place = (known.get(value, value) for value in inner.operands)
                known[inner.results[0]] = fetch(operand, place)
                continue
            if inner != extract:
                clone(inner, known)
                continue
            read = [
                new[number] if number in new else fetch(operand, [index.build(known) for index in indices[number]])
                for number, operand in enumerate(operands)
            ]
            at = [counter.build(known) for counter in counters]
            known[extract.results[0]] = copy_body(made, [*read, read[0]], at.__getitem__)[0]
        return [known.get(value, value) for value in gather.yielded]

    with before(gather.op):
        inputs = [*_inputs(gather), *(operands[number] for number in added)]
        new_maps = [indexing for indexing in maps if indexing is not None]
        all_maps = [*gather.maps[: gather.inputs], *new_maps, *gather.maps[gather.inputs :]]
        iterators = list(gather.op.attributes["iterator_types"])
        rebuilt = build_generic(inputs, outputs, all_maps, iterators, body)
    copy_attributes(gather.op, rebuilt)
    unread, source = [made.op], extract.operands[0]
    while (op := source.owner.operation) != made.op:
        unread.insert(0, op)
        source = op.operands[0]
    replace(gather.op, list(rebuilt.results))
    for op in itertools.takewhile(lambda op: is_unused(op.results[0]), unread):
        op.erase()


def _counters(gather: LinalgOp, extract: ir.Operation, made: LinalgOp) -> list[Index]:
    """The counters of an op's loops for the element that a gather fetches."""
    _, reshapes = producer_through_reshapes(extract.operands[0])
    place = [read_index(gather, index) for index in list(extract.operands)[1:]]
    for reshape in reversed(reshapes):
        place = in_source(gather, reshape, place)
    written = made.loops_read(made.inputs)
    return [place[written.index(loop)] for loop in range(made.loops)]


def _at(expression: ir.AffineExpr, counters: Sequence[Index]) -> Index:
    if isinstance(expression, ir.AffineDimExpr):
        return counters[ir.AffineDimExpr(expression).position]
    return constant(ir.AffineConstantExpr(expression).value)


def _indexing(gather: LinalgOp, operand: ir.Value, indices: Sequence[Index]) -> ir.AffineMap | None:
    """How a tensor is read by a gather's loops along all of its dims; None where its elements have to be fetched."""
    shape, found = ir.RankedTensorType(operand.type).shape, []
    for index, size in zip(indices, shape, strict=True):
        if index.loops is None or len(index.loops) > 1:
            return None
        if size != (gather.sizes[index.loops[0]] if index.loops else 1):
            return None
        found.append(ir.AffineDimExpr.get(index.loops[0]) if index.loops else ir.AffineConstantExpr.get(0))
    return ir.AffineMap.get(gather.loops, 0, found)


def _is_static(reshape: ir.Operation) -> bool:
    """Whether places can be told without computing sizes, in a reshape that has a place for each element."""
    kinds = [ir.RankedTensorType(value.type) for value in (reshape.operands[0], reshape.results[0])]
    return reshape.name in RESHAPES and all(kind.has_static_shape and kind.rank for kind in kinds)


def _readers(value: ir.Value) -> list[ir.Operation]:
    """What reads a tensor, or a reshape of it."""
    found = []
    for use in value.uses:
        user = use.owner.operation
        found += _readers(user.results[0]) if user.name in RESHAPES else [user]
    return found


def _is_fetch(op: ir.Operation) -> bool:
    return op.name == "tensor.extract"


def _is_stored(made: LinalgOp, number: int) -> bool:
    """Whether an input lies in memory whoever reads it element by element: it is small, given, or summed up as well."""
    value = made.operands[number]
    if len(set(made.loops_read(number))) < made.loops or isinstance(value.owner, ir.Block):
        return True
    views = (any_structured(reader) for reader in _readers(value))
    return any(view is not None and any(view.reductions) for view in views)


def _inputs(view: LinalgOp) -> list[ir.Value]:
    return list(view.operands)[: view.inputs]


def _fewer(gather: LinalgOp, times: int, made: LinalgOp) -> bool:
    """Whether so many times the elements of one op are not more than those of another; unknown sizes count as equal."""
    (few, few_unknown), (many, many_unknown) = map(_elements, (gather, made))
    return few_unknown <= many_unknown and few * times <= many


def _elements(view: LinalgOp) -> tuple[int, int]:
    """The product of the known sizes of an op's loops, and how many are not known."""
    return prod(size for size in view.sizes if size is not None), view.sizes.count(None)
