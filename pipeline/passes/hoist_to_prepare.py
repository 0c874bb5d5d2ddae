"""hoist-to-prepare: what depends on weights alone is computed once, by @prepare."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.mlir import captured_values, defining_op, func, function, ir, remap_operands
from pipeline.passes.base import Pass

#: Ops that only look at their operand in another way; as results of @prepare they would be copies for nothing.
_VIEWS = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.extract_slice", "tensor.cast")
_PURE = ("tensor.", "linalg.", "arith.", "math.")


@dataclass(frozen=True)
class HoistToPrepare(Pass):
    """Move the ops of @main that depend on weights alone (`pipeline.weight`) to a function @prepare.

    Its results become arguments of @main, marked `pipeline.prepared = i`. Weights that the model writes to
    (`pipeline.mutable`) stay. What would blow weights up, such as a broadcast, stays too.
    """

    name: ClassVar[str] = "hoist-to-prepare"

    growth: int = field(default=2, metadata={"help": "how many times the weights' bytes a result may be"})

    def run(self, op: ir.Operation) -> None:
        """Makes @prepare if there is anything to hoist."""
        main = function(op, "main")
        hoisted, sources = self._hoistable(main)
        kept = _frontier(main, hoisted)
        if not kept:
            return
        size = sum(_bytes(value.type) for value in kept)
        weights = sorted(set().union(*(sources[value] for value in kept)))
        with main.location, ir.InsertionPoint(main):
            _create_prepare(main, hoisted, weights, kept)
        _add_arguments(main, kept)
        for one in reversed(hoisted):
            if not any(list(result.uses) for result in one.results):
                one.erase()
        _drop_unused_weights(main)
        self.passed(main, f"@prepare computes {len(kept)} tensors from weights and keeps {size} bytes")

    def _hoistable(self, main: ir.Operation) -> tuple[list[ir.Operation], dict[ir.Value, set[int]]]:
        """The ops that depend on weights alone, in order, and for each value the numbers of the weights behind it."""
        block = main.regions[0].blocks[0]
        sources: dict[ir.Value, set[int]] = {block.arguments[i]: {i} for i in _weight_numbers(main)}
        hoisted = []
        for op in block.operations:
            op = op.operation
            read = captured_values(op)
            if not op.name.startswith(_PURE) or not all(value in sources for value in read):
                continue
            behind = set().union(*(sources[value] for value in read))
            if behind and not self._pays(op, sum(_bytes(block.arguments[i].type) for i in behind)):
                continue
            if any(
                isinstance(result.type, ir.RankedTensorType) and not result.type.has_static_shape
                for result in op.results
            ):
                continue
            hoisted.append(op)
            sources.update(dict.fromkeys(op.results, behind))
        return hoisted, sources

    def _pays(self, op: ir.Operation, weight_bytes: int) -> bool:
        size = sum(_bytes(result.type) for result in op.results)
        if size <= max(self.growth * weight_bytes, 4096):
            return True
        self.missed(op, f"its result has {size} bytes, the weights behind it only {weight_bytes}")
        return False


def _weight_numbers(main: ir.Operation) -> list[int]:
    attributes = [ir.DictAttr(a) for a in main.attributes["arg_attrs"]] if "arg_attrs" in main.attributes else []
    return [i for i, a in enumerate(attributes) if "pipeline.weight" in a and "pipeline.mutable" not in a]


def _bytes(kind: ir.Type) -> int:
    if not isinstance(kind, ir.RankedTensorType):
        return 8
    width = kind.element_type.width if not isinstance(kind.element_type, ir.IndexType) else 64
    return math.prod(kind.shape) * max(1, width // 8) if kind.has_static_shape else 0


def _frontier(main: ir.Operation, hoisted: list[ir.Operation]) -> list[ir.Value]:
    """The hoisted tensors that the rest of main reads; behind views, and not what is a weight or a constant."""
    inside = set(hoisted)
    found: dict[ir.Value, None] = {}
    for op in main.regions[0].blocks[0].operations:
        op = op.operation
        if op in inside:
            continue
        for value in captured_values(op):
            source = _behind_views(value)
            producer = defining_op(source)
            if producer in inside and not _is_neutral(producer) and isinstance(source.type, ir.RankedTensorType):
                found.setdefault(source)
    return list(found)


def _behind_views(value: ir.Value) -> ir.Value:
    producer = defining_op(value)
    while producer is not None and producer.name in _VIEWS:
        value = producer.operands[0]
        producer = defining_op(value)
    return value


def _is_neutral(op: ir.Operation) -> bool:
    """Whether the op reads no weight, neither itself nor through what it reads."""
    return all(producer is not None and _is_neutral(producer) for producer in map(defining_op, captured_values(op)))


def _create_prepare(main: ir.Operation, hoisted: list[ir.Operation], weights: list[int], kept: list[ir.Value]) -> None:
    arguments = main.regions[0].blocks[0].arguments
    types = [arguments[i].type for i in weights]
    prepare = func.FuncOp("prepare", ir.FunctionType.get(types, [value.type for value in kept]))
    marks = ir.ArrayAttr(main.attributes["arg_attrs"])
    prepare.attributes["arg_attrs"] = ir.ArrayAttr.get([marks[i] for i in weights])
    block = prepare.add_entry_block()
    known: dict[ir.Value, ir.Value] = {arguments[i]: block.arguments[n] for n, i in enumerate(weights)}
    with ir.InsertionPoint(block):
        for op in _slice(hoisted, kept):
            copy = op.clone()
            remap_operands(copy, known)
            known.update(zip(op.results, copy.results, strict=True))
        func.ReturnOp([known[value] for value in kept])


def _slice(ops: list[ir.Operation], values: list[ir.Value]) -> list[ir.Operation]:
    """Those of `ops` that the values need, in order."""
    needed = set(values)
    found = []
    for op in reversed(ops):
        if any(result in needed for result in op.results):
            found.append(op)
            needed.update(captured_values(op))
    return found[::-1]


def _add_arguments(main: ir.Operation, kept: list[ir.Value]) -> None:
    block = main.regions[0].blocks[0]
    marks = list(main.attributes["arg_attrs"])
    number = ir.IntegerType.get_signless(64)
    for index, value in enumerate(kept):
        producer = defining_op(value)
        assert producer is not None
        argument = block.add_argument(value.type, producer.location)
        value.replace_all_uses_with(argument)
        marks.append(ir.DictAttr.get({"pipeline.prepared": ir.IntegerAttr.get(number, index)}))
    _set_arguments(main, marks)


def _drop_unused_weights(main: ir.Operation) -> None:
    block = main.regions[0].blocks[0]
    marks = list(main.attributes["arg_attrs"])
    for i in reversed(_weight_numbers(main)):
        if not list(block.arguments[i].uses):
            block.erase_argument(i)
            del marks[i]
    _set_arguments(main, marks)


def _set_arguments(main: ir.Operation, marks: list[ir.Attribute]) -> None:
    block = main.regions[0].blocks[0]
    kind = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
    types = [argument.type for argument in block.arguments]
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, kind.results))
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(marks)
