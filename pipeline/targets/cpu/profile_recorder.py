"""The functions that the pass profile-kernels calls, in LLVM IR.

What they write is read by `pipeline.runtime.report.event_record`.
"""

from __future__ import annotations

from llvmlite import ir

from pipeline.passes.kernels.profile_kernels import BEGIN, RECORD_FUNCTION
from pipeline.runtime.report.event_record import BEGIN_HOOK, END_HOOK, HEADER_WORDS

_I64 = ir.IntType(64)
_POINTER = ir.PointerType()
_HOOK = ir.FunctionType(ir.VoidType(), [_I64])
_MONOTONIC = 1


def define_recorder(module: ir.Module, sites: int) -> None:
    """Defines how a run begins and how it is recorded, for a record of so many sites."""
    clock = _define_clock(module)
    _define_begin(module, clock)
    _define_record(module, clock, sites)


def _word(builder: ir.IRBuilder, record: ir.Value, number: ir.Value) -> ir.Value:
    return builder.gep(builder.inttoptr(record, _POINTER), [number], source_etype=_I64)


def _define_begin(module: ir.Module, clock: ir.Function) -> None:
    """begin(record, site): calls the hook with the site, then gives the time, so that the hook's own is not counted."""
    function = ir.Function(module, ir.FunctionType(_I64, [_I64] * 2), BEGIN)
    builder = ir.IRBuilder(function.append_basic_block())
    record, site = function.args
    _call_hook(builder, record, site, BEGIN_HOOK)
    builder.ret(builder.call(clock, []))


def _call_hook(builder: ir.IRBuilder, record: ir.Value, site: ir.Value, word: int) -> None:
    """Calls the function whose address is in a word of the record, if it is one."""
    address = builder.load(_word(builder, record, _I64(word)), typ=_I64)
    with builder.if_then(builder.icmp_signed("!=", address, _I64(0))):
        hook = builder.inttoptr(address, _HOOK.as_pointer())
        builder.call(hook, [site])


def _define_record(module: ir.Module, clock: ir.Function, sites: int) -> None:
    """record(record, site, start): counts a run that ends now, notes it where there is room, calls the other hook."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_I64] * 3), RECORD_FUNCTION)
    builder = ir.IRBuilder(function.append_basic_block())
    record, site, start = function.args
    end = builder.call(clock, [])

    def add(number: ir.Value, amount: ir.Value) -> None:
        place = _word(builder, record, number)
        builder.store(builder.add(builder.load(place, typ=_I64), amount), place)

    first = builder.add(site, _I64(HEADER_WORDS))
    add(first, builder.sub(end, start))
    add(builder.add(first, _I64(sites)), _I64(1))
    count, room = (builder.load(_word(builder, record, _I64(number)), typ=_I64) for number in range(2))
    with builder.if_then(builder.icmp_signed("<", count, room)):
        place = builder.add(builder.mul(count, _I64(3)), _I64(HEADER_WORDS + 2 * sites))
        for offset, value in enumerate((site, start, end)):
            builder.store(value, _word(builder, record, builder.add(place, _I64(offset))))
        builder.store(builder.add(count, _I64(1)), _word(builder, record, _I64(0)))
    _call_hook(builder, record, site, END_HOOK)
    builder.ret_void()


def _define_clock(module: ir.Module) -> ir.Function:
    int32 = ir.IntType(32)
    gettime = ir.Function(module, ir.FunctionType(int32, [int32, _POINTER]), "clock_gettime")
    function = ir.Function(module, ir.FunctionType(_I64, []), "pipeline_clock")
    builder = ir.IRBuilder(function.append_basic_block())
    time = builder.alloca(ir.ArrayType(_I64, 2))
    builder.call(gettime, [int32(_MONOTONIC), time])
    seconds, nanoseconds = (
        builder.load(builder.gep(time, [_I64(part)], source_etype=_I64), typ=_I64) for part in range(2)
    )
    builder.ret(builder.add(builder.mul(seconds, _I64(1_000_000_000)), nanoseconds))
    return function
