"""The functions that the pass profile-kernels calls, in LLVM IR; what they write is `pipeline.runtime.record`'s."""

from __future__ import annotations

from llvmlite import ir

from pipeline.passes.profile_kernels import CLOCK, RECORD
from pipeline.runtime.record import HEADER_WORDS

_I64 = ir.IntType(64)
_POINTER = ir.PointerType()
_MONOTONIC = 1


def define_recorder(module: ir.Module, sites: int) -> None:
    """Defines the clock and the recording of one run, for a record of so many sites."""
    clock = _define_clock(module)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_I64] * 3), RECORD)
    block, store_event, done = (function.append_basic_block() for _ in range(3))
    builder = ir.IRBuilder(block)
    record, site, start = function.args
    end = builder.call(clock, [])

    def word(number: ir.Value) -> ir.Value:
        return builder.gep(builder.inttoptr(record, _POINTER), [number], source_etype=_I64)

    def add(number: ir.Value, amount: ir.Value) -> ir.Value:
        before = builder.load(word(number), typ=_I64)
        builder.store(builder.add(before, amount), word(number))
        return before

    first = builder.add(site, _I64(HEADER_WORDS))
    add(first, builder.sub(end, start))
    add(builder.add(first, _I64(sites)), _I64(1))
    count, room = (builder.load(word(_I64(number)), typ=_I64) for number in range(HEADER_WORDS))
    builder.cbranch(builder.icmp_signed("<", count, room), store_event, done)
    builder.position_at_end(store_event)
    place = builder.add(builder.mul(count, _I64(3)), _I64(HEADER_WORDS + 2 * sites))
    for offset, value in enumerate((site, start, end)):
        builder.store(value, word(builder.add(place, _I64(offset))))
    builder.store(builder.add(count, _I64(1)), word(_I64(0)))
    builder.branch(done)
    builder.position_at_end(done)
    builder.ret_void()


def _define_clock(module: ir.Module) -> ir.Function:
    int32 = ir.IntType(32)
    gettime = ir.Function(module, ir.FunctionType(int32, [int32, _POINTER]), "clock_gettime")
    function = ir.Function(module, ir.FunctionType(_I64, []), CLOCK)
    builder = ir.IRBuilder(function.append_basic_block())
    time = builder.alloca(ir.ArrayType(_I64, 2))
    builder.call(gettime, [int32(_MONOTONIC), time])
    seconds, nanoseconds = (
        builder.load(builder.gep(time, [_I64(part)], source_etype=_I64), typ=_I64) for part in range(2)
    )
    builder.ret(builder.add(builder.mul(seconds, _I64(1_000_000_000)), nanoseconds))
    return function
