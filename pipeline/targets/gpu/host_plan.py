"""What is left of an entry on the host, after its dispatches became functions → a plan for the runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pipeline.errors import CompileError
from pipeline.ir.attributes import DISPATCH, GEMM, THREADS
from pipeline.mlir import function, ir, refusal
from pipeline.runtime.device.host_arithmetic import OPS
from pipeline.runtime.device.host_plan import HostPlan, PlanStep
from pipeline.runtime.interface.storage_types import Stored
from pipeline.targets.gpu.arena_offsets import place_in_arena
from pipeline.targets.gpu.constants import Constants
from pipeline.targets.gpu.gemm_step import read_gemm

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_DYNAMIC_STRIDE = ir.ShapedType.get_dynamic_stride_or_offset()


def build_plan(
    module: ir.Module, entry: str, kernels: dict[str, int], stored: Stored, constants: Constants
) -> HostPlan:
    """The plan of the function `entry`.

    Args:
        module: bufferized, with dispatches as calls.
        kernels: the number of each dispatch.
        stored: how a device stores elements of an MLIR type.
        constants: gets the constants that the plan uses.
    """
    main = function(module, entry)
    builder = _Builder(module, kernels, stored, constants)
    block = main.regions[0].blocks[0]
    parameters = [builder.new(argument) for argument in block.arguments]
    kinds = [argument.type for argument in block.arguments]
    steps, results = builder.block(block)
    steps, arena = place_in_arena(steps, results)
    return HostPlan(
        registers=builder.count,
        initial=tuple(builder.initial),
        parameters=tuple(parameters),
        dtypes=tuple(stored(str(k.element_type)) if isinstance(k, ir.MemRefType) else None for k in kinds),
        shapes=tuple(_shape(kind) if isinstance(kind, ir.MemRefType) else None for kind in kinds),
        steps=tuple(steps),
        results=tuple(results),
        arena=arena,
    )


def _shape(kind: ir.MemRefType) -> tuple[int, ...]:
    return tuple(-1 if size == _DYNAMIC else size for size in kind.shape)


class _Builder:
    """Translates ops to steps; `registers` has the register of each value."""

    def __init__(self, module: ir.Module, kernels: dict[str, int], stored: Stored, constants: Constants):
        self.module = module
        self.kernels = kernels
        self.stored = stored
        self.constants = constants
        self.count = 0
        self.initial: list[tuple[int, Any]] = []
        self.registers: dict[ir.Value, int] = {}

    def new(self, value: ir.Value) -> int:
        """A new register for a value."""
        self.registers[value] = self.count
        self.count += 1
        return self.registers[value]

    def of(self, values: Sequence[ir.Value]) -> list[int]:
        """The registers of values."""
        return [self.registers[value] for value in values]

    def block(self, block: ir.Block) -> tuple[list[PlanStep], list[int]]:
        """The steps of a block, and the registers of what its terminator hands on."""
        *ops, terminator = [op.operation for op in block.operations]
        steps = [step for op in ops for step in self._op(op)]
        return steps, self.of(terminator.operands)

    def _op(self, op: ir.Operation) -> list[PlanStep]:
        short = op.name.partition(".")[2]
        if op.name == "arith.constant":
            self.initial.append((self.new(op.results[0]), _number(op.attributes["value"])))
            return []
        if op.name.startswith(("arith.", "math.")) and short in OPS:
            return [self._compute(op, short)]
        handler = _HANDLERS.get(op.name)
        if handler is None:
            raise refusal(op, f"{op.name} between kernels is not supported on GPUs; compile it for the target cpu")
        return handler(self, op)

    def _compute(self, op: ir.Operation, name: str) -> PlanStep:
        predicate = ir.IntegerAttr(op.attributes["predicate"]).value if "predicate" in op.attributes else 0
        source = op.operands[1] if name == "select" else op.operands[0]
        arguments = self.of(op.operands)
        return [
            "compute",
            self.new(op.results[0]),
            name,
            arguments,
            str(op.results[0].type),
            str(source.type),
            predicate,
        ]

    def _alloc(self, op: ir.Operation) -> list[PlanStep]:
        kind = ir.MemRefType(op.results[0].type)
        sizes = self._mixed(kind.shape, op.operands, _DYNAMIC)
        return [["alloc", self.new(op.results[0]), self.stored(str(kind.element_type)), sizes]]

    def _global(self, op: ir.Operation) -> list[PlanStep]:
        number = self.constants.number(_symbol(op, "name"))
        return [["constant", self.new(op.results[0]), number]]

    def _dim(self, op: ir.Operation) -> list[PlanStep]:
        view, number = self.of(op.operands)
        return [["dim", self.new(op.results[0]), view, number]]

    def _load(self, op: ir.Operation) -> list[PlanStep]:
        view, *indices = self.of(op.operands)
        return [["load", self.new(op.results[0]), view, indices]]

    def _same(self, op: ir.Operation) -> list[PlanStep]:
        self.registers[op.results[0]] = self.registers[op.operands[0]]
        return []

    def _subview(self, op: ir.Operation) -> list[PlanStep]:
        view, *dynamic = list(op.operands)
        offsets, sizes, strides = _mixed_groups(op, dynamic, ("offsets", "sizes", "strides"))
        kept = _kept_dims(sizes, list(ir.MemRefType(op.results[0].type).shape))
        groups = [[self._mix(value) for value in group] for group in (offsets, strides, sizes)]
        source = self.registers[view]
        return [["subview", self.new(op.results[0]), source, *groups, kept]]

    def _collapse(self, op: ir.Operation) -> list[PlanStep]:
        source = self.registers[op.operands[0]]
        return [["collapse", self.new(op.results[0]), source, _groups(op)]]

    def _expand(self, op: ir.Operation) -> list[PlanStep]:
        source, *dynamic = list(op.operands)
        sizes = self._mixed(ir.MemRefType(op.results[0].type).shape, dynamic, _DYNAMIC)
        return [["expand", self.new(op.results[0]), self.registers[source], _groups(op), sizes]]

    def _reinterpret(self, op: ir.Operation) -> list[PlanStep]:
        view, *dynamic = list(op.operands)
        offsets, sizes, strides = _mixed_groups(op, dynamic, ("offsets", "sizes", "strides"))
        source = self.registers[view]
        to = self.new(op.results[0])
        return [
            [
                "layout",
                to,
                source,
                self._mix(offsets[0]),
                [self._mix(s) for s in sizes],
                [self._mix(s) for s in strides],
            ]
        ]

    def _call(self, op: ir.Operation) -> list[PlanStep]:
        callee = function(self.module, _symbol(op, "callee"))
        if DISPATCH in callee.attributes:
            return [self._launch(op, callee)]
        body = callee.regions[0].blocks[0]
        saved = {value: self.registers[value] for value in list(body.arguments) if value in self.registers}
        for argument, value in zip(body.arguments, op.operands, strict=True):
            self.registers[argument] = self.registers[value]
        steps, results = self.block(body)
        self.registers |= saved
        for result, register in zip(op.results, results, strict=True):
            self.registers[result] = register
        return steps

    def _launch(self, op: ir.Operation, callee: ir.Operation) -> PlanStep:
        arguments = self.of(op.operands)
        if GEMM in callee.attributes:
            gemm = read_gemm(callee, self.stored)
            return ["gemm", self.kernels[_symbol(op, "callee")], ["#", -1], arguments, gemm.to_json()]
        if "arg_attrs" in callee.attributes and THREADS in ir.ArrayAttr(callee.attributes["arg_attrs"])[0]:
            return ["launch", self.kernels[_symbol(op, "callee")], arguments[0], arguments[1:]]
        return ["launch", self.kernels[_symbol(op, "callee")], ["#", -1], arguments]  # the kernel has the number

    def _if(self, op: ir.Operation) -> list[PlanStep]:
        condition = self.registers[op.operands[0]]
        branches = [self.block(r.blocks[0]) if len(r.blocks) else ([], []) for r in op.regions]
        (then, from_then), (other, from_other) = branches
        to = [self.new(result) for result in op.results]
        return [["if", condition, then, other, to, from_then, from_other]]

    def _for(self, op: ir.Operation) -> list[PlanStep]:
        body = op.regions[0].blocks[0]
        first, last, step, *initial = self.of(op.operands)
        index, *carried = [self.new(argument) for argument in body.arguments]
        steps, following = self.block(body)
        to = [self.new(result) for result in op.results]
        return [["for", first, last, step, index, steps, carried, initial, following, to]]

    def _while(self, op: ir.Operation) -> list[PlanStep]:
        before, after = (region.blocks[0] for region in op.regions)
        initial = self.of(op.operands)
        carried = [self.new(argument) for argument in before.arguments]
        steps, (condition, *passed) = self.block(before)
        arguments = [self.new(argument) for argument in after.arguments]
        body, following = self.block(after)
        to = [self.new(result) for result in op.results]
        return [["while", steps, carried, initial, condition, passed, body, arguments, following, to]]

    def _mix(self, value: int | ir.Value) -> Any:
        return ["#", value] if isinstance(value, int) else self.registers[value]

    def _mixed(self, static: Sequence[int], dynamic: Sequence[ir.Value], unknown: int) -> list[Any]:
        rest = iter(dynamic)
        return [self._mix(next(rest) if number == unknown else number) for number in static]


_HANDLERS: dict[str, Callable[[_Builder, ir.Operation], list[PlanStep]]] = {
    "memref.alloc": _Builder._alloc,
    "memref.alloca": _Builder._alloc,
    "memref.get_global": _Builder._global,
    "memref.dim": _Builder._dim,
    "memref.load": _Builder._load,
    "memref.cast": _Builder._same,
    "memref.subview": _Builder._subview,
    "memref.collapse_shape": _Builder._collapse,
    "memref.expand_shape": _Builder._expand,
    "memref.reinterpret_cast": _Builder._reinterpret,
    "func.call": _Builder._call,
    "scf.if": _Builder._if,
    "scf.for": _Builder._for,
    "scf.while": _Builder._while,
}


def _mixed_groups(op: ir.Operation, dynamic: Sequence[ir.Value], names: Sequence[str]) -> list[list[int | ir.Value]]:
    """The offsets, sizes and strides of a view op, each a number or a value."""
    rest = iter(dynamic)
    groups: list[list[int | ir.Value]] = []
    for name in names:
        static = list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"]))
        groups.append([next(rest) if number in (_DYNAMIC, _DYNAMIC_STRIDE) else number for number in static])
    return groups


def _kept_dims(sizes: Sequence[int | ir.Value], result: list[int]) -> list[int]:
    """Which dims a subview keeps: those of size 1 that its result does not have are dropped."""
    kept: list[int] = []
    spare = len(sizes) - len(result)
    for dim, size in enumerate(sizes):
        wanted = result[len(kept)] if len(kept) < len(result) else None
        if spare and size == 1 and wanted != 1:
            spare -= 1
        else:
            kept.append(dim)
    return kept


def _groups(op: ir.Operation) -> list[list[int]]:
    """Which dims of the larger shape make up each dim of the smaller one."""
    reassociation = ir.ArrayAttr(op.attributes["reassociation"])
    return [[ir.IntegerAttr(dim).value for dim in ir.ArrayAttr(group)] for group in reassociation]


def _symbol(op: ir.Operation, name: str) -> str:
    attribute = op.attributes[name]
    return attribute.value if isinstance(attribute, ir.StringAttr) else ir.FlatSymbolRefAttr(attribute).value


def _number(attribute: ir.Attribute) -> Any:
    if isinstance(attribute, ir.BoolAttr):
        return int(attribute.value)
    if isinstance(attribute, (ir.IntegerAttr, ir.FloatAttr)):
        return attribute.value
    raise CompileError(f"constant {attribute} between kernels is not supported on GPUs; compile it for the target cpu")
