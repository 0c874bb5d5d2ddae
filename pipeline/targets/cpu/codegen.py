"""LLVM dialect → machine code, by llvmlite: entry points, optimization, machine code."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import binding
from llvmlite import ir as llvm_ir

from pipeline.errors import CompileError
from pipeline.mlir import ir, to_llvm_ir
from pipeline.runtime.entry_point import EntryPoint, Value
from pipeline.runtime.native import initialize_llvm
from pipeline.targets.cpu.llvm_text import to_llvm22

_I64 = llvm_ir.IntType(64)
_POINTER = llvm_ir.PointerType()


@dataclass(frozen=True)
class MachineCode:
    """An optimized module, ready to be written as machine code."""

    module: binding.ModuleRef
    machine: binding.TargetMachine

    def object_file(self) -> bytes:
        """As an object file."""
        return self.machine.emit_object(self.module)

    def assembly(self) -> str:
        """As text."""
        return self.machine.emit_assembly(self.module)


def generate(module: ir.Module, entries: list[tuple[str, EntryPoint]], cpu: str, features: str) -> MachineCode:
    """Compiles a module in LLVM dialect for `cpu`; `entries` are the functions to be called from outside.

    Raises:
        CompileError: LLVM cannot read the module.
    """
    initialize_llvm()
    machine = target_machine(cpu, features)
    text = to_llvm22(to_llvm_ir(module))
    try:
        llvm_module = binding.parse_assembly(text)
        llvm_module.link_in(binding.parse_assembly(_entry_functions(entries)))
        llvm_module.triple = machine.triple
        llvm_module.data_layout = str(machine.target_data)
        llvm_module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM refused the generated code: {error}") from error
    _hide(llvm_module, {entry.symbol for _, entry in entries})
    _keep_kernels_apart(llvm_module, {name for pair in entries for name in (pair[0], pair[1].symbol)})
    _optimize(llvm_module, machine)
    return MachineCode(llvm_module, machine)


def target_machine(cpu: str, features: str) -> binding.TargetMachine:
    """LLVM's code generator for a CPU of this machine's architecture."""
    target = binding.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu, features=features, opt=3, codemodel="jitdefault", jit=True)


def _hide(module: binding.ModuleRef, public: set[str]) -> None:
    """Lets LLVM drop and specialize every function that nobody outside can call."""
    for function in module.functions:
        if not function.is_declaration and function.name not in public:
            function.linkage = binding.Linkage.internal


def _keep_kernels_apart(module: binding.ModuleRef, entries: set[str]) -> None:
    """Stops LLVM from inlining kernels into the entries, which makes one huge function of a model and wins nothing."""
    for function in module.functions:
        if not function.is_declaration and function.name not in entries:
            function.add_function_attribute("noinline")


def _optimize(module: binding.ModuleRef, machine: binding.TargetMachine) -> None:
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def _entry_functions(entries: list[tuple[str, EntryPoint]]) -> str:
    """A module of functions that unpack slots and call the entries; see `pipeline.runtime.entry_point`."""
    module = llvm_ir.Module()
    for name, entry in entries:
        _entry_function(module, name, entry)
    return str(module)


def _entry_function(module: llvm_ir.Module, name: str, entry: EntryPoint) -> None:
    arguments = [kind for value in entry.parameters for kind in _argument_types(value)]
    result = _result_type(entry.results)
    callee = llvm_ir.Function(module, llvm_ir.FunctionType(result, arguments), name)
    function = llvm_ir.Function(module, llvm_ir.FunctionType(llvm_ir.VoidType(), [_POINTER]), entry.symbol)
    builder = llvm_ir.IRBuilder(function.append_basic_block())
    slots = function.args[0]

    def slot(number: int, kind: llvm_ir.Type = _I64) -> llvm_ir.Value:
        return builder.load(_slot_address(builder, slots, number), typ=kind)

    passed: list[llvm_ir.Value] = []
    for value, first in zip(entry.parameters, entry.parameter_slots(), strict=True):
        passed += _load_argument(value, first, slot, builder)
    returned = builder.call(callee, passed)
    for number, (value, first) in enumerate(zip(entry.results, entry.result_slots(), strict=True)):
        one = returned if len(entry.results) == 1 else builder.extract_value(returned, number)
        for offset, part in enumerate(_parts(builder, one, value)):
            builder.store(part, _slot_address(builder, slots, first + offset))
    builder.ret_void()


def _slot_address(builder: llvm_ir.IRBuilder, slots: llvm_ir.Value, number: int) -> llvm_ir.Value:
    return builder.gep(slots, [_I64(number)], source_etype=_I64)


def _argument_types(value: Value) -> list[llvm_ir.Type]:
    if value.shape is None:
        return [_I64]
    return [_POINTER, _POINTER, _I64] + [_I64] * (2 * len(value.shape))


def _load_argument(value: Value, first: int, slot, builder: llvm_ir.IRBuilder) -> list[llvm_ir.Value]:  # type: ignore[no-untyped-def]
    """What the callee takes for one parameter: a memref's pointers, offset, sizes and row-major strides."""
    if value.shape is None:
        return [slot(first)]
    pointer = slot(first, _POINTER)
    dynamic = iter(range(first + 1, first + 1 + len(value.dynamic_dims)))
    sizes = [slot(next(dynamic)) if dim in value.dynamic_dims else _I64(size) for dim, size in enumerate(value.shape)]
    strides: list[llvm_ir.Value] = []
    stride: llvm_ir.Value = _I64(1)
    for size in reversed(sizes):
        strides.insert(0, stride)
        stride = builder.mul(stride, size)
    return [pointer, pointer, _I64(0), *sizes, *strides]


def _result_type(results: tuple[Value, ...]) -> llvm_ir.Type:
    kinds = [_I64 if value.shape is None else _descriptor(len(value.shape)) for value in results]
    if not kinds:
        return llvm_ir.VoidType()
    return kinds[0] if len(kinds) == 1 else llvm_ir.LiteralStructType(kinds)


def _descriptor(rank: int) -> llvm_ir.Type:
    sizes = [llvm_ir.ArrayType(_I64, rank)] * 2 if rank else []
    return llvm_ir.LiteralStructType([_POINTER, _POINTER, _I64, *sizes])


def _parts(builder: llvm_ir.IRBuilder, returned: llvm_ir.Value, value: Value) -> list[llvm_ir.Value]:
    if value.shape is None:
        return [returned]
    places: list[list[int]] = [[0], [1], [2]] + [[field, dim] for field in (3, 4) for dim in range(len(value.shape))]
    return [builder.extract_value(returned, place) for place in places]
