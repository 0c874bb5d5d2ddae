"""The record by which compiled code reads tensors that CPython hands it: words of 64 bits.

    what a call looks like          how many arguments and slots there are, and what the slots begin with
    where structures have what      offsets in tensors' structures, the types of tensors
    functions of CPython            by their addresses: the code links to nothing

`RecordWord` are the first ones, then there is a `TensorRow` for each argument and each result.
"""

from __future__ import annotations

import enum

#: The entry's name.
CALL = "pipeline_call"

#: Where the bytes of a bytes object begin: the record is one, which the function has as `self`.
RECORD_START = 32

#: Where the first item of a tuple is.
TUPLE_START = 24


class RecordWord(enum.IntEnum):
    """What the first words of a record are."""

    ARGUMENTS = 0
    SLOTS = enum.auto()
    TEMPLATE = enum.auto()
    WATCHED = enum.auto()
    TENSOR = enum.auto()
    PARAMETER = enum.auto()
    CDATA = enum.auto()
    STORAGE = enum.auto()
    DATA = enum.auto()
    START = enum.auto()
    COMPARED = enum.auto()
    OFFSETS = enum.auto()
    MASKS = enum.auto()
    MAKE = enum.auto()
    RESULTS = enum.auto()
    IN_TUPLE = enum.auto()
    STATUS_SLOT = enum.auto()
    PLACE = enum.auto()
    PLACE_SLOT = enum.auto()
    SIZE_SLOT = enum.auto()
    NOT_IMPLEMENTED = enum.auto()
    NEW = enum.auto()
    SAVE_THREAD = enum.auto()
    RESTORE_THREAD = enum.auto()
    RELEASE = enum.auto()
    RETAIN = enum.auto()
    NUMBER = enum.auto()


class TensorRow(enum.IntEnum):
    """What the words of an argument or a result are: its slot, the bytes of an element, what its structure has.

    What a structure has is the addresses of the words of tensors that are made in inference mode and not; of results
    they are not read.
    """

    SLOT = 0
    WIDTH = 1
    EXPECTED = 2
    INFERENCE = 3
