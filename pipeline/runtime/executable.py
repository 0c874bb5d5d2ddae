"""Executable: code + weights + plan. Call it, save it, refresh it; needs neither torch nor MLIR."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.errors import ArgumentError, PipelineError
from pipeline.remarks import Remark
from pipeline.runtime.arguments import ArgumentReader, Arguments
from pipeline.runtime.arrays import Allocation, ArrayLibrary, library_of, numpy_library
from pipeline.runtime.code import Code, Kernel
from pipeline.runtime.native import NativeCode
from pipeline.runtime.pytree import flatten, unflatten
from pipeline.runtime.signature import Result, Signature, TensorType

Slots = Any  # a ctypes array of int64


@dataclass(frozen=True)
class _Bound:
    """What the code reads of the weights. `refresh` replaces it as a whole, so that running calls keep one state.

    Attributes:
        template: the slots of a call with the weights' addresses filled in.
        tensors: keeps what the addresses point to alive.
        copies: for a mutated weight that is not row-major, the row-major copy that the code reads.
    """

    template: Slots
    tensors: list[Any] = field(default_factory=list)
    copies: dict[str, Any] = field(default_factory=dict)


class Executable:
    """A compiled model.

    Call it with the arguments of the model's forward method. Tensors are taken and returned without copies where they
    are row-major. Results carry no gradient and share no memory with arguments, except that an argument that the model
    returns as it is comes back itself. Several threads may call one executable at once.

    Attributes:
        signature: what it takes and returns.
        kernels: the kernels, in the order of first use.
        remarks: what the compiler decided, and why.
    """

    def __init__(
        self,
        code: Code,
        signature: Signature,
        weights: Mapping[str, Any],
        library: ArrayLibrary | None = None,
        remarks: tuple[Remark, ...] = (),
        stages: Mapping[str, str] | None = None,
    ):
        self.signature = signature
        self.remarks = remarks
        self._code = code
        self._weights = dict(weights)
        self._library = library or numpy_library()
        self._stages = dict(stages or {})
        self._native = NativeCode(code.object_file)
        self._main = self._native.entry(code.main.symbol)
        self._reader = ArgumentReader(signature)
        self._layout = _Layout(code, signature)
        self._refreshing = threading.Lock()
        self._bound = self._bind()

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels, in the order of first use."""
        return self._code.kernels

    @property
    def object_file(self) -> bytes:
        """The machine code."""
        return self._code.object_file

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Runs the model.

        Args:
            args, kwargs: as the model takes them; tensors of torch or NumPy.
            out: tensors that take the results, in the structure of the results.

        Raises:
            ArgumentError: an argument does not fit; says which, what came and what was expected.
            PipelineError: a check of the model failed, such as an index out of range.
        """
        call = self._reader.read(args, kwargs, self._library)
        bound, layout = self._bound, self._layout
        slots = (ctypes.c_int64 * layout.slots).from_buffer_copy(bound.template)
        layout.fill_arguments(slots, call)
        places = self._out_places(out, call) if out is not None else {}
        computed = {}
        for index, slot, shape, dtype in layout.moved:
            computed[index] = places[index] if index in places else call.library.empty(shape, dtype)
            slots[slot] = call.library.pointer(computed[index])
        address = ctypes.addressof(slots)
        if layout.status is not None:
            slots[layout.status] = address + 8 * (layout.slots - 1)
        self._main(address)
        self._raise_failed_check(slots)
        for index, slot, kind in layout.kept:
            computed[index] = int(slots[slot]) if kind is None else _adopt(call.library, slots, slot, kind)
        self._write_mutations(call, computed, bound)
        leaves = iter([_result(result, computed, call.leaves) for result in self.signature.results])
        returned = unflatten(self.signature.result_tree, leaves)
        return returned if out is None else self._copy_to_out(out, returned)

    def refresh(self) -> None:
        """Computes again what depends on the weights alone. Call it after the weights have changed."""
        with self._refreshing:
            self._bound = self._bind()

    def ir(self, stage: str) -> str:
        """The MLIR text after a stage of compilation: `torch`, `linalg`, `fused`, `kernels` or `llvm`."""
        if stage not in self._stages:
            known = ", ".join(self._stages) or "none: an executable loaded from a file has no IR"
            raise PipelineError(f"stage {stage!r}: this executable has {known}")
        return self._stages[stage]

    def save(self, path: str | Path) -> None:
        """Writes code, weights and signature to one file, whole or not at all; `pipeline.load` reads it back."""
        from pipeline.runtime.artifact import save

        save(Path(path), self._code, self.signature, self._weights)

    def _bind(self) -> _Bound:
        tensors: dict[str, Any] = {}
        copies: dict[str, Any] = {}
        for weight in self.signature.weights:
            live = self._weights[weight.name]
            owner = library_of(live)
            assert owner is not None
            got = TensorType(owner.dtype(live), owner.shape(live))
            if got != weight.type:
                raise PipelineError(f"weight {weight.name}: expected {weight.type}, is now {got}")
            tensors[weight.name] = owner.contiguous(live)
            if weight.mutated and owner.pointer(tensors[weight.name]) != owner.pointer(live):
                copies[weight.name] = tensors[weight.name]
        prepared = self._prepare(tensors)
        template = (ctypes.c_int64 * self._layout.slots)()
        for slot, source in self._layout.weight_slots:
            tensor = tensors[source.name] if source.kind == "weight" else prepared[source.index]
            template[slot] = _pointer(tensor)
        return _Bound(template, [*tensors.values(), *prepared], copies)

    def _prepare(self, tensors: dict[str, Any]) -> list[Any]:
        entry = self._code.prepare
        if entry is None:
            return []
        slots = (ctypes.c_int64 * entry.slots)()
        first = entry.parameter_slots()
        for slot, source in zip(first, self._code.prepare_sources, strict=False):
            slots[slot] = _pointer(tensors[source.name])
        prepared = []
        for slot, kind in zip(first[len(self._code.prepare_sources) :], self._code.prepared, strict=True):
            prepared.append(self._library.empty([int(size) for size in kind.shape], kind.dtype))
            slots[slot] = self._library.pointer(prepared[-1])
        self._native.entry(entry.symbol)(ctypes.addressof(slots))
        return prepared

    def _raise_failed_check(self, slots: Slots) -> None:
        if self._layout.status is None:
            return
        failed = slots[self._layout.slots - 1]
        if failed:
            raise PipelineError(self._code.checks[failed - 1])

    def _write_mutations(self, call: Arguments, computed: dict[int, Any], bound: _Bound) -> None:
        for mutation in self.signature.mutations:
            source = computed[mutation.result]
            targets = []
            if mutation.argument is not None:
                targets.append(call.leaves[mutation.argument])
            else:
                assert mutation.weight is not None
                targets.append(self._weights[mutation.weight])
                if mutation.weight in bound.copies:
                    targets.append(bound.copies[mutation.weight])
            for target in targets:
                _copy(target, source)

    def _out_places(self, out: Any, call: Arguments) -> dict[int, Any]:
        """For each computed result the tensor of `out` that the code can write directly."""
        places: dict[int, Any] = {}
        read = [_extent(leaf) for leaf in call.leaves if library_of(leaf) is not None]
        for result, target in zip(self.signature.results, self._out_leaves(out), strict=True):
            if result.kind != "computed" or result.index in places:
                continue
            owner = library_of(target)
            if owner is not call.library or owner.pointer(owner.contiguous(target)) != owner.pointer(target):
                continue
            first, last = owner.extent(target)
            if not any(first < other_last and other_first < last for other_first, other_last in read):
                places[result.index] = target
        return places

    def _out_leaves(self, out: Any) -> list[Any]:
        leaves = flatten(self.signature.result_tree, out, "out")
        for result, target in zip(self.signature.results, leaves, strict=True):
            wanted = result.type
            if wanted is None:
                continue
            owner = library_of(target)
            if owner is None:
                raise ArgumentError(f"argument out: expected a tensor {wanted}, got {type(target).__name__}")
            shape = owner.shape(target)
            same = len(shape) == len(wanted.shape) and all(
                isinstance(want, str) or size == want for size, want in zip(shape, wanted.shape, strict=True)
            )
            if owner.dtype(target) != wanted.dtype or not same:
                raise ArgumentError(f"argument out: expected {wanted}, got {TensorType(owner.dtype(target), shape)}")
        return leaves

    def _copy_to_out(self, out: Any, returned: Any) -> Any:
        """`out`, with every result in it; those that the code wrote there already are left alone."""
        tree = self.signature.result_tree
        for target, source in zip(flatten(tree, out, "out"), flatten(tree, returned), strict=True):
            if library_of(target) is not None and target is not source:
                if tuple(target.shape) != tuple(source.shape):
                    raise ArgumentError(
                        f"argument out: has shape {tuple(target.shape)}, the result {tuple(source.shape)}"
                    )
                _copy(target, source)
        return out


class _Layout:
    """Which slot of a call holds what; worked out once."""

    def __init__(self, code: Code, signature: Signature):
        main = code.main
        starts = main.parameter_slots()
        self.slots = main.slots + 1  # the last one is the status that failed checks leave
        self.status: int | None = None
        self.weight_slots = []
        self.argument_slots = []
        for source, start, value in zip(code.main_sources, starts, main.parameters, strict=False):
            if source.kind == "argument":
                self.argument_slots.append((source.index, start, tuple(value.dynamic_dims), value.shape is None))
            elif source.kind == "status":
                self.status = start
            else:
                self.weight_slots.append((start, source))
        types = _result_types(signature, len(main.moved))
        own = len(code.main_sources)
        places = iter(zip(starts[own:], main.parameters[own:], strict=True))
        returned = iter(main.result_slots())
        self.moved = []
        self.kept = []
        for index, moved in enumerate(main.moved):
            kind = types[index]
            if moved:
                start, value = next(places)
                assert kind is not None and value.shape is not None
                self.moved.append((index, start, value.shape, kind.dtype))
            else:
                self.kept.append((index, next(returned), kind))

    def fill_arguments(self, slots: Slots, call: Arguments) -> None:
        """Writes the arguments' addresses, sizes and numbers."""
        for index, start, dims, is_number in self.argument_slots:
            value = call.values[index]
            if is_number:
                slots[start] = value
                continue
            slots[start] = _pointer(value)
            for offset, dim in enumerate(dims):
                slots[start + 1 + offset] = value.shape[dim]


def _result_types(signature: Signature, count: int) -> list[TensorType | None]:
    """The type of each of main's results; None for a number."""
    types: list[TensorType | None] = [None] * count
    weights = {weight.name: weight.type for weight in signature.weights}
    for mutation in signature.mutations:
        if mutation.argument is not None:
            types[mutation.result] = signature.arguments[mutation.argument].type
        else:
            types[mutation.result] = weights[str(mutation.weight)]
    for result in signature.results:
        if result.kind == "computed":
            types[result.index] = result.type
    return types


def _result(result: Result, computed: dict[int, Any], leaves: list[Any]) -> Any:
    if result.kind == "computed":
        return computed[result.index]
    return leaves[result.index] if result.kind == "argument" else result.value


def _adopt(library: ArrayLibrary, slots: Slots, start: int, kind: TensorType) -> Any:
    """The tensor that a memref descriptor in the slots describes; it owns the memory."""
    rank = len(kind.shape)
    allocated, aligned, offset = slots[start : start + 3]
    assert offset == 0
    return library.adopt(Allocation(allocated), aligned, slots[start + 3 : start + 3 + rank], kind.dtype)


def _pointer(tensor: Any) -> int:
    owner = library_of(tensor)
    assert owner is not None
    return owner.pointer(tensor)


def _extent(tensor: Any) -> tuple[int, int]:
    owner = library_of(tensor)
    assert owner is not None
    return owner.extent(tensor)


def _copy(target: Any, source: Any) -> None:
    owner = library_of(target)
    assert owner is not None
    owner.copy(target, source if library_of(source) is owner else _convert(source, owner))


def _convert(source: Any, owner: ArrayLibrary) -> Any:
    """A tensor of `owner`'s library with the elements of another's."""
    other = library_of(source)
    assert other is not None
    fresh = owner.empty(other.shape(source), other.dtype(source))
    contiguous = other.contiguous(source)
    first, last = other.extent(contiguous)
    ctypes.memmove(owner.pointer(fresh), first, last - first)
    return fresh
