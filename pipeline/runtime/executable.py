"""Executable: code + weights + plan. Call it, save it, refresh it; needs neither torch nor MLIR."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pipeline import logs
from pipeline.errors import ArgumentError, OptionError, PipelineError
from pipeline.remarks import Remark
from pipeline.runtime.call.arguments import ArgumentReader
from pipeline.runtime.call.array_libraries import numpy_library
from pipeline.runtime.call.array_library import ArrayLibrary
from pipeline.runtime.call.fast_path import FastPath, suits
from pipeline.runtime.call.out_arguments import Destinations
from pipeline.runtime.call.outcome import hand_out, write_mutations
from pipeline.runtime.call.result_pool import ResultMemory
from pipeline.runtime.call.sized_path import SizedPath, sized_path
from pipeline.runtime.call.slot_layout import SlotLayout, Slots
from pipeline.runtime.call.vmapped import call_each, is_vmapped
from pipeline.runtime.call.workspace import Workspace
from pipeline.runtime.interface.aligned_memory import offsets
from pipeline.runtime.interface.code import Code, Kernel
from pipeline.runtime.interface.recycled_memory import RecycledMemory
from pipeline.runtime.interface.signature import Signature
from pipeline.runtime.native import openmp_team
from pipeline.runtime.native.externals import Externals
from pipeline.runtime.native.object_loader import NativeCode
from pipeline.runtime.report import torch_ranges
from pipeline.runtime.report.event_record import Record
from pipeline.runtime.report.footprint import Footprint, footprint
from pipeline.runtime.report.fusion_contract import check_fused, check_not_fused
from pipeline.runtime.report.printed import as_html, as_text
from pipeline.runtime.weights.preparation import Preparation, PreparedTensor
from pipeline.runtime.weights.weight_binding import BoundWeights, WeightsNow, bind, known, live_weights, look_up
from pipeline.runtime.weights.weight_source import FixedWeights, Rebound, RefreshMode, WeightSource

if TYPE_CHECKING:
    from pipeline.report.recording import Recording
    from pipeline.runtime.report.profiler import Profile

_told = logs.log("weights")


@dataclass(frozen=True)
class Fallback:
    """An op that torch runs, since it cannot be lowered.

    Attributes:
        op: its name, e.g. `aten.linalg_inv_ex.default`.
        source: the PyTorch source line, `file.py:12`, where known.
        reason: why it cannot be lowered.
    """

    op: str
    source: str | None
    reason: str

    def __str__(self) -> str:
        return f"{self.op} at {self.source or 'unknown source line'}: {self.reason}"


class Executable:
    """A compiled model.

    Call it with the arguments of the model's forward method. Tensors are taken without copies where they are row-major.
    Results are row-major, or permuted as eager's views are. They carry no gradient and share no memory with arguments,
    except that an argument that the model returns as it is comes back itself. Several threads may call one executable
    at once.

    Attributes:
        signature: what it takes and returns.
        kernels: the kernels, in the order of first use: those of @main, then those of @prepare alone.
        remarks: what the compiler decided, and why.
        passes: all passes from `linalg` to the last stage of MLIR (`llvm`; on GPUs `gpu`), as one pipeline with which
            pipeline-opt makes the one stage of the other; empty for an executable loaded from a file.
        fallbacks: the ops that torch runs, each with the reason; none of an executable that is code alone.
        name: what the model is called: its class or function.
        options: those options of its compilation that were not the usual ones.
    """

    fallbacks: tuple[Fallback, ...] = ()
    name: str = "a model"
    options: Mapping[str, Any] = MappingProxyType({})

    def __init__(
        self,
        code: Code,
        signature: Signature,
        weights: WeightSource,
        library: ArrayLibrary | None = None,
        remarks: tuple[Remark, ...] = (),
        stages: Mapping[str, str] | None = None,
        passes: str = "",
        timed: Callable[[], Executable] | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        num_threads: int | None = None,
        release: Callable[[Iterable[str]], None] | None = None,
        refresh: RefreshMode = "auto",
        recorded: Callable[[], Recording] | None = None,
    ):
        self.signature = signature
        self.remarks = remarks
        self.passes = passes
        self._code = code
        self._source = weights
        self._preparation = weights.preparation or Preparation()
        self._bound: BoundWeights
        self._is_watched = refresh == "auto"
        self._library = library or numpy_library()
        self._stages = stages or {}
        self._timed = timed
        self._recorded = recorded
        self._release = release
        self.load_code(functions or {}, num_threads)
        self.start()

    def load_code(self, functions: Mapping[str, Callable[..., Any]], num_threads: int | None) -> None:
        """Makes the code callable; `functions` are those of Python that it calls."""
        code, signature = self._code, self.signature
        self._externals = Externals(code.externals, functions)
        self._native = NativeCode(code.objects, self._externals.addresses)
        self._main = self._native.entry(code.main.symbol)
        place = self._native.number(openmp_team.THREADS)
        self._threads = None if place is None else openmp_team.TeamSize(place)
        self.num_threads = openmp_team.wanted(num_threads)
        self._reader = ArgumentReader(signature)
        self._layout = SlotLayout(code, signature)
        team = self._threads.team if self._threads is not None else lambda: 1
        self._workspace = Workspace(code.workspace, code.thread_bytes, team)
        self._result_memory = ResultMemory(self.memory.results)
        self._prepared_memory = RecycledMemory(offsets(list(code.kept.values()))[-1])
        self._record = Record(len(code.sites)) if code.sites else None
        self._fast = None if code.externals else self._short_way()

    def _short_way(self) -> FastPath | SizedPath | None:
        """How most calls go, if there is a shorter way than the one that checks everything."""
        prepared = self.signature, self._layout, self._workspace, self._result_memory
        if suits(self.signature, self._layout):
            return FastPath(*prepared, self._native.tensor_entry())
        return sized_path(*prepared)

    def share_workspace(self, other: Executable) -> None:
        """Has the temporaries of both lie in the same memory: a call of one never happens inside a call of the other.

        Where either calls functions of Python, or runs in parts or on a device, each keeps its own.
        """
        mine, theirs = vars(self).get("_workspace"), vars(other).get("_workspace")
        if mine is not None and theirs is not None and not self._code.externals and not other._code.externals:
            mine.share(theirs)

    def start(self) -> None:
        """Binds the weights for the first time; what others have prepared of them is taken."""
        with self._preparation.lock:
            self._preparation.join(self)
            self._bind()

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    @property
    def target(self) -> str:
        """What its code is for: the processor."""
        return self._code.cpu

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
    def record(self) -> Record | None:
        """Where the code records the times of its kernels; None if it does not time them."""
        return self._record

    @property
    def code(self) -> Code:
        """The machine code and how to call it."""
        return self._code

    @property
    def objects(self) -> tuple[bytes, ...]:
        """The machine code: one shared object; of code that others link, an object file."""
        return self._code.objects

    @property
    def buffers(self) -> dict[str, Any]:
        """The tensors of the model that calls write to, by name, where they lie: a cache, a count of steps.

        They may be written to between calls, to set a cache back. Those of an artifact are NumPy arrays.
        """
        live = self.weights
        return {weight.name: live[weight.name] for weight in self.signature.weights if weight.mutated}

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
            results = self._fast.call(args, self._bound)
            if results is not NotImplemented:
                return results
        try:
            return self._call(args, kwargs, out)
        except ArgumentError:
            if out is not None or not is_vmapped(args, kwargs):
                raise
        return call_each(self, args, kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> Any:
        bound, layout = self._current(), self._layout
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
        slots[layout.workspace[0]], slots[layout.workspace[1]] = self._workspace.place()
        if layout.profile is not None and self._record is not None:
            slots[layout.profile[0]], slots[layout.profile[1]] = self._record.address, self._record.words
        if layout.seed is not None:
            slots[layout.seed] = call.library.seed()
        if layout.status is not None:
            slots[layout.status] = address + 8 * (layout.slots - 1)
        self._run_main(address)
        self._externals.raise_failure()
        computed |= layout.allocated_results(slots, call.library)
        self._raise_failed_check(slots)
        write_mutations(self.signature, call, computed, bound.live, bound.copies)
        bound.accept_copies()
        return hand_out(self.signature, call, computed, destinations)

    def _run_main(self, address: int) -> None:
        """Calls the code with its slots; kernels that are timed are ranges of a profiler that watches."""
        if self._record is None or not torch_ranges.is_profiling():
            self._main(address)
            return
        with torch_ranges.shown(self._record, self._code.sites):
            self._main(address)

    def refresh(self) -> None:
        """Reads the model's weights again, and computes what depends on them alone.

        So do the executables that it shares with what it has prepared: the entries of a bundle.

        Calls do so by themselves where they notice that weights have changed. They do not notice what is written
        through NumPy or to the `.data` of a tensor, nor writes to tensors that were made in `torch.inference_mode`;
        with `refresh="manual"` they notice nothing but that a weight lies elsewhere.

        Raises:
            PipelineError: a weight has another dtype or shape than when the model was compiled; says which.
        """
        with self._preparation.lock:
            self._preparation.forget()
            for executable in self._preparation.executables:
                executable._bind()

    def rebind(self, weights: Mapping[str, Any]) -> None:
        """Takes these tensors from now on, by the names of the weights that they stand for; others stay.

        Raises:
            PipelineError: a name is not that of a weight, or a tensor has another dtype or shape than it; then nothing
                has changed.
        """
        with self._preparation.lock:
            before = self._source
            self._source = Rebound.over(before, weights, {weight.name for weight in self.signature.weights})
            try:
                self.refresh()
            except PipelineError:
                self._source = before
                raise

    def _bind(self) -> None:
        self._take(self._look_up())

    def _bind_again(self) -> None:
        """Binds weights that may have changed; what was prepared of others goes first, unless a running call has it."""
        now = self._look_up()
        if now.states == self._bound.states:
            self._bound = replace(self._bound, watch=now.watch)
            return
        self._bound = self._bound.outdated(known(self._code, now.live, self._preparation))
        self._take(now)

    def _look_up(self) -> WeightsNow:
        return look_up(self._code, self._native, self.signature, self._source, is_watched=self._is_watched)

    def _take(self, now: WeightsNow) -> None:
        bound = bind(
            self._code, self._native, self.signature, self._layout, now, self._preparation, self._prepared_memory
        )
        self._externals.raise_failure()
        if self._release is not None:
            self._release(self._code.prepared_weights(weight.name for weight in self.signature.weights))
        self._bound = bound

    def _current(self) -> BoundWeights:
        """The weights as they are now: bound again if they have changed, by all that share what is prepared."""
        if self._bound.has_changed():
            with self._preparation.lock:
                if self._bound.has_changed():  # no other thread was faster
                    _told.info("weights of %s have changed: they are bound and prepared again", self.name)
                    for executable in self._preparation.executables:
                        executable._bind_again()
        return self._bound

    def with_weights(self, weights: Mapping[str, Any]) -> Executable:
        """The same code with other weights; raises `PipelineError` if one has another dtype or shape."""
        other = self.without_weights()
        other._source = FixedWeights(dict(weights))
        if self._timed is not None:
            timed = self._timed
            other._timed = lambda: timed().with_weights(weights)
        other.start()
        return other

    def without_weights(self) -> Executable:
        """The code alone: no executable to call, but one to take `with_weights` of."""
        other = object.__new__(type(self))  # copy.copy would make an artifact
        vars(other).update(vars(self))
        other._preparation = Preparation()
        other._source = FixedWeights()
        vars(other).pop("_bound", None)
        return other

    def profile(self, *args: Any, repeats: int = 10, **kwargs: Any) -> Profile:
        """Where the time of a call with these arguments goes, kernel by kernel; `repeats` calls are measured.

        Raises:
            PipelineError: it was loaded from a file and not compiled with `profile=True`.
        """
        from pipeline.runtime.report.profiler import measure

        if self._record is None and self._timed is not None:
            timed = self._timed()
            timed.num_threads = self.num_threads
            if isinstance(self._source, Rebound):
                timed.rebind(self._source.taken)
            return timed.profile(*args, repeats=repeats, **kwargs)
        if self._record is None:
            raise PipelineError("this executable does not time its kernels: compile the model with profile=True")
        return measure(self, self._code, self._record, args, kwargs, repeats)

    def report(self, path: str | Path, *args: Any, repeats: int = 10, **kwargs: Any) -> None:
        """Writes a page that shows what the model became, to be opened in a browser; see docs/report.md.

        The model is compiled once more, by passes that are watched. An executable that was loaded from a file has no
        model to compile: its page has what the file has, and says what is missing.

        Args:
            path: the file, which is written whole or not at all.
            args, kwargs: arguments of a call, which is measured as `profile` does; without any nothing is measured.
            repeats: how many calls are measured.

        Raises:
            PipelineError: the file cannot be written.
        """
        from pipeline.report.collect import contents_of
        from pipeline.report.page import write

        write(path, contents_of(self, args, kwargs, repeats))

    def recordings(self) -> tuple[Recording, ...]:
        """What passes do to the model when it is compiled once more; none of an executable loaded from a file."""
        return () if self._recorded is None else (self._recorded(),)

    @property
    def has_profile(self) -> bool:
        """Whether `profile` can measure it."""
        return self._record is not None or self._timed is not None

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

    @property
    def prepared(self) -> tuple[PreparedTensor, ...]:
        """What it has computed of its weights alone, which the other entries of a bundle may read, too."""
        return tuple(self._current().prepared.values())

    @property
    def weights(self) -> dict[str, Any]:
        """The tensors of the model that the code reads, by name, buffers among them."""
        return live_weights(self.signature, self._source)

    def save(self, path: str | Path, *, prepacked: bool = False) -> None:
        """Writes code, weights and signature to one file, whole or not at all; `pipeline.load` reads it back.

        Args:
            prepacked: writes what is prepared from weights, and not the weights that only that needs: of quantized ones
                the bytes alone. What is loaded is ready at once, and has no weights of those names to rebind.

        Raises:
            ArtifactError: the file cannot be written.
        """
        from pipeline.runtime.artifact import save

        save(Path(path), *self.contents(prepacked=prepacked), self.name)

    def contents(self, *, prepacked: bool = False) -> tuple[Code, Signature, dict[str, Any]]:
        """Code, signature and weights, which is what files have; see `save`."""
        self._externals.check_saving()
        return self._prepacked() if prepacked else (self._code, self.signature, self.weights)

    def _prepacked(self) -> tuple[Code, Signature, dict[str, Any]]:
        """The contents of files that have what is prepared."""
        from pipeline.runtime.prepacked import prepacked

        return prepacked(self._code, self.signature, self._layout, self._current())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles and copies are artifacts: they have weights of their own, and no IR."""
        from pipeline.runtime.artifact import from_bytes, to_bytes

        self._externals.check_saving()
        data = to_bytes(self._code, self.signature, live_weights(self.signature, self._source), self.name)
        return from_bytes, (data, self._library.name, self.num_threads)

    def _raise_failed_check(self, slots: Slots) -> None:
        if self._layout.status is None:
            return
        failed = slots[self._layout.slots - 1]
        if failed:
            raise PipelineError(self._code.checks[failed - 1])
