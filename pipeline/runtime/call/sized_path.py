"""The short way of a call whose sizes are known at the call only: of arguments, and of results that the code allocates.

`fast_path` is for code that knows all sizes. This takes tensors of torch and ints by position, each checked in a
microsecond, and their sizes by one function (`size_check`), and has code write to tensors in place. What it does not
expect it leaves to `Executable`'s own checks, which then find what is wrong and say so.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from pipeline.runtime.call.arguments import is_shared
from pipeline.runtime.call.array_libraries import torch_library
from pipeline.runtime.call.fast_path import collector, is_flat, writes_in_place
from pipeline.runtime.call.result_pool import ResultMemory
from pipeline.runtime.call.size_check import Fits, size_check
from pipeline.runtime.call.slot_layout import SlotLayout
from pipeline.runtime.call.workspace import Workspace
from pipeline.runtime.interface.aligned_memory import first_row_of_nothing
from pipeline.runtime.interface.pytree import LEAF
from pipeline.runtime.interface.signature import Argument, Signature
from pipeline.runtime.weights.weight_binding import BoundWeights

#: The ints that fit a slot.
_LEAST, _MOST = -(2**63), 2**63 - 1


class SizedPath:
    """Prepared once for an executable whose calls may go that way; see `sized_path`."""

    def __init__(
        self, signature: Signature, layout: SlotLayout, workspace: Workspace, memory: ResultMemory, fits: Fits
    ):
        torch = sys.modules["torch"]
        self._tensors, self._strided = frozenset({torch.Tensor, torch.nn.Parameter}), torch.strided
        self._layout, self._memory, self._fits = layout, memory, fits
        self._library = torch_library()
        places = {index: (start, tuple(enumerate(dims, start + 1))) for index, start, dims, _ in layout.argument_slots}
        unread = layout.slots - 1, ()
        self._arguments = [
            (*_kind(argument), *places.get(index, unread)) for index, argument in enumerate(signature.arguments)
        ]
        self._count = len(self._arguments)
        self._written = frozenset(one.argument for one in signature.mutations if one.argument is not None)
        self._mark_written = torch.autograd.graph.increment_version
        self._permuted = {one.index: one.permutation for one in signature.results if one.permutation}
        self._results = [(one.index, one.kind == "number") for one in signature.results]
        self._is_one = signature.result_tree == LEAF
        self._collect = collector(signature.result_tree)
        self._place = workspace.place if workspace.is_needed else None
        self._copy = (ctypes.c_int64 * layout.slots).from_buffer_copy

    def call(self, args: tuple[Any, ...], weights: BoundWeights) -> Any:
        """What the call returns; `NotImplemented` if it has to go the long way, as where a weight has changed."""
        if len(args) != self._count:
            return NotImplemented
        slots, layout = self._copy(weights.template), self._layout
        try:
            read = self._fill(slots, args)
        except (RuntimeError, ArithmeticError, ValueError):  # nested, or in torch.func; a condition without a value
            return NotImplemented
        if read is None or (self._written and self._is_shared(read, weights)):
            return NotImplemented
        computed = {}
        for index, slot, shape, dtype in layout.moved:
            computed[index] = result = self._memory.tensor(self._library, shape, dtype)
            slots[slot] = result.data_ptr()
        if self._place is not None:
            slots[layout.workspace[0]], slots[layout.workspace[1]] = self._place()
        if layout.seed is not None:
            slots[layout.seed] = self._library.seed()
        watch, address, failure = weights.watch, ctypes.addressof(slots), layout.slots - 1
        if layout.status is not None:
            slots[failure] = 0  # where the addresses of arguments that are not read went
            slots[layout.status] = address + 8 * failure
        if watch.run(address, watch.record):
            return NotImplemented
        computed |= layout.allocated_results(slots, self._library)
        if layout.status is not None and slots[failure]:
            return NotImplemented
        if self._written:
            self._mark_written([args[number] for number in self._written])
        return self._handed_out(computed)

    def _fill(self, slots: Any, args: tuple[Any, ...]) -> dict[int, Any] | None:
        """Writes addresses, sizes and numbers; returns the tensors that are read, None for what does not fit."""
        tensors, strided = self._tensors, self._strided
        read: dict[int, Any] = {}
        sizes: list[Any] = []
        for arg, (dtype, rank, slot, dims) in zip(args, self._arguments, strict=True):
            if dtype is None:
                if type(arg) is not int or not _LEAST <= arg <= _MOST:
                    return None
                slots[slot] = arg
                sizes.append(arg)
                continue
            if type(arg) not in tensors or arg.layout is not strided or arg.dtype is not dtype or not arg.is_cpu:
                return None
            if not arg.is_contiguous() or arg.is_neg() or arg.is_conj():
                if len(sizes) in self._written:
                    return None
                arg = self._library.contiguous(arg)
            shape, address = arg.shape, arg.data_ptr()
            if len(shape) != rank:
                return None
            if not address:
                if 0 not in shape:  # its memory was freed
                    return None
                address = first_row_of_nothing(shape, dtype.itemsize)
            slots[slot] = address
            for place, dim in dims:
                slots[place] = shape[dim]
            read[len(sizes)] = arg
            sizes.append(shape)
        return read if self._fits(*sizes) else None

    def _is_shared(self, read: dict[int, Any], weights: BoundWeights) -> bool:
        """Whether an argument that is written to shares memory with another one, or with a weight."""
        places = [
            (start := arg.data_ptr(), start + arg.nbytes, True, number in self._written) for number, arg in read.items()
        ]
        return is_shared([*places, *((begin, end, False, False) for _, begin, end in weights.extents)])

    def _handed_out(self, computed: dict[int, Any]) -> Any:
        """The results in the model's structure."""
        for index, permutation in self._permuted.items():
            computed[index] = self._library.relabelled(computed[index], permutation)
        values = [computed[index].item() if is_number else computed[index] for index, is_number in self._results]
        if self._is_one:
            return values[0]
        results = tuple(values)
        return results if self._collect is None else self._collect(results)


def sized_path(
    signature: Signature, layout: SlotLayout, workspace: Workspace, memory: ResultMemory
) -> SizedPath | None:
    """The short way of an executable's calls; None if they may not go that way."""
    kinds = {argument.kind for argument in signature.arguments}
    if (
        "torch" not in sys.modules
        or layout.profile is not None
        or not writes_in_place(signature, layout)
        or "tensor" not in kinds
        or not kinds <= {"tensor", "int"}
        or not {result.kind for result in signature.results} <= {"computed", "number"}
        or not is_flat(signature.argument_tree.children[0])
        or signature.argument_tree.children[1].keys
    ):
        return None
    fits = size_check(signature)
    return None if fits is None else SizedPath(signature, layout, workspace, memory, fits)


def _kind(argument: Argument) -> tuple[Any, int]:
    """torch's dtype of a tensor, and its rank; None of an int."""
    kind = argument.type
    return (None, 0) if kind is None else (getattr(sys.modules["torch"], kind.dtype), len(kind.shape))
