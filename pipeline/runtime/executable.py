"""Executable: code + weights + plan. Call it, save it, refresh it; needs neither torch nor MLIR."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import PipelineError
from pipeline.remarks import Remark
from pipeline.runtime.arguments import ArgumentReader, Arguments
from pipeline.runtime.arrays import ArrayLibrary, copy, numpy_library
from pipeline.runtime.code import Code, Kernel
from pipeline.runtime.destinations import Destinations
from pipeline.runtime.externals import Externals
from pipeline.runtime.fusion_contract import check_fused, check_not_fused
from pipeline.runtime.layout import Layout, Slots
from pipeline.runtime.native import NativeCode
from pipeline.runtime.pytree import unflatten
from pipeline.runtime.signature import Result, Signature
from pipeline.runtime.weights import bind
from pipeline.runtime.workspace import Workspace


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
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ):
        self.signature = signature
        self.remarks = remarks
        self._code = code
        self._weights = dict(weights)
        self._library = library or numpy_library()
        self._stages = dict(stages or {})
        self._functions = dict(functions or {})
        self._reader = ArgumentReader(signature)
        self.load_code()
        self.refresh()

    def load_code(self) -> None:
        """Makes the code callable."""
        self._externals = Externals(self._code.externals, self._functions)
        self._native = NativeCode(self._code.object_file, self._externals.addresses)
        self._main = self._native.entry(self._code.main.symbol)
        self._layout = Layout(self._code, self.signature)
        self._workspace = Workspace(self._code.workspace)
        self._refreshing = threading.Lock()

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
        bound, layout = self._bound, self._layout
        call = self._reader.read(args, kwargs, self._library, bound.extents)
        slots = (ctypes.c_int64 * layout.slots).from_buffer_copy(bound.template)
        layout.fill_arguments(slots, call)
        destinations = None if out is None else Destinations(self.signature, out)
        places = {} if destinations is None else destinations.written_by_code(call, bound.extents)
        computed: dict[int, Any] = {}
        for index, slot, shape, dtype in layout.moved:
            computed[index] = places[index] if index in places else call.library.empty(shape, dtype)
            slots[slot] = call.library.pointer(computed[index])
        address = ctypes.addressof(slots)
        slots[layout.workspace[0]], slots[layout.workspace[1]] = self._workspace.address, self._code.workspace
        if layout.status is not None:
            slots[layout.status] = address + 8 * (layout.slots - 1)
        self._main(address)
        self._externals.raise_failure()
        computed |= layout.allocated_results(slots, call.library)
        self._raise_failed_check(slots)
        self.write_mutations(call, computed, bound.copies)
        if destinations is not None:
            destinations.fill(computed, call.leaves)
            return out
        leaves = iter([result_of(result, computed, call.leaves) for result in self.signature.results])
        return unflatten(self.signature.result_tree, leaves)

    def refresh(self) -> None:
        """Computes again what depends on the weights alone. Call it after the weights have changed."""
        with self._refreshing:
            self._bound = bind(self._code, self._native, self.signature, self._layout, self._weights, self._library)
            self._externals.raise_failure()

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
        """Writes what the model mutates to the caller's tensors, the weights, and the copies of weights."""
        for mutation in self.signature.mutations:
            source = computed[mutation.result]
            targets = []
            if mutation.argument is not None:
                targets.append(call.leaves[mutation.argument])
            else:
                assert mutation.weight is not None
                targets.append(self._weights[mutation.weight])
                if mutation.weight in copies:
                    targets.append(copies[mutation.weight])
            for target in targets:
                copy(target, source)


def result_of(result: Result, computed: dict[int, Any], leaves: list[Any]) -> Any:
    """What a call returns for one leaf."""
    if result.kind == "computed":
        return computed[result.index]
    return leaves[result.index] if result.kind == "argument" else result.value
