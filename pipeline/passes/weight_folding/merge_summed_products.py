"""merge-summed-products: a sum of matrix products becomes one product with a longer sum."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.contraction import sums_products
from pipeline.ir.attributes import STOP_FUSION
from pipeline.ir.linalg_op import LinalgOp, any_structured
from pipeline.ir.matchers import is_zero
from pipeline.ir.rewriting import before, is_unused
from pipeline.mlir import defining_op, ir, linalg, tensor
from pipeline.passes.weight_folding.addition_tree import read_sums, terms
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class MergeSummedProducts(Pass):
    """Merge matrix products whose results are added up.

    a @ b + c @ d + e  ->  [a c] @ [b; d] + e

    The gradient of a weight that is used several times, such as that of a cell at each step of time, is such a sum:
    each product is small, and writes and reads a gradient as large as the weight. That pays where the operands, which
    are copied side by side, have no more elements than the results that need not be written. All sizes have to be
    known. Products with weights stay: their results have few rows, and the epilogue of one adds another.
    """

    name: ClassVar[str] = "merge-summed-products"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Merges the products of one function."""
        weights = ConstExprs(op)
        for last in read_sums(op, weights):
            places = terms(last, weights)
            families: dict[Hashable, list[_SummedProduct]] = {}
            for user, number in places:
                term = _read_term(user.operands[number], weights)
                if term is not None:
                    families.setdefault(term.family, []).append(term)
            chosen = [family for family in families.values() if len(family) > 1 and self._pays(family)]
            if chosen:
                _merge(last, places, chosen)

    def _pays(self, family: Sequence[_SummedProduct]) -> bool:
        copied = sum(_elements(operand) for term in family for operand in list(term.op.operands)[:2])
        saved = (len(family) - 1) * _elements(family[0].op.results[0])
        others = f"{len(family) - 1} other products that are added to it"
        if copied > saved:
            reason = f"their operands have {copied} elements, their results {saved}"
            self.missed(family[0].op, f"not merged with {others}: {reason}")
            return False
        self.passed(family[0].op, f"merged with {others}")
        return True


@dataclass(frozen=True)
class _SummedProduct:
    """A matrix product that is a term of a sum and nothing else.

    Attributes:
        dims: the dim of each operand that is summed over.
    """

    view: LinalgOp
    dims: tuple[int, int]

    @property
    def op(self) -> ir.Operation:
        """The product."""
        return self.view.op

    @property
    def family(self) -> Hashable:
        """What products have in common that can be merged: all but the length of their sums."""
        op = self.op
        attributes = tuple(sorted((name, str(op.attributes[name])) for name in op.attributes if "." not in name))
        kinds = [ir.RankedTensorType(value.type) for value in (*op.operands, op.results[0])]
        shapes = tuple(tuple(kind.shape) for kind in kinds)
        without = tuple(
            tuple(size for dim, size in enumerate(shape) if operand > 1 or dim != self.dims[operand])
            for operand, shape in enumerate(shapes)
        )
        return op.name, attributes, without, tuple(str(kind.element_type) for kind in kinds), op.block


def _read_term(value: ir.Value, weights: ConstExprs) -> _SummedProduct | None:
    """A term of a sum as a product whose sum may be made longer; None if it is none."""
    op = defining_op(value)
    if op is None or not op.name.startswith("linalg.") or len(op.operands) != 3 or len(op.results) != 1:
        return None
    if STOP_FUSION in op.attributes or len(list(value.uses)) != 1 or not is_zero(op.operands[2]):
        return None
    if any(operand in weights for operand in list(op.operands)[:2]):
        return None
    view = any_structured(op) if sums_products(op.regions[0].blocks[0]) else None
    if view is None or len(view.summed) != 1 or any(size in (None, 0) for size in view.sizes):
        return None
    read = [view.loops_read(operand) for operand in range(2)]
    plain = all(len(loops) == len(indexing.results) for loops, indexing in zip(read, view.maps, strict=False))
    if not plain or any(loops.count(view.summed[0]) != 1 for loops in read):
        return None
    return _SummedProduct(view, (read[0].index(view.summed[0]), read[1].index(view.summed[0])))


def _elements(value: ir.Value) -> int:
    return prod(ir.RankedTensorType(value.type).shape)


def _merge(
    last: ir.Operation, places: Sequence[tuple[ir.Operation, int]], families: Sequence[list[_SummedProduct]]
) -> None:
    """Builds the sum anew in front of its last op, each family as one product, and takes away the old one."""
    merged = {term.op for family in families for term in family}
    kept = [user.operands[number] for user, number in places if defining_op(user.operands[number]) not in merged]
    with before(last):
        first, *others = [_joined(family) for family in families] + kept
        for other in others:
            addition = last.clone()
            addition.operands[0], addition.operands[1] = first, other
            first = addition.results[0]
    last.results[0].replace_all_uses_with(first)
    unread = [last]
    while unread:
        op = unread.pop()
        terms_of_it = () if op in merged else list(op.operands)[:2]
        makers = {maker for term in terms_of_it if (maker := defining_op(term)) is not None}
        op.erase()
        unread += [maker for maker in makers if is_unused(maker.results[0])]


def _joined(family: Sequence[_SummedProduct]) -> ir.Value:
    """The product of the operands of all, side by side."""
    operands = [
        _side_by_side([term.op.operands[operand] for term in family], family[0].dims[operand]) for operand in range(2)
    ]
    joined = family[0].op.clone()
    for operand, value in enumerate(operands):
        joined.operands[operand] = value
    return joined.results[0]


def _side_by_side(values: Sequence[ir.Value], dim: int) -> ir.Value:
    """Tensors one behind the other along a dim; of transposed ones what they are made of, transposed."""
    makers = [defining_op(value) for value in values]
    orders = [_permutation(maker) for maker in makers]
    order = orders[0]
    if order is None or any(other != order for other in orders):
        return _concatenated(values, dim)
    source = _concatenated([maker.operands[0] for maker in makers if maker is not None], order[dim])
    shape = ir.RankedTensorType(source.type).shape
    empty = tensor.EmptyOp([shape[place] for place in order], ir.RankedTensorType(source.type).element_type)
    return linalg.transpose(source, outs=[empty.result], permutation=order).results[0]


def _permutation(maker: ir.Operation | None) -> list[int] | None:
    if maker is None or maker.name != "linalg.transpose":
        return None
    return list(ir.DenseI64ArrayAttr(maker.attributes["permutation"]))


def _concatenated(values: Sequence[ir.Value], dim: int) -> ir.Value:
    first = ir.RankedTensorType(values[0].type)
    shape = list(first.shape)
    shape[dim] = sum(ir.RankedTensorType(value.type).shape[dim] for value in values)
    return tensor.ConcatOp(ir.RankedTensorType.get(shape, first.element_type), dim, values).result
