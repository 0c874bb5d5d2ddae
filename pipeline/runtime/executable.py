"""Executable: code + weights + plan. Call it, save it, refresh it; needs neither torch nor MLIR."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable, Mapping
from copy import copy as shallow_copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import OptionError, PipelineError
from pipeline.remarks import Remark
from pipeline.runtime import fast_path, threads
from pipeline.runtime.arguments import ArgumentReader, Arguments
from pipeline.runtime.arrays import ArrayLibrary, copy, mark_written, numpy_library, pointer
from pipeline.runtime.code import Code, Kernel
from pipeline.runtime.destinations import Destinations
from pipeline.runtime.externals import Externals
from pipeline.runtime.footprint import Footprint, footprint
from pipeline.runtime.fusion_contract import check_fused, check_not_fused
from pipeline.runtime.layout import Layout, Slots
from pipeline.runtime.native import NativeCode
from pipeline.runtime.pytree import unflatten
from pipeline.runtime.record import Record
from pipeline.runtime.result_memory import ResultMemory
from pipeline.runtime.signature import Result, Signature
from pipeline.runtime.weights import bind
from pipeline.runtime.workspace import Workspace

if TYPE_CHECKING:
    from pipeline.runtime.profiler import Profile


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
        timed: Callable[[], Executable] | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        num_threads: int | None = None,
        release: Callable[[Iterable[str]], None] | None = None,
    ):
        self.signature = signature
        self.remarks = remarks
        self._code = code
        self._weights = dict(weights)
        self._library = library or numpy_library()
        self._stages = dict(stages or {})
        self._timed = timed
        self._release = release
        self.load_code(functions or {}, num_threads)
        self.refresh()

    def load_code(self, functions: Mapping[str, Callable[..., Any]], num_threads: int | None) -> None:
        """Makes the code callable; `functions` are those of Python that it calls."""
        code, signature = self._code, self.signature
        self._externals = Externals(code.externals, functions)
        self._native = NativeCode(code.objects, self._externals.addresses)
        self._main = self._native.entry(code.main.symbol)
        place = self._native.number(threads.THREADS)
        self._threads = None if place is None else threads.Number(place)
        self.num_threads = threads.wanted(num_threads)
        self._reader = ArgumentReader(signature)
        self._layout = Layout(code, signature)
        team = self._threads.team if self._threads is not None else lambda: 1
        self._workspace = Workspace(code.workspace, code.thread_bytes, team)
        self._result_memory = ResultMemory(self.memory.results)
        self._record = Record(len(code.sites)) if code.sites else None
        self._fast: fast_path.FastPath | None = None
        if not code.externals and fast_path.suits(signature, self._layout):
            self._fast = fast_path.FastPath(signature, self._layout, self._workspace, self._result_memory, self._main)
        self._refreshing = threading.Lock()

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels, in the order of first use."""
        return self._code.kernels

    @property
    def num_threads(self) -> int | None:
        """How many threads share the work of a kernel; None for as many as OpenMP says.

        Results do not depend on it, and small kernels stay on one thread. Set it at any time but during a call; it
        changes nothing in code that was compiled with `num_threads=1`.
        """
        return None if self._threads is None else self._threads.value or None

    @num_threads.setter
    def num_threads(self, number: int | None) -> None:
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise OptionError(f"num_threads: expected a number from 1 or None, got {number!r}")
        if self._threads is not None:
            self._threads.value = number or 0

    @property
    def memory(self) -> Footprint:
        """How many bytes it takes, part by part."""
        team = self._threads.team() if self._threads is not None and self._code.thread_bytes else 1
        return footprint(self._code, self.signature, team)

    @property
    def code(self) -> Code:
        """The machine code and how to call it."""
        return self._code

    @property
    def objects(self) -> tuple[bytes, ...]:
        """The machine code, as object files that call each other."""
        return self._code.objects

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Runs the model.

        Args:
            args, kwargs: as the model takes them; tensors of torch, NumPy, or another library that has DLPack.
            out: tensors that take the results, in the structure of the results.

        Raises:
            ArgumentError: an argument does not fit; says which, what came and what was expected.
            PipelineError: a check of the model failed, such as an index out of range.
        """
        if self._fast is not None and out is None and not kwargs:
            results = self._fast.call(args, self._bound.template)
            if results is not NotImplemented:
                return results
        return self._call(args, kwargs, out)

    def _call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> Any:
        bound, layout = self._bound, self._layout
        call = self._reader.read(args, kwargs, self._library, bound.extents)
        slots = (ctypes.c_int64 * layout.slots).from_buffer_copy(bound.template)
        layout.fill_arguments(slots, call)
        destinations = None if out is None else Destinations(self.signature, out)
        places = {} if destinations is None else destinations.written_by_code(call, bound.extents)
        computed: dict[int, Any] = {}
        for index, slot, shape, dtype in layout.moved:
            given = index in places
            computed[index] = places[index] if given else self._result_memory.tensor(call.library, shape, dtype)
            slots[slot] = call.library.pointer(computed[index])
        address = ctypes.addressof(slots)
        if self._workspace.varies:
            self._workspace.fit()
        slots[layout.workspace[0]], slots[layout.workspace[1]] = self._workspace.address, self._workspace.size
        if layout.profile is not None and self._record is not None:
            slots[layout.profile[0]], slots[layout.profile[1]] = self._record.address, self._record.words
        if layout.status is not None:
            slots[layout.status] = address + 8 * (layout.slots - 1)
        self._main(address)
        self._externals.raise_failure()
        computed |= layout.allocated_results(slots, call.library)
        self._raise_failed_check(slots)
        self.write_mutations(call, computed, bound.copies)
        return self.hand_out(call, computed, destinations)

    def hand_out(self, call: Arguments, computed: dict[int, Any], destinations: Destinations | None) -> Any:
        """What a call returns: the results in the model's structure, or the tensors that the caller wants filled."""
        if destinations is not None:
            destinations.fill(computed, call.leaves)
            return destinations.out
        leaves = iter([result_of(result, computed, call.leaves) for result in self.signature.results])
        return unflatten(self.signature.result_tree, leaves)

    def refresh(self) -> None:
        """Computes again what depends on the weights alone. Call it after the weights have changed."""
        with self._refreshing:
            self._bound = bind(self._code, self._native, self.signature, self._layout, self._weights)
            self._externals.raise_failure()
            if self._release is not None:
                self._release(self._code.prepared_weights(weight.name for weight in self.signature.weights))

    def with_weights(self, weights: Mapping[str, Any]) -> Executable:
        """The same code with other weights; raises `PipelineError` if one has another dtype or shape."""
        other = self.without_weights()
        other._weights = dict(weights)
        if self._timed is not None:
            timed = self._timed
            other._timed = lambda: timed().with_weights(weights)
        other.refresh()
        return other

    def without_weights(self) -> Executable:
        """The code alone: no executable to call, but one to take `with_weights` of."""
        other = shallow_copy(self)
        other._refreshing = threading.Lock()
        other._weights = {}
        vars(other).pop("_bound", None)
        return other

    def profile(self, *args: Any, repeats: int = 10, **kwargs: Any) -> Profile:
        """Where the time of a call with these arguments goes, kernel by kernel; `repeats` calls are measured.

        Raises:
            PipelineError: it was loaded from a file and not compiled with `profile=True`.
        """
        from pipeline.runtime.profiler import measure

        if self._record is None and self._timed is not None:
            timed = self._timed()
            timed.num_threads = self.num_threads
            return timed.profile(*args, repeats=repeats, **kwargs)
        if self._record is None:
            raise PipelineError("this executable does not time its kernels: compile the model with profile=True")
        return measure(self, self._code, self._record, args, kwargs, repeats)

    def ir(self, stage: str) -> str:
        """The MLIR text after a stage of compilation: `torch`, `linalg`, `fused`, `kernels` or `llvm`."""
        if stage not in self._stages:
            known = ", ".join(self._stages) or "none: an executable loaded from a file has no IR"
            raise PipelineError(f"stage {stage!r}: this executable has {known}")
        return self._stages[stage]

    def assert_fused(self, *names: str) -> None:
        """Raises `FusionError` unless one kernel computes all of `names`; says which kernels do, and why.

        Args:
            names: ops as PyTorch's functions are called (`conv2d`, `softmax`), or words of kernels' names (`exp`).
        """
        check_fused(self.kernels, self.remarks, names)

    def assert_not_fused(self, *names: str) -> None:
        """Raises `FusionError` if one kernel computes all of `names`, which are those of `assert_fused`."""
        check_not_fused(self.kernels, names)

    def save(self, path: str | Path) -> None:
        """Writes code, weights and signature to one file, whole or not at all; `pipeline.load` reads it back."""
        from pipeline.runtime.artifact import save

        self._externals.check_saving()
        save(Path(path), self._code, self.signature, self._weights)

    def _raise_failed_check(self, slots: Slots) -> None:
        if self._layout.status is None:
            return
        failed = slots[self._layout.slots - 1]
        if failed:
            raise PipelineError(self._code.checks[failed - 1])

    def write_mutations(self, call: Arguments, computed: dict[int, Any], copies: Mapping[str, Any]) -> None:
        """Writes what the model mutates to the caller's tensors, the weights, and the copies of weights.

        What is not in `computed` the code has written itself, to the memory that it was given.
        """
        for mutation in self.signature.mutations:
            if mutation.argument is not None:
                target, given = call.leaves[mutation.argument], call.values[mutation.argument]
            else:
                assert mutation.weight is not None
                target = self._weights[mutation.weight]
                given = copies.get(mutation.weight, target)
            if mutation.result in computed:
                copy(target, computed[mutation.result])
                if mutation.weight in copies:
                    copy(given, computed[mutation.result])
            elif pointer(given) == pointer(target):
                mark_written(target)
            else:
                copy(target, given)


def result_of(result: Result, computed: dict[int, Any], leaves: list[Any]) -> Any:
    """What a call returns for one leaf."""
    if result.kind == "computed":
        return computed[result.index]
    return leaves[result.index] if result.kind == "argument" else result.value
