"""The short way of a call: what most calls need, checked in a microsecond a tensor; everything else goes the long way.

It takes torch tensors and parameters by position where all sizes are known, and has code write to them in place, as
optimizers do. Whatever it does not expect, it leaves to `Executable`'s own checks, which then find what is wrong and
say so. Where there is one result and nothing else to do, the code itself reads the tensors (`tensor_call`).
"""

from __future__ import annotations

import ctypes
import functools
import math
import operator
import sys
from collections.abc import Callable
from typing import Any

from pipeline.runtime.call.arguments import is_shared
from pipeline.runtime.call.array_libraries import torch_library
from pipeline.runtime.call.result_pool import ResultMemory, is_small
from pipeline.runtime.call.slot_layout import SlotLayout
from pipeline.runtime.call.tensor_call import ArgumentRow, CallResults, TensorCall
from pipeline.runtime.call.tensor_words import TensorWords, tensor_words
from pipeline.runtime.call.workspace import Workspace
from pipeline.runtime.interface.pytree import LEAF, Tree, unflatten
from pipeline.runtime.interface.signature import Signature
from pipeline.runtime.weights.watch import WordWatch
from pipeline.runtime.weights.weight_binding import BoundWeights


class FastPath:
    """Prepared once for an executable whose calls may go that way; `suits` says whether they may."""

    def __init__(
        self,
        signature: Signature,
        layout: SlotLayout,
        workspace: Workspace,
        memory: ResultMemory,
        entry: int | None = None,
    ):
        """Prepares it; `entry` is the address of the code's own entry for tensors."""
        torch = sys.modules["torch"]
        self._tensors, self._strided = frozenset({torch.Tensor, torch.nn.Parameter}), torch.strided
        kinds = [argument.type for argument in signature.arguments]
        starts = {index: start for index, start, _, _ in layout.argument_slots}
        self._arguments = [
            (getattr(torch, kind.dtype), torch.Size(kind.shape), starts.get(index, layout.slots - 1))
            for index, kind in enumerate(kinds)
            if kind is not None
        ]
        self._count = len(self._arguments)
        orders = {result.index: result.permutation for result in signature.results}
        self._results = [
            (_maker(memory, shape, dtype, orders[index]), slot) for index, slot, shape, dtype in layout.moved
        ]
        self._widths = [getattr(torch, dtype).itemsize for _, _, _, dtype in layout.moved]
        made = [index for index, _, _, _ in layout.moved]
        order = [made.index(result.index) for result in signature.results]
        self._order = None if signature.result_tree == LEAF else order
        self._collect = collector(signature.result_tree)
        self._place = workspace.place if workspace.is_needed else None
        self._address, self._size = layout.workspace
        self._seed, self._draw = layout.seed, torch_library().seed
        self._status, self._failure = layout.status, layout.slots - 1
        written = {mutation.argument for mutation in signature.mutations}
        self._written = [number for number in range(len(kinds)) if number in written]
        sizes = [math.prod(shape) * dtype.itemsize for dtype, shape, _ in self._arguments]
        self._places = [(size, number in written) for number, size in enumerate(sizes)]
        self._mark_written = torch.autograd.graph.increment_version
        self._copy = (ctypes.c_int64 * layout.slots).from_buffer_copy
        self._entry = entry if not written and layout.seed is None else None
        self._words = tensor_words() if self._entry is not None else None
        self._rows = [] if self._words is None else [_row(self._words, *argument) for argument in self._arguments]
        self._direct: TensorCall | None = None

    def call(self, args: tuple[Any, ...], weights: BoundWeights) -> Any:
        """What the call returns; `NotImplemented` if it has to go another way, as where a weight has changed."""
        direct = self._direct
        if self._words is not None and (direct is None or direct.weights() is not weights):
            direct = self._direct = self._tensor_call(self._words, weights)
        if direct is not None:
            result = direct.function(*args)
            if result is NotImplemented and (rows := self._row_major(args)) is not None:
                result = direct.function(*rows)
            if result is not NotImplemented:
                return result if self._collect is None else self._collect(result)
        if len(args) != self._count:
            return NotImplemented
        slots = self._copy(weights.template)
        tensors, strided = self._tensors, self._strided
        try:
            for arg, (dtype, shape, slot) in zip(args, self._arguments, strict=False):
                if (
                    type(arg) not in tensors
                    or arg.layout is not strided
                    or arg.dtype is not dtype
                    or arg.shape != shape
                    or not arg.is_cpu
                    or not arg.is_contiguous()
                    or arg.is_neg()
                    or arg.is_conj()
                ):
                    return NotImplemented
                address = arg.data_ptr()
                if not address and arg.numel():  # its memory was freed
                    return NotImplemented
                slots[slot] = address
        except RuntimeError:  # nested, or inside of torch.func, where tensors have neither sizes nor memory
            return NotImplemented
        if self._written and self._is_shared(args, weights):
            return NotImplemented
        results = []
        for make, slot in self._results:
            result = make()
            slots[slot] = result.data_ptr()
            results.append(result)
        if self._place is not None:
            slots[self._address], slots[self._size] = self._place()
        if self._seed is not None:
            slots[self._seed] = self._draw()
        watch, address = weights.watch, ctypes.addressof(slots)
        if self._status is not None:
            slots[self._failure] = 0  # where the addresses of arguments that are not read went
            slots[self._status] = address + 8 * self._failure
        if watch.run(address, watch.record) or self._status is not None and slots[self._failure]:
            return NotImplemented
        if self._written:
            self._mark_written([args[number] for number in self._written])
        if self._order is None:
            return results[0]
        ordered = tuple([results[index] for index in self._order])
        return ordered if self._collect is None else self._collect(ordered)

    def _row_major(self, args: tuple[Any, ...]) -> list[Any] | None:
        """The arguments, with row-major copies of those that are not; None if all are."""
        tensors, strided = self._tensors, self._strided
        try:
            rows = [
                arg.detach().contiguous()
                if type(arg) in tensors and arg.layout is strided and not arg.is_contiguous()
                else arg
                for arg in args
            ]
        except RuntimeError:  # nested, or inside of torch.func
            return None
        return None if all(map(operator.is_, rows, args)) else rows

    def _tensor_call(self, words: TensorWords, weights: BoundWeights) -> TensorCall | None:
        """What has the code read the tensors; None where it cannot."""
        if self._entry is None or not isinstance(weights.watch, WordWatch):
            return None
        place = None if self._place is None else (self._place, self._address, self._size)
        return TensorCall(self._entry, words, self._rows, self._made(), weights, self._status, place)

    def _made(self) -> CallResults:
        """What a call returns."""
        makers = [make for make, _ in self._results]
        places = [(slot, width) for (_, slot), width in zip(self._results, self._widths, strict=True)]
        if self._order is None:
            return CallResults(makers[0], False, places)
        order = self._order
        makers, places = [makers[index] for index in order], [places[index] for index in order]
        return CallResults(lambda: tuple([make() for make in makers]), True, places)

    def _is_shared(self, args: tuple[Any, ...], weights: BoundWeights) -> bool:
        """Whether an argument that is written to shares memory with another one, or with a weight."""
        starts = [arg.data_ptr() for arg in args]
        places = [
            (start, start + size, True, is_written)
            for start, (size, is_written) in zip(starts, self._places, strict=True)
        ]
        return is_shared([*places, *((begin, end, False, False) for _, begin, end in weights.extents)])


def suits(signature: Signature, layout: SlotLayout) -> bool:
    """Whether calls of the executable may go the short way."""
    if (
        "torch" not in sys.modules
        or layout.profile is not None
        or layout.kept
        or any(dims for _, _, dims, _ in layout.argument_slots)
        or not writes_in_place(signature, layout)
    ):
        return False
    arguments, results = signature.arguments, signature.results
    return (
        len(arguments) > 0
        and all(
            argument.type is not None and all(isinstance(size, int) for size in argument.type.shape)
            for argument in arguments
        )
        and all(result.kind == "computed" for result in results)
        and is_flat(signature.argument_tree.children[0])
        and not signature.argument_tree.children[1].keys
        and len({result.index for result in results}) == len(results) == len(layout.moved)
    )


def writes_in_place(signature: Signature, layout: SlotLayout) -> bool:
    """Whether all that is mutated are arguments to which the code writes itself, which it does before no check."""
    made = {index for index, *_ in (*layout.moved, *layout.kept)}
    in_place = all(mutation.argument is not None and mutation.result not in made for mutation in signature.mutations)
    return in_place and not (signature.mutations and layout.status is not None)


def is_flat(tree: Tree) -> bool:
    """Whether it is a tuple or a list of leaves."""
    return tree.kind in ("tuple", "list") and all(child.kind == "leaf" for child in tree.children)


def _row(words: TensorWords, dtype: Any, shape: tuple[int, ...], slot: int) -> ArgumentRow:
    """What an argument is to be, as tensors are that are made in inference mode and not."""
    torch = sys.modules["torch"]
    found = []
    for is_inference in (False, True):
        with torch.inference_mode(is_inference):
            found.append(words.of(torch.empty(shape, dtype=dtype, device="cpu")))
    return ArgumentRow(slot, dtype.itemsize, *found)


def collector(tree: Tree) -> Callable[[tuple[Any, ...]], Any] | None:
    """What makes a result of its tensors; None where that is the one tensor, or the tuple, as it is."""
    if tree == LEAF or (tree.kind == "tuple" and is_flat(tree)):
        return None
    if tree.kind == "list" and is_flat(tree):
        return list
    return lambda leaves: unflatten(tree, iter(leaves))


def _maker(
    memory: ResultMemory, shape: tuple[int, ...], dtype: str, permutation: tuple[int, ...] | None
) -> Callable[[], Any]:
    """What makes a tensor for a result, in less than a microsecond where it is small."""
    torch, library = sys.modules["torch"], torch_library()
    if not is_small(shape, dtype):
        make = functools.partial(memory.tensor, library, shape, dtype)
        return make if permutation is None else lambda: library.relabelled(make(), permutation)
    like = torch.empty(shape, dtype=getattr(torch, dtype), device="cpu")
    if permutation is not None:
        like = like.permute(permutation)
    like.untyped_storage().resize_(0)  # its sizes and strides are all that is wanted
    return functools.partial(torch.empty_like, like)
