"""The entry that CPython calls with tensors: it checks them, finds their memory and calls @main on that.

See `pipeline.runtime.call.tensor_call`; `pipeline.runtime.interface.call_record` has the record that it reads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from llvmlite import ir as llvm_ir

from pipeline.runtime.interface.call_record import CALL, RECORD_START, TUPLE_START, RecordWord, TensorRow
from pipeline.targets.cpu.guarded_entry import declare_guarded_entry
from pipeline.targets.cpu.machine_code import Machine, Unit, object_file

_I1, _I8, _I32, _I64 = (llvm_ir.IntType(bits) for bits in (1, 8, 32, 64))
_POINTER = llvm_ir.PointerType()

#: Where a Python object says what type it is.
_TYPE = 8


@functools.cache
def tensor_entry_code(machine: Machine) -> bytes:
    """An object file of `PyObject *(PyObject *self, PyObject *const *args, Py_ssize_t count)`.

    It is the same for all code, which has the guarded entry that it calls: it is compiled once in a process.
    """
    module = llvm_ir.Module()
    function = llvm_ir.Function(module, llvm_ir.FunctionType(_POINTER, [_POINTER, _POINTER, _I64]), CALL)
    function.attributes.add("noimplicitfloat")
    _TensorEntry(function, declare_guarded_entry(module)).emit()
    return object_file(Unit(str(module), "", (CALL,), ()), machine)


class _TensorEntry:
    """Writes that function, block by block; whatever it does not expect is left to the caller: `NotImplemented`."""

    def __init__(self, function: llvm_ir.Function, guarded: llvm_ir.Function):
        self._function, self._guarded = function, guarded
        self._builder = llvm_ir.IRBuilder(function.append_basic_block("start"))
        self._refuse = function.append_basic_block("refuse")
        self._record = self._at(function.args[0], _I64(RECORD_START))

    def emit(self) -> None:
        """The whole function."""
        builder, (_, arguments, count) = self._builder, self._function.args
        self._go_on_if(builder.icmp_unsigned("==", count, self._word(RecordWord.ARGUMENTS)))
        total = self._word(RecordWord.SLOTS)
        slots = builder.alloca(_I64, size=total)
        template = self._pointer(RecordWord.TEMPLATE)
        self._loop(total, lambda i: builder.store(self._load(template, i), self._element(slots, i)))
        self._loop(count, lambda i: self._argument(slots, arguments, i))
        self._place(slots)
        result = self._new(RecordWord.MAKE)
        self._loop(self._word(RecordWord.RESULTS), lambda i: self._result(slots, result, i))
        self._run(slots, total, result)
        self._emit_refusal()

    def _argument(self, slots: llvm_ir.Value, arguments: llvm_ir.Value, number: llvm_ir.Value) -> None:
        """Checks an argument, and stores where its memory is."""
        builder = self._builder
        value = builder.load(builder.gep(arguments, [number], source_etype=_POINTER), typ=_POINTER)
        kind = self._load_at(value, _I64(_TYPE))
        is_tensor = builder.icmp_unsigned("==", kind, self._word(RecordWord.TENSOR))
        self._go_on_if(builder.or_(is_tensor, builder.icmp_unsigned("==", kind, self._word(RecordWord.PARAMETER))))
        row = self._row(number)
        tensor = self._load_pointer(value, self._word(RecordWord.CDATA))
        differences = [
            self._differences(tensor, self._word_of(row, each)) for each in (TensorRow.EXPECTED, TensorRow.INFERENCE)
        ]
        equal = [builder.icmp_unsigned("==", difference, _I64(0)) for difference in differences]
        self._go_on_if(builder.or_(*equal))
        address = self._address(tensor, self._word_of(row, TensorRow.WIDTH))
        self._go_on_if(builder.icmp_unsigned("!=", address, _I64(0)))
        builder.store(address, self._element(slots, self._word_of(row, TensorRow.SLOT)))

    def _place(self, slots: llvm_ir.Value) -> None:
        """Stores where temporaries are, if there are some: what a function of Python returns, two numbers."""
        builder = self._builder
        inside, behind = (self._function.append_basic_block() for _ in range(2))
        builder.cbranch(builder.icmp_unsigned("==", self._word(RecordWord.PLACE), _I64(0)), behind, inside)
        builder.position_at_end(inside)
        place = self._new(RecordWord.PLACE)
        number = self._function_of(_I64, [_POINTER], RecordWord.NUMBER)
        for item, slot in enumerate((RecordWord.PLACE_SLOT, RecordWord.SIZE_SLOT)):
            found = builder.call(number, [self._load_pointer(place, _I64(TUPLE_START + 8 * item))])
            builder.store(found, self._element(slots, self._word(slot)))
        builder.call(self._function_of(llvm_ir.VoidType(), [_POINTER], RecordWord.RELEASE), [place])
        builder.branch(behind)
        builder.position_at_end(behind)

    def _result(self, slots: llvm_ir.Value, result: llvm_ir.Value, number: llvm_ir.Value) -> None:
        """Stores where the memory of a result is: of all that there is, or of one in a tuple."""
        builder = self._builder
        item = builder.add(builder.shl(number, _I64(3)), _I64(TUPLE_START))
        in_tuple = builder.load(self._at(result, builder.mul(item, self._word(RecordWord.IN_TUPLE))), typ=_POINTER)
        is_one = builder.icmp_unsigned("==", self._word(RecordWord.IN_TUPLE), _I64(0))
        tensor = self._load_pointer(builder.select(is_one, result, in_tuple), self._word(RecordWord.CDATA))
        row = self._row(builder.add(number, self._word(RecordWord.ARGUMENTS)))
        address = self._address(tensor, self._word_of(row, TensorRow.WIDTH))
        builder.store(address, self._element(slots, self._word_of(row, TensorRow.SLOT)))

    def _new(self, word: RecordWord) -> llvm_ir.Value:
        """What a callable of the record returns; an exception is handed on."""
        made = self._builder.call(self._function_of(_POINTER, [_POINTER]), [self._pointer(word)])
        self._return_if(self._builder.icmp_unsigned("==", made, _POINTER(None)), _POINTER(None))
        return made

    def _row(self, number: llvm_ir.Value) -> llvm_ir.Value:
        return self._builder.add(self._builder.mul(number, _I64(len(TensorRow))), _I64(len(RecordWord)))

    def _differences(self, tensor: llvm_ir.Value, expected: llvm_ir.Value) -> llvm_ir.Value:
        """The bits in which words of a tensor's structure are not what is expected."""
        builder = self._builder
        expected = builder.inttoptr(expected, _POINTER)
        offsets, masks = self._pointer(RecordWord.OFFSETS), self._pointer(RecordWord.MASKS)

        def compare(number: llvm_ir.Value, found: llvm_ir.Value) -> llvm_ir.Value:
            word = self._load_at(tensor, self._load(offsets, number))
            difference = builder.xor(word, self._load(expected, number))
            return builder.or_(found, builder.and_(difference, self._load(masks, number)))

        return self._fold(self._word(RecordWord.COMPARED), compare)

    def _address(self, tensor: llvm_ir.Value, width: llvm_ir.Value) -> llvm_ir.Value:
        """Where the first element of a tensor is; 0 where its memory was freed."""
        builder = self._builder
        storage = self._load_pointer(tensor, self._word(RecordWord.STORAGE))
        data, start = (
            self._load_at(storage, self._word(RecordWord.DATA)),
            self._load_at(tensor, self._word(RecordWord.START)),
        )
        address = builder.add(data, builder.mul(start, width))
        return builder.select(builder.icmp_unsigned("==", data, _I64(0)), data, address)

    def _run(self, slots: llvm_ir.Value, total: llvm_ir.Value, result: llvm_ir.Value) -> None:
        """Runs the code while other threads of Python may, and returns the result unless a check has failed."""
        builder = self._builder
        failure = self._element(slots, builder.sub(total, _I64(1)))
        status = self._element(
            slots, self._word(RecordWord.STATUS_SLOT)
        )  # the last slot itself where there are no checks
        builder.store(builder.ptrtoint(failure, _I64), status)
        builder.store(_I64(0), failure)
        thread = builder.call(self._function_of(_POINTER, [], RecordWord.SAVE_THREAD), [])
        stale = builder.call(self._guarded, [slots, self._pointer(RecordWord.WATCHED)])
        builder.call(self._function_of(llvm_ir.VoidType(), [_POINTER], RecordWord.RESTORE_THREAD), [thread])
        failed = builder.or_(builder.zext(stale, _I64), builder.load(failure, typ=_I64))
        self._return_if(builder.icmp_unsigned("==", failed, _I64(0)), result)
        builder.call(self._function_of(llvm_ir.VoidType(), [_POINTER], RecordWord.RELEASE), [result])
        builder.branch(self._refuse)

    def _emit_refusal(self) -> None:
        builder = self._builder
        builder.position_at_end(self._refuse)
        answer = self._pointer(RecordWord.NOT_IMPLEMENTED)
        builder.call(self._function_of(llvm_ir.VoidType(), [_POINTER], RecordWord.RETAIN), [answer])
        builder.ret(answer)

    def _go_on_if(self, condition: llvm_ir.Value) -> None:
        following = self._function.append_basic_block()
        self._builder.cbranch(condition, following, self._refuse)
        self._builder.position_at_end(following)

    def _return_if(self, condition: llvm_ir.Value, value: llvm_ir.Value) -> None:
        done, following = (self._function.append_basic_block() for _ in range(2))
        self._builder.cbranch(condition, done, following)
        self._builder.position_at_end(done)
        self._builder.ret(value)
        self._builder.position_at_end(following)

    def _loop(self, count: llvm_ir.Value, body: Callable[[llvm_ir.Value], object]) -> None:
        """Does something for each number below a count."""

        def each(number: llvm_ir.Value, found: llvm_ir.Value) -> llvm_ir.Value:
            body(number)
            return found

        self._fold(count, each)

    def _fold(
        self, count: llvm_ir.Value, body: Callable[[llvm_ir.Value, llvm_ir.Value], llvm_ir.Value]
    ) -> llvm_ir.Value:
        """What becomes of 0 when something is done with it for each number below a count."""
        builder, before = self._builder, self._builder.block
        head, inside, behind = (self._function.append_basic_block() for _ in range(3))
        builder.branch(head)
        builder.position_at_end(head)
        number, found = builder.phi(_I64), builder.phi(_I64)
        builder.cbranch(builder.icmp_unsigned("<", number, count), inside, behind)
        builder.position_at_end(inside)
        value, following = body(number, found), builder.add(number, _I64(1))
        for phi, first, next_value in ((number, _I64(0), following), (found, _I64(0), value)):
            phi.add_incoming(first, before)
            phi.add_incoming(next_value, builder.block)
        builder.branch(head)
        builder.position_at_end(behind)
        return found

    def _function_of(
        self, result: llvm_ir.Type, arguments: Sequence[llvm_ir.Type], word: RecordWord = RecordWord.NEW
    ) -> llvm_ir.Value:
        """A function of CPython's, by its address in the record."""
        kind = llvm_ir.FunctionType(result, arguments)
        return self._builder.inttoptr(self._word(word), kind.as_pointer())

    def _word(self, word: RecordWord) -> llvm_ir.Value:
        return self._load(self._record, _I64(word))

    def _pointer(self, word: RecordWord) -> llvm_ir.Value:
        return self._builder.inttoptr(self._word(word), _POINTER)

    def _word_of(self, row: llvm_ir.Value, word: TensorRow) -> llvm_ir.Value:
        return self._load(self._record, self._builder.add(row, _I64(word)))

    def _element(self, words: llvm_ir.Value, number: llvm_ir.Value) -> llvm_ir.Value:
        return self._builder.gep(words, [number], source_etype=_I64)

    def _load(self, words: llvm_ir.Value, number: llvm_ir.Value) -> llvm_ir.Value:
        return self._builder.load(self._element(words, number), typ=_I64)

    def _at(self, structure: llvm_ir.Value, offset: llvm_ir.Value) -> llvm_ir.Value:
        return self._builder.gep(structure, [offset], source_etype=_I8)

    def _load_at(self, structure: llvm_ir.Value, offset: llvm_ir.Value) -> llvm_ir.Value:
        return self._builder.load(self._at(structure, offset), typ=_I64)

    def _load_pointer(self, structure: llvm_ir.Value, offset: llvm_ir.Value) -> llvm_ir.Value:
        return self._builder.load(self._at(structure, offset), typ=_POINTER)
