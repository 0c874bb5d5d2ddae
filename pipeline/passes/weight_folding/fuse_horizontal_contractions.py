"""fuse-horizontal-contractions: small products of one tensor with several weights become one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis.channel_vectors import Given, Vector
from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.contraction import Contraction, read_contraction, read_init
from pipeline.analysis.scale_shift import Affine, Elementwise, read_elementwise
from pipeline.ir.attributes import STOP_FUSION
from pipeline.ir.constants import as_index
from pipeline.ir.element_types import byte_size
from pipeline.ir.rewriting import before
from pipeline.mlir import ir, linalg, tensor
from pipeline.passes.weight_folding.join_points import meeting_ops
from pipeline.passes.weight_folding.weight_builder import WeightSide, apply_affine
from pipeline.passmanager.base import Pass

_DYNAMIC = ir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class FuseHorizontalContractions(Pass):
    """Join matrix products and convolutions of the same data with different weights, as those of gates are.

    x @ v + a, x @ w + b  ->  y = x @ [v w] + [a b], y[:, :n], y[:, n:]

    The weights are joined on the weights' side, so by @prepare. That pays where the results meet in one elementwise op,
    as the two halves of a gated unit do. Results that go different ways, such as q, k and v, would lose what is
    fused with each product; and rows of a large joined weight are farther from each other than those of its parts. So
    the results must meet, unless `apart`, and the joined weight may have `most-bytes`.
    """

    name: ClassVar[str] = "fuse-horizontal-contractions"
    anchor: ClassVar[str] = "func.func"

    most_bytes: int = field(default=1 << 17, metadata={"help": "how many bytes a joined weight may have"})
    apart: bool = field(default=False, metadata={"help": "join products whose results go different ways, too"})

    def run(self, op: ir.Operation) -> None:
        """Joins the products of one function."""
        weights = ConstExprs(op)
        families: dict[Hashable, list[_Sibling]] = {}
        for contraction in _contractions(op, weights):
            sibling = _sibling(contraction, weights)
            if sibling is not None:
                families.setdefault(sibling.family, []).append(sibling)
        for siblings in families.values():
            if len(siblings) > 1 and self._pays(siblings, weights):
                self.passed(siblings[0].op, f"joined with {len(siblings) - 1} other products of the same data")
                _join(siblings, weights)

    def _pays(self, siblings: Sequence[_Sibling], weights: ConstExprs) -> bool:
        size = sum(byte_size(sibling.weight.type) or 0 for sibling in siblings)
        if size > self.most_bytes:
            reason = f"their weights have {size} bytes, more than {self.most_bytes}"
        elif any(len(list(sibling.weight.uses)) > 1 for sibling in siblings):
            reason = "a weight has another use, for which it would be kept twice"
        elif not self.apart and len({meeting_ops(sibling.result, weights) for sibling in siblings}) > 1:
            reason = "their results go different ways"
        else:
            return True
        self.missed(siblings[0].op, f"not joined with {len(siblings) - 1} other products of the same data: {reason}")
        return False


@dataclass(frozen=True)
class _Sibling:
    """A product that may be joined: along dim `columns` of its weight and dim `out` of its result.

    Attributes:
        addition: the op behind it, if that is the only one and adds `bias` along `out`.
    """

    contraction: Contraction
    columns: int
    out: int
    addition: Elementwise | None
    bias: Vector | None

    @property
    def op(self) -> ir.Operation:
        """The product."""
        return self.contraction.view.op

    @property
    def weight(self) -> ir.Value:
        """The weight."""
        return self.op.operands[self.contraction.weight]

    @property
    def result(self) -> ir.Value:
        """What is read by others."""
        return self.op.results[0] if self.addition is None else self.addition.op.results[0]

    @property
    def size(self) -> int:
        """How many columns there are."""
        return ir.RankedTensorType(self.weight.type).shape[self.columns]

    @property
    def family(self) -> Hashable:
        """What siblings have in common."""
        shape = list(ir.RankedTensorType(self.weight.type).shape)
        shape[self.columns] = 0
        kinds = tuple(str(ir.RankedTensorType(value.type).element_type) for value in (*self.op.operands, self.result))
        attributes = tuple(sorted((name, str(self.op.attributes[name])) for name in self.op.attributes))
        data = self.op.operands[self.contraction.data]
        place = (data, self.contraction.data, self.op.block)
        return (*place, self.op.name, attributes, tuple(shape), kinds, self.addition is None)


def _contractions(function: ir.Operation, weights: ConstExprs) -> list[Contraction]:
    found: list[Contraction] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if not op.operation.name.startswith("linalg."):
            return ir.WalkResult.ADVANCE
        contraction = read_contraction(op.operation, weights)
        if contraction is not None:
            found.append(contraction)
        return ir.WalkResult.SKIP

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _sibling(contraction: Contraction, weights: ConstExprs) -> _Sibling | None:
    """A product as a sibling; None if it adds to something, or has no loop of columns of its own."""
    op = contraction.view.op
    if STOP_FUSION in op.attributes or read_init(contraction, weights) != (True, None):
        return None
    data = contraction.view.maps[contraction.data]
    of_data = {str(expression) for expression in data.results}
    columns = [
        loop
        for loop in contraction.weight_loops
        if loop in contraction.output_loops and not any(f"d{loop}" in text for text in of_data)
    ]
    if len(columns) != 1:
        return None
    out = contraction.output_loops.index(columns[0])
    uses = list(op.results[0].uses)
    addition = read_elementwise(uses[0].owner.operation, weights) if len(uses) == 1 else None
    size = ir.RankedTensorType(op.results[0].type).shape[out]
    if addition is not None and (
        len(addition.steps) != 1
        or addition.steps[0].operation != "add"
        or (addition.steps[0].vector.dims, addition.steps[0].vector.shape) != ((out,), (size,))
        or ir.RankedTensorType(addition.op.results[0].type).element_type
        != ir.RankedTensorType(op.results[0].type).element_type
    ):
        addition = None
    bias = addition.steps[0].vector if addition is not None else None
    return _Sibling(contraction, contraction.weight_loops.index(columns[0]), out, addition, bias)


def _join(siblings: Sequence[_Sibling], weights: ConstExprs) -> None:
    """Builds the joined product in front of the first one, and gives each user a slice of it."""
    first = siblings[0]
    side = WeightSide(weights, first.op)
    with before(first.op):
        joined = first.op.clone()
        joined.operands[first.contraction.weight] = side.joined([sibling.weight for sibling in siblings], first.columns)
        out = _grown(first, sum(sibling.size for sibling in siblings))
        zero = side.constant(0.0, out.type.element_type)
        joined.operands[2] = linalg.fill(zero, outs=[out])
        joined.results[0].set_type(out.type)
        joined.move_before(first.op)
        result = joined.results[0]
        if first.bias is not None:
            parts = [side.build(sibling.bias) for sibling in siblings if sibling.bias is not None]
            bias = side.joined(parts, 0)
            shift = Given((first.out,), tuple(ir.RankedTensorType(bias.type).shape), bias)
            result = apply_affine(result, Affine(shift=shift), out, side).results[0]
        slices = _slices(result, siblings)
    for sibling, part in zip(siblings, slices, strict=True):
        sibling.result.replace_all_uses_with(part)
    for sibling in siblings:
        if sibling.addition is not None:
            sibling.addition.op.erase()
        sibling.op.erase()


def _grown(first: _Sibling, columns: int) -> ir.Value:
    """An empty tensor like the result of a product, with other columns."""
    kind = ir.RankedTensorType(first.op.results[0].type)
    sizes = _sizes(first.op.operands[2], kind)
    sizes[first.out] = columns
    return tensor.EmptyOp(sizes, kind.element_type).result


def _sizes(value: ir.Value, kind: ir.RankedTensorType) -> list[int | ir.Value]:
    return [
        tensor.DimOp(value, as_index(dim)).result if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim)
        for dim in range(kind.rank)
    ]


def _slices(joined: ir.Value, siblings: Sequence[_Sibling]) -> list[ir.Value]:
    """The part of each sibling."""
    slices, offset = [], 0
    for sibling in siblings:
        kind = ir.RankedTensorType(sibling.result.type)
        sizes = _sizes(joined, kind)
        known = [size for size in sizes if not isinstance(size, int)]
        static = [size if isinstance(size, int) else _DYNAMIC for size in sizes]
        offsets = [offset if dim == sibling.out else 0 for dim in range(kind.rank)]
        ones = [1] * kind.rank
        slices.append(tensor.ExtractSliceOp(kind, joined, [], known, [], offsets, static, ones).result)
        offset += sibling.size
    return slices
