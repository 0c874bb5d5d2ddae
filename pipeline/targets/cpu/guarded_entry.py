"""The entry that calls @main only if no watched word of memory has changed.

See `pipeline.runtime.weights.watched_words`.
"""

from __future__ import annotations

from llvmlite import ir as llvm_ir

from pipeline.runtime.weights.watched_words import GUARDED

_I32 = llvm_ir.IntType(32)
_I64 = llvm_ir.IntType(64)
_POINTER = llvm_ir.PointerType()


def declare_guarded_entry(module: llvm_ir.Module) -> llvm_ir.Function:
    """Adds its declaration: it takes the addresses of slots and of watched words, and returns 1 if one has changed."""
    return llvm_ir.Function(module, llvm_ir.FunctionType(_I32, [_POINTER, _POINTER]), GUARDED)


def define_guarded_entry(module: llvm_ir.Module, entry: llvm_ir.Function) -> None:
    """Adds the guarded entry beside `entry`, which takes the address of its slots."""
    function = declare_guarded_entry(module)
    function.attributes.add("noimplicitfloat")  # a vector of gathered words is no faster, and takes longest to compile
    slots, record = function.args
    start, compare, compared, same, call, done, stale = (
        function.append_basic_block(name) for name in ("start", "compare", "compared", "same", "call", "done", "stale")
    )
    builder = llvm_ir.IRBuilder(start)
    count = builder.load(record, typ=_I64)
    builder.cbranch(builder.icmp_unsigned("==", count, _I64(0)), same, compare)
    builder.position_at_end(compare)
    number, found = builder.phi(_I64), builder.phi(_I64)
    changes = builder.or_(found, _difference(builder, record, number))
    following = builder.add(number, _I64(1))
    for phi, value in ((number, following), (found, changes)):
        phi.add_incoming(_I64(0), start)
        phi.add_incoming(value, compare)
    builder.cbranch(builder.icmp_unsigned("<", following, count), compare, compared)
    builder.position_at_end(compared)
    builder.cbranch(builder.icmp_unsigned("==", changes, _I64(0)), same, stale)
    builder.position_at_end(same)
    builder.cbranch(builder.icmp_unsigned("==", slots, _POINTER(None)), done, call)
    builder.position_at_end(call)
    builder.call(entry, [slots])
    builder.branch(done)
    for block, result in ((done, 0), (stale, 1)):
        builder.position_at_end(block)
        builder.ret(_I32(result))


def _difference(builder: llvm_ir.IRBuilder, record: llvm_ir.Value, number: llvm_ir.Value) -> llvm_ir.Value:
    """The bits in which the word of a row of the record is not what is expected."""
    row = builder.add(builder.shl(number, _I64(1)), _I64(1))
    address = builder.load(builder.gep(record, [row], source_etype=_I64), typ=_POINTER)
    expected = builder.load(builder.gep(record, [builder.add(row, _I64(1))], source_etype=_I64), typ=_I64)
    return builder.xor(builder.load(address, typ=_I64), expected)
