"""contract-in-bf16: matrix products and convolutions read their operands as bf16, or f16, and add up in f32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.kept_weights import kept_weight
from pipeline.analysis.op_naming import is_product
from pipeline.analysis.paired_sum import narrow_sum_of, takes_longer_in_pairs
from pipeline.analysis.product_body import is_quantized
from pipeline.analysis.widened_bf16 import narrow_type, padding_of, widened
from pipeline.analysis.zero_insertion import puts_among_zeros
from pipeline.ir.linalg_op import LinalgOp, any_structured, structured
from pipeline.ir.rewriting import before, build_elementwise, empty_like
from pipeline.mlir import arith, defining_op, ir, linalg, tensor
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class ContractInBf16(PatternPass):
    """Give contractions in f32 operands of bf16: their products are exact, and added up in f32 as before.

    Processors that have dot products of bf16 take two steps of the sum at once, and half of the memory is read. Only
    operands of contractions are rounded, to the nearest bf16: sums, elementwise ops, norms and softmax stay in f32.
    Depthwise convolutions, other short sums, and products with one column are left alone. So are factors that bodies
    dequantize, if bf16 has them as they are: the other factor alone is read as bf16. With `f16`, operands that
    were f16 are read as such, too: the tensor cores of GPUs take both.
    """

    name: ClassVar[str] = "contract-in-bf16"
    anchor: ClassVar[str] = "func.func"

    round: bool = field(default=False, metadata={"help": "round operands in f32, too; else only what was bf16 counts"})
    supported: bool = field(default=True, metadata={"help": "whether the processor has dot products of bf16"})
    f16: bool = field(default=False, metadata={"help": "operands that were f16 stay that, too"})
    least_columns: int = field(default=2, metadata={"help": "a product with fewer columns stays in f32"})
    least_sum: int = field(default=16, metadata={"help": "a sum of fewer products stays in f32"})

    keep: tuple[str, ...] = field(default=(), metadata={"help": "weights that are not rounded, by patterns of names"})

    def analyze(self, op: ir.Operation) -> tuple[ConstExprs, ...]:
        """What comes from weights alone, where some are to be kept."""
        return (ConstExprs(op),) if self.round and self.keep else ()

    @pattern("linalg.*", outermost=True)
    def narrow(self, op: ir.Operation, weights: tuple[ConstExprs, ...]) -> bool:
        """matmul(extf(x), extf(w))   ->   matmul(x, w), and with round matmul(x, w)   ->   matmul(bf16(x), bf16(w))"""
        if not _is_contraction(op):
            return self._narrow_data(op)
        kinds = [narrow_type(value, self.f16) for value in _factors(op)]
        is_exact = kinds[0] is not None and kinds[0] == kinds[1]
        if not self.round and not is_exact:
            return False
        kept = None if is_exact else self._kept(op, weights)
        reason = self._why_not(op) if kept is None else f"'{kept}' is to be kept"
        if reason is not None:
            self.missed(op, f"computed in f32: {reason}")
            return False
        kind = kinds[0] if is_exact and kinds[0] is not None else ir.BF16Type.get()
        rounded = sum(own != kind for own in kinds)
        self.passed(op, f"dot products of {kind}, {rounded} operands rounded" if rounded else f"dot products of {kind}")
        with before(op):
            operands = [_narrowed(value, kind) for value in _factors(op)]
        _take(op, dict(enumerate(operands)))
        return True

    def _narrow_data(self, op: ir.Operation) -> bool:
        """sum(extf(x) * w)   ->   sum(x * w), and with round sum(x * w)   ->   sum(bf16(x) * w), for w that bf16 has"""
        view = structured(op) if any(map(_has_bytes, op.operands)) else None
        found = None if view is None or not is_product(op) else narrow_sum_of(view)
        if view is None or found is None or found.data not in list(view.body.arguments)[:2]:
            return False
        number = ir.BlockArgument(found.data).arg_number
        value, kind = op.operands[number], ir.BF16Type.get()
        is_exact = narrow_type(value) == kind
        if not _is_f32(value) or not (is_exact or self.round):
            return False
        few = "few rows share the factor, and dot products would save less than making it bf16 takes"
        reason = few if takes_longer_in_pairs(found, view) else self._why_not(op)
        if reason is not None:
            self.missed(op, f"computed in f32: {reason}")
            return False
        self.passed(op, "dot products of bf16 and dequantized factors" + ("" if is_exact else ", 1 operand rounded"))
        with before(op):
            narrowed = _narrowed(value, kind)
        _take(op, {number: narrowed})
        return True

    def _kept(self, op: ir.Operation, weights: tuple[ConstExprs, ...]) -> str | None:
        """The name of a weight that is not to be rounded."""
        names = (kept_weight(value, known, self.keep) for known in weights for value in _factors(op))
        return next((name for name in names if name is not None), None)

    def _why_not(self, op: ir.Operation) -> str | None:
        """Why a contraction stays as it is; None if it is to be rewritten."""
        view = any_structured(op)
        assert view is not None
        if not self.supported:
            return "the processor has no dot products of bf16"
        if "depthwise" in op.name:
            return "a depthwise convolution adds up few products"
        columns = ir.RankedTensorType(op.results[0].type).shape[-1]
        if columns == 1 and self.least_columns > 1:
            return "its result has one column, whose sum runs along vectors"
        sizes = [view.sizes[loop] for loop, reduces in enumerate(view.reductions) if reduces]
        if None not in sizes and prod(size or 0 for size in sizes) < self.least_sum:
            return f"it adds up fewer than {self.least_sum} products"
        return None


def _is_contraction(op: ir.Operation) -> bool:
    """Whether an op adds up products of two operands, all in f32."""
    if len(op.results) != 1 or len(op.operands) != 3 or not all(_is_f32(value) for value in op.operands):
        return False
    return is_product(op)


def _is_f32(value: ir.Value) -> bool:
    kind = value.type
    return isinstance(kind, ir.RankedTensorType) and isinstance(kind.element_type, ir.F32Type)


def _has_bytes(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and is_quantized(value.type.element_type)


def _factors(op: ir.Operation) -> list[ir.Value]:
    return list(op.operands)[:2]


def _narrowed(value: ir.Value, kind: ir.Type) -> ir.Value:
    """A tensor in f32 in a type of 16 bits: rounded as early as moving its elements allows."""
    producer = defining_op(value)
    if producer is None:
        return _rounded(value, kind)
    source = widened(producer, f16=True)
    if source is not None and source.type.element_type == kind:
        return source
    if producer.name == "tensor.pad" and padding_of(producer) == 0:
        return _padded(producer, _narrowed(producer.operands[0], kind))
    if puts_among_zeros(producer):
        return _inserted(producer, _narrowed(producer.operands[0], kind))
    if narrow_type(value, f16=True) != kind:
        return _rounded(value, kind)
    moved = _narrowed(producer.operands[0], kind)
    if producer.name == "linalg.transpose":
        permutation = list(ir.DenseI64ArrayAttr(producer.attributes["permutation"]))
        output = empty_like(moved, kind, permutation)
        return linalg.transpose(moved, outs=[output], permutation=permutation).results[0]
    attributes = {name: producer.attributes[name] for name in producer.attributes}
    operands = [moved, *list(producer.operands)[1:]]
    return ir.Operation.create(producer.name, [_of_type(value.type, kind)], operands, attributes).result


def _rounded(value: ir.Value, kind: ir.Type) -> ir.Value:
    return build_elementwise(value, kind, lambda element: arith.TruncFOp(kind, element).result)


def _padded(pad: ir.Operation, source: ir.Value) -> ir.Value:
    """A tensor.pad of the same form with zeros, of another tensor."""
    element = ir.RankedTensorType(source.type).element_type
    attributes = {name: pad.attributes[name] for name in pad.attributes}
    kind = _of_type(pad.results[0].type, element)
    zero = arith.ConstantOp(element, 0.0).result
    made = ir.Operation.create("tensor.pad", [kind], [source, *list(pad.operands)[1:]], attributes, regions=1)
    block = ir.Block.create_at_start(made.regions[0], [ir.IndexType.get()] * kind.rank)
    with ir.InsertionPoint(block):
        tensor.YieldOp(zero)
    return made.result


def _inserted(insert: ir.Operation, source: ir.Value) -> ir.Value:
    """A tensor.insert_slice of the same form into zeros, of another tensor."""
    element = ir.RankedTensorType(source.type).element_type
    attributes = {name: insert.attributes[name] for name in insert.attributes}
    zero = arith.ConstantOp(element, 0.0).result
    zeros = linalg.fill(zero, outs=[empty_like(insert.results[0], element)])
    operands = [source, zeros, *list(insert.operands)[2:]]
    return ir.Operation.create("tensor.insert_slice", [zeros.type], operands, attributes).result


def _of_type(kind: ir.Type, element: ir.Type) -> ir.RankedTensorType:
    return ir.RankedTensorType.get(ir.RankedTensorType(kind).shape, element)


def _take(op: ir.Operation, operands: Mapping[int, ir.Value]) -> None:
    """Has a contraction read other operands, whose elements its body extends."""
    view: LinalgOp | None = any_structured(op)
    assert view is not None
    block = view.body
    for number, value in operands.items():
        op.operands[number] = value
        element = block.arguments[number]
        element.set_type(ir.RankedTensorType(value.type).element_type)
        with op.location, ir.InsertionPoint.at_block_begin(block):
            wide = arith.ExtFOp(ir.F32Type.get(), element)
        element.replace_all_uses_except(wide.result, wide.operation)
