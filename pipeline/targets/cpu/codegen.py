"""LLVM dialect → machine code: entry points and units, which `machine_code` compiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from llvmlite import ir as llvm_ir

from pipeline import timing
from pipeline.ir.attributes import TEAM_SIZE
from pipeline.mlir import ir, to_llvm_ir
from pipeline.runtime.interface.entry_point import EntryPoint, Value
from pipeline.runtime.interface.team import OF_CODE, PARALLEL, SET_THREADS, USE_TEAM
from pipeline.runtime.weights.watched_words import GUARDED
from pipeline.targets.cpu.guarded_entry import define_guarded_entry
from pipeline.targets.cpu.machine_code import WORTH_A_PROCESS, Unit
from pipeline.targets.cpu.profile_recorder import define_recorder
from pipeline.targets.cpu.shared_kernels.kernel_units import functions_beside, kernel_units, with_code_names
from pipeline.targets.cpu.shared_kernels.sharing import KernelSharing
from pipeline.targets.cpu.split_module import ModulePart, ModuleText, split, split_functions
from pipeline.targets.cpu.team_functions import team_functions
from pipeline.targets.cpu.vector_functions import entries_need_no_more

_I64 = llvm_ir.IntType(64)
_POINTER = llvm_ir.PointerType()

#: About how many characters of LLVM IR are compiled at a time.
UNIT_SIZE = 60_000


@dataclass(frozen=True)
class Units:
    """What a module is compiled as.

    Attributes:
        own: the units of the module itself.
        kernels: those of kernels that other modules may share, by the name of their code.
    """

    own: tuple[Unit, ...]
    kernels: Mapping[str, Unit] = field(default_factory=dict)

    @property
    def all(self) -> list[Unit]:
        """All units, in this order."""
        return [*self.own, *self.kernels.values()]

    def with_team(self) -> list[str]:
        """The names of those kernels whose work threads share."""
        return [name for name, unit in self.kernels.items() if _has_team(unit.text + unit.vectors)]


def units(
    module: ir.Module,
    entries: list[tuple[str, EntryPoint]],
    *,
    whole: bool = False,
    sites: int = 0,
    sharing: KernelSharing | None = None,
) -> Units:
    """A module in LLVM dialect as units of LLVM IR; `entries` are the functions to be called from outside.

    A large module becomes several units, unless it is to stay `whole`. With `sites` they have what the pass
    profile-kernels calls, for so many sites. Kernels that `sharing` names become units of their own.
    """
    with timing.stage("to LLVM IR"):
        text = to_llvm_ir(module)
    if sharing is None or not sharing.code_names:
        parts = [] if whole else split(text, _size(text))
        return Units(_own_units(parts or [ModulePart(text, ())], entries, sites, _has_team(text), ()))
    text = with_code_names(text, sharing.code_names)
    has_team = _has_team(text) or any(code.has_team for code in sharing.known.values())
    apart = ModuleText.read(text)
    kernels = kernel_units(apart, sharing.new) if apart.can_be_split else {}
    own = [*apart.functions] if not kernels else functions_beside(apart, kernels)
    left = apart.part(own) if kernels else ModulePart(text, tuple(own))
    parts = split_functions(apart, own, _size(left.text)) or [left]
    return Units(_own_units(parts, entries, sites, has_team, OF_CODE if has_team else ()), kernels)


def _size(text: str) -> int:
    """About how many characters of a module are compiled at a time."""
    return len(text) if len(text) < WORTH_A_PROCESS else UNIT_SIZE


def _has_team(text: str) -> bool:
    return f"@{PARALLEL}(" in text


def _own_units(
    parts: Sequence[ModulePart],
    entries: list[tuple[str, EntryPoint]],
    sites: int,
    has_team: bool,
    called_by_kernels: Sequence[str],
) -> tuple[Unit, ...]:
    names, symbols = tuple(name for name, _ in entries), _symbols(entries, has_team)
    if len(parts) == 1:
        functions = _entry_functions(entries, sites, has_team)
        is_glue = _needs_no_more(parts[0], names)
        return (Unit(parts[0].text, functions, (*symbols, *called_by_kernels), (*names, *symbols), is_glue),)
    made = []
    for part in parts:
        own = [(name, entry) for name, entry in entries if name in part.functions]
        inside = _symbols(own, has_team)
        called = tuple(name for name in part.functions if name not in names)
        if has_team and "main" in dict(own):
            called = (*called, *OF_CODE)
        entry_functions = _entry_functions(own, sites, has_team) if own else ""
        is_glue = part.is_vectors or bool(own) and _needs_no_more(part, names)
        made.append(Unit(part.text, entry_functions, (*called, *inside), (*names, *inside), is_glue))
    return tuple(made)


def _needs_no_more(part: ModulePart, entries: Sequence[str]) -> bool:
    return entries_need_no_more(ModuleText.read(part.text).functions, entries)


def _symbols(entries: list[tuple[str, EntryPoint]], has_team: bool) -> tuple[str, ...]:
    """What the runtime calls of the functions that `_entry_functions` defines."""
    beside = (GUARDED, *((USE_TEAM, SET_THREADS) if has_team else ())) if "main" in dict(entries) else ()
    return (*(entry.symbol for _, entry in entries), *beside)


def _entry_functions(entries: list[tuple[str, EntryPoint]], sites: int, has_team: bool) -> str:
    """A module of functions that unpack slots and call the entries; see `pipeline.runtime.interface.entry_point`.

    With `has_team` those are there, too, by which kernels have threads share work.
    """
    module = llvm_ir.Module()
    if "main" in dict(entries):
        threads = llvm_ir.GlobalVariable(module, llvm_ir.IntType(32), TEAM_SIZE)
        threads.initializer = llvm_ir.IntType(32)(0)
        if sites:
            define_recorder(module, sites)
    for name, entry in entries:
        function = _entry_function(module, name, entry)
        if name == "main":
            define_guarded_entry(module, function)
    return str(module) + (team_functions() if has_team and "main" in dict(entries) else "")


def _entry_function(module: llvm_ir.Module, name: str, entry: EntryPoint) -> llvm_ir.Function:
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
        result_value = returned if len(entry.results) == 1 else builder.extract_value(returned, number)
        for offset, part in enumerate(_parts(builder, result_value, value)):
            builder.store(part, _slot_address(builder, slots, first + offset))
    builder.ret_void()
    return function


def _slot_address(builder: llvm_ir.IRBuilder, slots: llvm_ir.Value, number: int) -> llvm_ir.Value:
    return builder.gep(slots, [_I64(number)], source_etype=_I64)


def _argument_types(value: Value) -> list[llvm_ir.Type]:
    if value.shape is None:
        return [_I64]
    return [_POINTER, _POINTER, _I64] + [_I64] * (2 * len(value.shape))


def _load_argument(
    value: Value, first: int, slot: Callable[..., llvm_ir.Value], builder: llvm_ir.IRBuilder
) -> list[llvm_ir.Value]:
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
