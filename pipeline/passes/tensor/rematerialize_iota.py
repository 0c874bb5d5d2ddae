"""rematerialize-iota: positions are computed where they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.ir.constants import as_index
from pipeline.ir.indexing_maps import bounded_loops
from pipeline.ir.linalg_op import structured
from pipeline.ir.reshapes import RESHAPES, reassociation
from pipeline.ir.rewriting import (
    before,
    build_generic,
    copy_body,
    drop_unused_inputs,
    is_unused,
    iterator_types,
    replace,
)
from pipeline.mlir import arith, defining_op, ir, linalg, tensor
from pipeline.passmanager.patterns import PatternPass, pattern

#: Builds an element of a tensor, given its place.
_Element = Callable[[Sequence[ir.Value]], ir.Value]

_VIEWS = (*RESHAPES, "tensor.extract_slice")


@dataclass(frozen=True)
class RematerializeIota(PatternPass):
    """Let linalg ops compute what others compute from loop counters alone, as arange does, instead of reading it.

    That is also done through slices and through reshapes that add or drop dims of size 1, for what a body fetches with
    tensor.extract, and for slices that something else than a linalg op reads. Nothing has to be stored for masks and
    positions then.
    """

    name: ClassVar[str] = "rematerialize-iota"
    anchor: ClassVar[str] = "func.func"

    ops: int = field(default=8, metadata={"help": "how many ops may be computed again for each element"})

    @pattern("linalg.generic")
    def read(self, generic: ir.Operation) -> bool:
        """generic(iota)   ->   generic { linalg.index }, where its loops stay bounded"""
        view = structured(generic)
        assert view is not None
        for number in range(view.inputs):
            argument = view.body.arguments[number]
            element = self._element(generic.operands[number]) if not is_unused(argument) else None
            indexing = view.maps[number]
            others = [affine_map for other, affine_map in enumerate(view.maps) if other != number]
            is_plain = all(
                isinstance(expression, (ir.AffineDimExpr, ir.AffineConstantExpr)) for expression in indexing.results
            )
            if element is None or not is_plain or len(bounded_loops(others)) < view.loops:
                continue
            self.passed(generic, "computes positions instead of reading them")
            with generic.location, ir.InsertionPoint.at_block_begin(view.body):
                argument.replace_all_uses_with(element([_at(expression) for expression in indexing.results]))
        return drop_unused_inputs(generic) is not None

    @pattern("tensor.extract")
    def fetch(self, extract: ir.Operation) -> bool:
        """tensor.extract iota[%i]   ->   %i"""
        element = self._element(extract.operands[0])
        if element is None:
            return False
        self.passed(extract, "computes the position that it fetched")
        with before(extract):
            replace(extract, [element(list(extract.operands)[1:])])
        return True

    @pattern("tensor.extract_slice", users_first=True)
    def slice(self, cut: ir.Operation) -> bool:
        """tensor.extract_slice iota   ->   a shorter iota"""
        if is_unused(cut.results[0]):
            cut.erase()
            return True
        element = self._element(cut.results[0])
        if element is None or not ir.RankedTensorType(cut.results[0].type).has_static_shape:
            return False
        self.passed(cut, "computes the positions of the slice alone")
        with before(cut):
            replace(cut, [_positions(cut.results[0], element)])
        return True

    def _element(self, value: ir.Value) -> _Element | None:
        """How an element of a tensor is computed from its place; None if it is not, or not cheaply."""
        op = defining_op(value)
        if op is None or not isinstance(value.type, ir.RankedTensorType):
            return None
        if op.name in _VIEWS:
            place = _place_in_source(op)
            inner = self._element(op.operands[0]) if place is not None else None
            return None if inner is None or place is None else lambda at: inner(place(at))
        view = structured(op) if op.name == "linalg.generic" else None
        if view is None or len(op.results) != 1 or not all(map(is_unused, view.body.arguments)):
            return None
        plain = not any(view.reductions) and view.maps[-1] == ir.AffineMap.get_identity(view.loops)
        cheap = len(view.body_ops) <= self.ops and all(_computes(body_op) for body_op in view.body_ops)
        return (
            (lambda at: copy_body(view, list(view.op.operands), lambda loop: at[loop])[0]) if plain and cheap else None
        )


def _computes(op: ir.Operation) -> bool:
    """Whether an op computes an integer from integers."""
    return not op.regions and (op.name == "linalg.index" or op.name.startswith("arith."))


def _at(expression: ir.AffineExpr) -> ir.Value:
    """The index that a plain expression of an indexing map is."""
    if isinstance(expression, ir.AffineDimExpr):
        return linalg.IndexOp(ir.AffineDimExpr(expression).position).result
    return as_index(ir.AffineConstantExpr(expression).value)


def _place_in_source(op: ir.Operation) -> Callable[[Sequence[ir.Value]], list[ir.Value]] | None:
    """From a place in a slice or a reshape to the place in what it is made from; None where that takes divisions."""
    if op.name == "tensor.extract_slice":
        return _place_of_slice(op)
    source, result = (ir.RankedTensorType(value.type) for value in (op.operands[0], op.results[0]))
    if not source.has_static_shape or not result.has_static_shape:
        return None
    groups = reassociation(op)
    expands = op.name == "tensor.expand_shape"
    many = result if expands else source
    large = [[dim for dim in group if many.shape[dim] != 1] for group in groups]
    if any(len(dims) > 1 for dims in large):
        return None
    if expands:
        return lambda at: [at[dims[0]] if dims else as_index(0) for dims in large]
    owner = {dims[0]: number for number, dims in enumerate(large) if dims}
    return lambda at: [at[owner[dim]] if dim in owner else as_index(0) for dim in range(source.rank)]


def _place_of_slice(op: ir.Operation) -> Callable[[Sequence[ir.Value]], list[ir.Value]] | None:
    offsets, strides = (list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "strides"))
    source, result = (ir.RankedTensorType(value.type) for value in (op.operands[0], op.results[0]))
    if len(op.operands) != 1 or source.rank != result.rank or any(stride != 1 for stride in strides):
        return None
    return lambda at: [
        arith.AddIOp(index, as_index(offset)).result if offset else index
        for index, offset in zip(at, offsets, strict=True)
    ]


def _positions(like: ir.Value, element: _Element) -> ir.Value:
    """A tensor like another one that is computed from counters."""
    kind = ir.RankedTensorType(like.type)
    empty = tensor.EmptyOp(list(kind.shape), kind.element_type).result
    loops = iterator_types([False] * kind.rank)
    identity = ir.AffineMap.get_identity(kind.rank)

    def body(_: Sequence[ir.BlockArgument]) -> list[ir.Value]:
        return [element([linalg.IndexOp(dim).result for dim in range(kind.rank)])]

    return build_generic([], [empty], [identity], loops, body).results[0]
