"""contract-in-bf16: matrix products and convolutions read their operands as bf16 and add up in f32."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.kept_weights import kept_weight
from pipeline.analysis.op_naming import is_product
from pipeline.analysis.widened_bf16 import padding_of, was_bf16, widened
from pipeline.analysis.zero_insertion import puts_among_zeros
from pipeline.ir.linalg_op import LinalgOp, any_structured
from pipeline.ir.rewriting import before, build_generic, empty_like, iterator_types
from pipeline.mlir import arith, defining_op, ir, linalg, tensor
from pipeline.passmanager.patterns import PatternPass, pattern


@dataclass(frozen=True)
class ContractInBf16(PatternPass):
    """Give contractions in f32 operands of bf16: their products are exact, and added up in f32 as before.

    Processors that have dot products of bf16 take two steps of the sum at once, and half of the memory is read. Only
    operands of contractions are rounded, to the nearest bf16: sums, elementwise ops, norms and softmax stay in f32.
    Depthwise convolutions, other short sums, and products with one column are left alone.
    """

    name: ClassVar[str] = "contract-in-bf16"
    anchor: ClassVar[str] = "func.func"

    round: bool = field(default=False, metadata={"help": "round operands in f32, too; else only what was bf16 counts"})
    supported: bool = field(default=True, metadata={"help": "whether the processor has dot products of bf16"})
    least_sum: int = field(default=16, metadata={"help": "a sum of fewer products stays in f32"})

    keep: tuple[str, ...] = field(default=(), metadata={"help": "weights that are not rounded, by patterns of names"})

    def analyze(self, op: ir.Operation) -> tuple[ConstExprs, ...]:
        """What comes from weights alone, where some are to be kept."""
        return (ConstExprs(op),) if self.round and self.keep else ()

    @pattern("linalg.*", outermost=True)
    def narrow(self, op: ir.Operation, weights: tuple[ConstExprs, ...]) -> bool:
        """matmul(extf(x), extf(w))   ->   matmul(x, w), and with round matmul(x, w)   ->   matmul(bf16(x), bf16(w))"""
        if not _is_contraction(op):
            return False
        exact = [was_bf16(value) for value in _factors(op)]
        if not self.round and not all(exact):
            return False
        kept = self._kept(op, weights) if exact != [True, True] else None
        reason = self._why_not(op) if kept is None else f"'{kept}' is to be kept"
        if reason is not None:
            self.missed(op, f"computed in f32: {reason}")
            return False
        rounded = exact.count(False)
        self.passed(op, f"dot products of bf16, {rounded} operands rounded" if rounded else "dot products of bf16")
        with before(op):
            operands = [_bf16(value) for value in _factors(op)]
        _take(op, operands)
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
        if ir.RankedTensorType(op.results[0].type).shape[-1] == 1:
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


def _factors(op: ir.Operation) -> list[ir.Value]:
    return list(op.operands)[:2]


def _bf16(value: ir.Value) -> ir.Value:
    """A tensor in f32 as bf16: rounded as early as moving its elements allows."""
    producer = defining_op(value)
    if producer is None:
        return _rounded(value)
    source = widened(producer)
    if source is not None:
        return source
    if producer.name == "tensor.pad" and padding_of(producer) == 0:
        return _padded(producer, _bf16(producer.operands[0]))
    if puts_among_zeros(producer):
        return _inserted(producer, _bf16(producer.operands[0]))
    if not was_bf16(value):
        return _rounded(value)
    if producer.name == "linalg.transpose":
        permutation = list(ir.DenseI64ArrayAttr(producer.attributes["permutation"]))
        moved = _bf16(producer.operands[0])
        output = empty_like(moved, ir.BF16Type.get(), permutation)
        return linalg.transpose(moved, outs=[output], permutation=permutation).results[0]
    moved = _bf16(producer.operands[0])
    attributes = {name: producer.attributes[name] for name in producer.attributes}
    operands = [moved, *list(producer.operands)[1:]]
    return ir.Operation.create(producer.name, [_in_bf16(value.type)], operands, attributes).result


def _rounded(value: ir.Value) -> ir.Value:
    kind = ir.RankedTensorType(value.type)
    identity = ir.AffineMap.get_identity(kind.rank)
    output = empty_like(value, ir.BF16Type.get())
    cast = build_generic(
        [value],
        [output],
        [identity, identity],
        iterator_types([False] * kind.rank),
        lambda elements: [arith.TruncFOp(ir.BF16Type.get(), elements[0]).result],
    )
    return cast.results[0]


def _padded(pad: ir.Operation, source: ir.Value) -> ir.Value:
    """A tensor.pad of the same form with zeros, of another tensor."""
    attributes = {name: pad.attributes[name] for name in pad.attributes}
    kind = _in_bf16(pad.results[0].type)
    zero = arith.ConstantOp(ir.BF16Type.get(), 0.0).result
    made = ir.Operation.create("tensor.pad", [kind], [source, *list(pad.operands)[1:]], attributes, regions=1)
    block = ir.Block.create_at_start(made.regions[0], [ir.IndexType.get()] * kind.rank)
    with ir.InsertionPoint(block):
        tensor.YieldOp(zero)
    return made.result


def _inserted(insert: ir.Operation, source: ir.Value) -> ir.Value:
    """A tensor.insert_slice of the same form into zeros, of another tensor."""
    attributes = {name: insert.attributes[name] for name in insert.attributes}
    zero = arith.ConstantOp(ir.BF16Type.get(), 0.0).result
    zeros = linalg.fill(zero, outs=[empty_like(insert.results[0], ir.BF16Type.get())])
    operands = [source, zeros, *list(insert.operands)[2:]]
    return ir.Operation.create("tensor.insert_slice", [zeros.type], operands, attributes).result


def _in_bf16(kind: ir.Type) -> ir.RankedTensorType:
    return ir.RankedTensorType.get(ir.RankedTensorType(kind).shape, ir.BF16Type.get())


def _take(op: ir.Operation, operands: list[ir.Value]) -> None:
    """Has a contraction read other operands, whose elements its body extends."""
    view: LinalgOp | None = any_structured(op)
    assert view is not None
    block = view.body
    for number, value in enumerate(operands):
        op.operands[number] = value
        element = block.arguments[number]
        element.set_type(ir.BF16Type.get())
        with op.location, ir.InsertionPoint.at_block_begin(block):
            wide = arith.ExtFOp(ir.F32Type.get(), element)
        element.replace_all_uses_except(wide.result, wide.operation)
