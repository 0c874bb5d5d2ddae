"""hoist-to-prepare: what depends on weights alone is computed once, by @prepare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis.code_motion import needed_ops
from pipeline.analysis.const_expr import GROWTH, ConstExprs, weight_arguments
from pipeline.dialects.fusion import BARRIER
from pipeline.ir.attributes import PREPARED
from pipeline.ir.element_types import byte_size
from pipeline.ir.reshapes import ALL_RESHAPES
from pipeline.ir.rewriting import argument_marks, is_unused, update_signature
from pipeline.mlir import captured_values, clone, defining_op, func, function, ir, seen_through
from pipeline.passmanager.base import Pass

#: Ops that only look at their operand in another way; as results of @prepare they would be copies for nothing.
_VIEWS = (*ALL_RESHAPES, "tensor.extract_slice", BARRIER)

#: In bytes, of what is kept that no weight is behind.
_LARGEST_TABLE = 1 << 24


@dataclass(frozen=True)
class HoistToPrepare(Pass):
    """Move the ops of @main that depend on weights alone (`pipeline.weight`) to a function @prepare.

    Its results become arguments of @main, marked `pipeline.prepared = i`. Ops inside of regions move, too: they are
    free of side effects. Weights that the model writes to (`pipeline.mutable`) stay, and so does what would blow
    weights up, such as a broadcast. What comes from constants alone moves where it takes functions to compute (sines of
    positions): what is cheap is better computed in the loops that read it.
    """

    name: ClassVar[str] = "hoist-to-prepare"

    growth: int = field(default=GROWTH, metadata={"help": "how many times the weights' bytes a result may be"})

    def run(self, op: ir.Operation) -> None:
        """Makes @prepare if there is anything to hoist."""
        main = function(op, "main")
        weights = ConstExprs(main, self.growth)
        for large, size, limit in weights.refused:
            self.missed(large, f"its result has {size} bytes, the weights behind it only {limit}")
        kept = _kept(main, weights)
        if not kept:
            return
        ops = list(dict.fromkeys(producer for producer in map(defining_op, weights.sources) if producer is not None))
        with main.location, ir.InsertionPoint(main):
            _create_prepare(main, ops, weights, kept)
        _add_arguments(main, kept)
        for original in reversed(ops):
            if all(map(is_unused, original.results)):
                original.erase()
        _drop_unused_weights(main)
        size = sum(byte_size(argument.type) or 0 for argument in _prepared(main))
        self.passed(main, f"@prepare computes {len(kept)} tensors from weights and keeps {size} bytes")


def _kept(main: ir.Operation, weights: ConstExprs) -> list[ir.Value]:
    """The tensors from weights that the rest of @main reads; those behind views, and not the weights themselves."""
    found: dict[ir.Value, None] = {}
    tables = _tables(weights)

    def need(value: ir.Value) -> None:
        source = seen_through(value, _VIEWS)
        producer = defining_op(source)
        if producer is None or not (weights.sources.get(source) or source in tables):
            return
        if isinstance(source.type, ir.RankedTensorType):
            found.setdefault(source)
            return
        for operand in captured_values(producer):  # a scalar stays in @main
            need(operand)

    def visit(op: ir.Operation) -> ir.WalkResult:
        op = op.operation
        if op.results and all(result in weights for result in op.results):
            return ir.WalkResult.SKIP
        for operand in op.operands:
            need(operand)
        return ir.WalkResult.ADVANCE

    main.walk(visit, ir.WalkOrder.PRE_ORDER)
    return list(found)


def _tables(weights: ConstExprs) -> set[ir.Value]:
    """The tensors that come from constants alone, by functions, such as the factors of a Fourier transform."""
    by_functions: set[ir.Value] = set()
    for op in dict.fromkeys(producer for producer in map(defining_op, weights.sources) if producer is not None):
        if _has_function(op) or not by_functions.isdisjoint(captured_values(op)):
            by_functions.update(op.results)
    return {value for value in by_functions if not weights.sources.get(value) and _is_small_tensor(value)}


def _is_small_tensor(value: ir.Value) -> bool:
    size = byte_size(value.type) if isinstance(value.type, ir.RankedTensorType) else None
    return size is not None and size <= _LARGEST_TABLE


def _has_function(op: ir.Operation) -> bool:
    found = False

    def visit(inner: ir.Operation) -> ir.WalkResult:
        nonlocal found
        found = found or inner.name.startswith("math.")
        return ir.WalkResult.ADVANCE

    op.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _create_prepare(main: ir.Operation, ops: list[ir.Operation], weights: ConstExprs, kept: list[ir.Value]) -> None:
    behind = frozenset().union(*(weights.sources[value] for value in kept))
    arguments = [argument for argument in weight_arguments(main) if argument in behind]
    kind = ir.FunctionType.get([argument.type for argument in arguments], [value.type for value in kept])
    prepare = func.FuncOp("prepare", kind)
    marks = argument_marks(main)
    prepare.attributes["arg_attrs"] = ir.ArrayAttr.get([marks[argument.arg_number] for argument in arguments])
    block = prepare.add_entry_block()
    known: dict[ir.Value, ir.Value] = dict(zip(arguments, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for op in needed_ops(ops, kept):
            clone(op, known)
        func.ReturnOp([known[value] for value in kept])


def _add_arguments(main: ir.Operation, kept: list[ir.Value]) -> None:
    block = main.regions[0].blocks[0]
    marks = argument_marks(main)
    number = ir.IntegerType.get_signless(64)
    for index, value in enumerate(kept):
        producer = defining_op(value)
        assert producer is not None
        argument = block.add_argument(value.type, producer.location)
        value.replace_all_uses_with(argument)
        marks.append(ir.DictAttr.get({PREPARED: ir.IntegerAttr.get(number, index)}))
    _set_arguments(main, marks)


def _prepared(main: ir.Operation) -> list[ir.BlockArgument]:
    arguments = main.regions[0].blocks[0].arguments
    return [argument for argument, mark in zip(arguments, argument_marks(main), strict=True) if PREPARED in mark]


def _drop_unused_weights(main: ir.Operation) -> None:
    block = main.regions[0].blocks[0]
    marks = argument_marks(main)
    for argument in reversed(weight_arguments(main)):
        if is_unused(argument):
            del marks[argument.arg_number]
            block.erase_argument(argument.arg_number)
    _set_arguments(main, marks)


def _set_arguments(main: ir.Operation, marks: Sequence[ir.Attribute]) -> None:
    update_signature(main)
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(marks)
