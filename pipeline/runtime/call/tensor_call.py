"""Calls that compiled code reads itself: CPython hands it the tensors, and it looks into their structures.

A call that Python checks takes half a microsecond and more for each argument; this takes a few nanoseconds. The code is
`pipeline.targets.cpu.tensor_entry`, what it reads a record, `pipeline.runtime.interface.call_record`.

It returns `NotImplemented` for whatever it does not expect, before anything has happened, and where a weight or a check
says that the call has to go the long way.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.runtime.call.tensor_words import TensorWords
from pipeline.runtime.interface.call_record import RecordWord
from pipeline.runtime.weights.weight_binding import BoundWeights

_FASTCALL = 0x80


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


@dataclass(frozen=True)
class ArgumentRow:
    """What an argument is to be.

    Attributes:
        slot: where its address goes.
        width: the bytes of an element.
        usual, inference: the words of a tensor like it, made outside of inference mode and in it.
    """

    slot: int
    width: int
    usual: Sequence[int]
    inference: Sequence[int]


@dataclass(frozen=True)
class CallResults:
    """What a call returns.

    Attributes:
        make: makes it: a tensor, or a tuple of tensors.
        in_tuple: whether it is a tuple.
        places: the slot of each tensor, and the bytes of an element.
    """

    make: Callable[[], Any]
    in_tuple: bool
    places: Sequence[tuple[int, int]]


class TensorCall:
    """One function for the calls of an executable with its weights where they are.

    Attributes:
        function: takes tensors by position; returns the result, or `NotImplemented`.
        weights: gives what the executable has bound, if that is there still.
    """

    def __init__(
        self,
        entry: int,
        words: TensorWords,
        arguments: Sequence[ArgumentRow],
        results: CallResults,
        weights: BoundWeights,
        status: int | None,
        place: tuple[Callable[[], tuple[int, int]], int, int] | None,
    ):
        """Makes the function.

        Args:
            entry: the address of the code's entry.
            words: which words of a tensor are compared.
            status: the slot of the address where a failed check leaves its number; None if there are no checks.
            place: tells where temporaries are, with the slots of their address and size; None if there are none.
        """
        torch = sys.modules["torch"]
        self.weights = weakref.ref(weights)
        slots = len(weights.template)
        find_place, place_slot, size_slot = place or (None, 0, 0)
        self._kept = [results.make, weights.template, find_place]
        rows = [
            (argument.slot, argument.width, self._keep(argument.usual), self._keep(argument.inference))
            for argument in arguments
        ]
        head = {
            RecordWord.ARGUMENTS: len(rows),
            RecordWord.SLOTS: slots,
            RecordWord.TEMPLATE: ctypes.addressof(weights.template),
            RecordWord.WATCHED: weights.watch.record,
            RecordWord.TENSOR: id(torch.Tensor),
            RecordWord.PARAMETER: id(torch.nn.Parameter),
            RecordWord.CDATA: words.cdata,
            RecordWord.STORAGE: words.storage,
            RecordWord.DATA: words.data,
            RecordWord.START: words.start,
            RecordWord.COMPARED: len(words.compared),
            RecordWord.OFFSETS: self._keep(words.compared),
            RecordWord.MASKS: self._keep(words.masks),
            RecordWord.MAKE: id(results.make),
            RecordWord.RESULTS: len(results.places),
            RecordWord.IN_TUPLE: results.in_tuple,
            RecordWord.STATUS_SLOT: slots - 1 if status is None else status,
            RecordWord.PLACE: 0 if find_place is None else id(find_place),
            RecordWord.PLACE_SLOT: place_slot,
            RecordWord.SIZE_SLOT: size_slot,
            RecordWord.NOT_IMPLEMENTED: id(NotImplemented),
            **{word: _address_of(name) for word, name in _FUNCTIONS.items()},
        }
        rows += [(slot, width, 0, 0) for slot, width in results.places]
        record = _array([*(head[word] for word in RecordWord), *itertools.chain.from_iterable(rows)])
        self._method = _Method(b"call", entry, _FASTCALL, None)
        self.function: Callable[..., Any] = _new_function(ctypes.addressof(self._method), bytes(record), None)

    def _keep(self, numbers: Sequence[int]) -> int:
        """The address of an array of numbers that lives as long as this."""
        self._kept.append(_array(numbers))
        return ctypes.addressof(self._kept[-1])


#: Functions of CPython: makes an object by a call without arguments, lets other threads run, counts references.
_FUNCTIONS = {
    RecordWord.NEW: "PyObject_CallNoArgs",
    RecordWord.SAVE_THREAD: "PyEval_SaveThread",
    RecordWord.RESTORE_THREAD: "PyEval_RestoreThread",
    RecordWord.RELEASE: "Py_DecRef",
    RecordWord.RETAIN: "Py_IncRef",
    RecordWord.NUMBER: "PyLong_AsLongLong",
}

_new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def _array(numbers: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(numbers))(*numbers)


def _address_of(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
