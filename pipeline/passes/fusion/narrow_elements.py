"""Ops that make narrow elements of wide ones: where they stay apart, so that wide ones are not stored."""

from __future__ import annotations

from pipeline.ir.linalg_op import LinalgOp, any_structured, structured
from pipeline.mlir import defining_op, has_one_use, ir

#: What has fewer bits says yes or no.
_LEAST_BITS = 8


def is_sum_of_its_own(producer: LinalgOp, consumer: LinalgOp) -> bool:
    """Whether an op makes narrow elements of a product or a reduction, and they are used at the end of another one.

    Each can be the epilogue of its sum then, so that no wide elements are in memory.
    """
    element = ir.RankedTensorType(producer.op.results[0].type).element_type
    if _bits(element) < _LEAST_BITS:
        return False
    own = {value for value in _sums(producer) if _bits(value.type.element_type) > _bits(element)}
    reader: LinalgOp | None = consumer if own else None
    while reader is not None and reader.is_elementwise and len(reader.op.results) == 1:
        if _sums(reader) - own:
            return True
        uses = list(reader.op.results[0].uses)
        reader = structured(uses[0].owner.operation) if len(uses) == 1 else None
    return False


def _sums(view: LinalgOp) -> set[ir.Value]:
    """The results of reductions that an op computes an element each from, with others between; nothing else reads any.

    What others read is in memory anyway, so that no sum behind it is summed for this op.
    """
    shape = list(ir.RankedTensorType(view.op.results[0].type).shape)
    found, seen, waiting = set[ir.Value](), set[ir.Value](), list(view.operands)[: view.inputs]
    while waiting:
        value = waiting.pop()
        op = any_structured(defining_op(value)) if value not in seen and has_one_use(value) else None
        seen.add(value)
        if op is None or list(value.type.shape) != shape:
            continue
        if any(op.reductions):
            found.add(value)
        elif op.is_elementwise:
            waiting += list(op.operands)[: op.inputs]
    return found


def spares_wide_elements(producer: LinalgOp) -> bool:
    """Whether an op makes narrow elements of wide ones that nothing else reads: those need not be in memory then."""
    result = ir.RankedTensorType(producer.op.results[0].type)
    wide = [
        value
        for value in list(producer.operands)[: producer.inputs]
        if isinstance(value.type, ir.RankedTensorType)
        and _bits(value.type.element_type) > _bits(result.element_type)
        and list(value.type.shape) == list(result.shape)
    ]
    computed = [op for value in wide if (op := structured(defining_op(value))) is not None and op.is_elementwise]
    return any(has_one_use(op.op.results[0]) for op in computed)


def _bits(element: ir.Type) -> int:
    return element.width if isinstance(element, (ir.FloatType, ir.IntegerType)) else 0
