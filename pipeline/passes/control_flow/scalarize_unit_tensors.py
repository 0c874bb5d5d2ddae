"""scalarize-unit-tensors: tensors of one element that control flow reads are computed as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.code_motion import why_not_speculated
from pipeline.ir.constants import as_index
from pipeline.ir.linalg_op import bounded, structured
from pipeline.ir.reshapes import RESHAPES
from pipeline.ir.rewriting import before, copy_body, drop_unused_inputs, is_unused, replace
from pipeline.mlir import arith, defining_op, ir, tensor, walk
from pipeline.passes.control_flow.scalar_iter_args import carry_numbers
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class ScalarizeUnitTensors(Pass):
    """Compute the counters, flags and indices of branches and loops as numbers, not as tensors of one element.

    A number that is extracted from a linalg op of one iteration is computed by that op's body alone; integers and flags
    that a loop carries are carried as numbers; and a linalg op that reads an integer tensor of one element, or a
    constant whose elements are all the same, reads the number. So that no kernel runs and no memory is needed for what
    a register holds.
    """

    name: ClassVar[str] = "scalarize-unit-tensors"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Rewrites one function."""
        for loop in carry_numbers(op):
            self.passed(loop, "carries integers of one element as numbers")
        # Those in the bodies of linalg ops stay: such an op may be erased as soon as its result is a number.
        pending = [
            extract for extract in walk(op, "tensor.extract") if not extract.parent.operation.name.startswith("linalg.")
        ]
        while pending:
            pending += self._compute(pending.pop())
        for generic in walk(op, "linalg.generic"):
            self._read_numbers(generic)

    def _compute(self, extract: ir.Operation) -> list[ir.Operation]:
        """extract(generic(x)) -> body(extract(x)); returns the new tensor.extract ops."""
        source, *indices = extract.operands
        producer = defining_op(source)
        if producer is None or not _is_one(source.type):
            return []
        if producer.name in RESHAPES and _is_one(producer.operands[0].type):
            taken = _replace_by_extract(extract, producer.operands[0])
            _erase_if_unused(producer)
            return [taken]
        if producer.name == "tensor.from_elements":
            replace(extract, [producer.operands[0]])
            _erase_if_unused(producer)
            return []
        if producer.name != "linalg.generic" or not _runs_once(producer) or why_not_speculated(producer):
            return []
        self.passed(extract, f"computes the number that it takes from {producer.name}")
        with before(extract):
            value, found = _number(producer, ir.OpResult(source).result_number)
        replace(extract, [value])
        _erase_if_unused(producer)
        return found

    def _read_numbers(self, generic: ir.Operation) -> None:
        """generic(from_elements(n)) reads n; what its body computes from numbers alone leaves the body."""
        body = generic.regions[0].blocks[0]
        inputs = len(generic.operands) - len(generic.results)
        for argument, operand in list(zip(body.arguments, generic.operands, strict=True))[:inputs]:
            if is_unused(argument) or not isinstance(operand.type, ir.RankedTensorType):
                continue
            with before(generic):
                number = _boxed(operand) or _splat(operand)
            if number is not None:
                self.passed(generic, "reads a number, not a tensor")
                argument.replace_all_uses_with(number)
        for op in [op.operation for op in body.operations][:-1]:
            if op.name != "linalg.index" and _is_from_outside(op, body) and not why_not_speculated(op):
                op.move_before(generic)
        drop_unused_inputs(generic)


def _is_one(kind: ir.Type) -> bool:
    """Whether a tensor type has one element."""
    if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape:
        return False
    return all(size == 1 for size in kind.shape)


def _runs_once(generic: ir.Operation) -> bool:
    if not all(_is_one(value.type) for value in generic.operands if isinstance(value.type, ir.RankedTensorType)):
        return False
    view = bounded(generic)
    return view is not None and all(size == 1 for size in view.sizes)


def _replace_by_extract(extract: ir.Operation, source: ir.Value) -> ir.Operation:
    with before(extract):
        taken = _extract(source)
    replace(extract, [taken.results[0]])
    return taken


def _extract(source: ir.Value) -> ir.Operation:
    """The one element of a tensor."""
    rank = ir.RankedTensorType(source.type).rank
    zeros = [as_index(0)] * rank if rank else []
    return tensor.ExtractOp(source, zeros).operation


def _number(generic: ir.Operation, result: int) -> tuple[ir.Value, list[ir.Operation]]:
    """At the insertion point: the one element that a generic computes, and the extracts of what it reads."""
    view = structured(generic)
    assert view is not None
    elements = list(generic.operands)
    found = []
    for number, argument in enumerate(view.body.arguments):
        if not is_unused(argument) and isinstance(elements[number].type, ir.RankedTensorType):
            found.append(_extract(elements[number]))
            elements[number] = found[-1].results[0]
    values = copy_body(view, elements, lambda _: as_index(0))
    return values[result], found


def _erase_if_unused(op: ir.Operation | None) -> None:
    if op is not None and all(map(is_unused, op.results)):
        op.erase()


def _boxed(value: ir.Value) -> ir.Value | None:
    """The integer that a tensor of one element was made from."""
    op = defining_op(value)
    while op is not None and op.name in RESHAPES:
        op = defining_op(op.operands[0])
    if op is None or op.name != "tensor.from_elements" or len(op.operands) != 1:
        return None
    return op.operands[0] if isinstance(op.operands[0].type, (ir.IntegerType, ir.IndexType)) else None


def _splat(value: ir.Value) -> ir.Value | None:
    """The number that all elements of a constant are."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    elements = op.attributes["value"]
    kind = ir.ShapedType(value.type).element_type
    if not isinstance(elements, ir.DenseElementsAttr) or not isinstance(kind, (ir.IntegerType, ir.FloatType)):
        return None
    return arith.ConstantOp(kind, elements.get_splat_value()).result if elements.is_splat else None


def _is_from_outside(op: ir.Operation, body: ir.Block) -> bool:
    return not op.regions and all(_block_of(value) != body for value in op.operands)


def _block_of(value: ir.Value) -> ir.Block:
    owner = value.owner
    return owner if isinstance(owner, ir.Block) else owner.operation.block
