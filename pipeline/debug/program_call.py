"""What is bisected: a model's program, and the call that it is run with."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pipeline.debug.drawn_arguments import drawn_arguments
from pipeline.debug.tracing import Call, as_mlir
from pipeline.debug.trail import in_child
from pipeline.ir.attributes import SEED
from pipeline.mlir import function
from pipeline.program import Program
from pipeline.runtime.call.arguments import ArgumentReader
from pipeline.runtime.call.array_libraries import numpy_library, torch_library
from pipeline.runtime.call.array_library import ArrayLibrary
from pipeline.runtime.call.generator import manual_seed
from pipeline.runtime.device.device_code import DeviceCode
from pipeline.runtime.executable import Executable
from pipeline.runtime.interface.code import Code
from pipeline.runtime.interface.pytree import flatten
from pipeline.runtime.interface.signature import Signature
from pipeline.runtime.loading import make_executable
from pipeline.runtime.weights.weight_source import FixedWeights

#: What the generators are seeded with before a call whose numbers are to be repeated.
_SEED = 0


@dataclass(frozen=True)
class ProgramCall:
    """See the module's docstring.

    Attributes:
        args, kwargs: those of the call; nothing is written to them.
    """

    program: Program
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def signature(self) -> Signature:
        """What the model takes and returns."""
        return self.program.signature

    @cached_property
    def call(self) -> Call:
        """The call as the interpreter takes it."""
        read = ArgumentReader(self.signature).read(self.args, self.kwargs, self._library, [])
        arguments = {number: as_mlir(value) for number, value in enumerate(read.values) if value is not None}
        weights = {name: as_mlir(tensor) for name, tensor in self.program.weights.items()}
        main = function(self.program.module, "main")
        is_random = "arg_attrs" in main.attributes and SEED in str(main.attributes["arg_attrs"])
        return Call(arguments, weights, self._drawn_seed(read.library) if is_random else 0)

    @property
    def _library(self) -> ArrayLibrary:
        return numpy_library() if self.program.weights_library == "numpy" else torch_library()

    def _drawn_seed(self, library: ArrayLibrary) -> int:
        """What a call draws first once generators are seeded; a child seeds its own ones."""

        def draw() -> int:
            _seed_generators()
            return library.seed()

        return in_child(self.program.module.context, draw)

    def executable(self, code: Code | DeviceCode, stages: Mapping[str, str] | None = None) -> Executable:
        """The code with the weights of the model, on one thread: OpenMP has none in a child."""
        return make_executable(
            code, self.signature, FixedWeights(self.program.weights), self._library, stages=stages, num_threads=1
        )

    def timed(self, executable: Executable) -> Callable[[], Any]:
        """A call as often as one likes, on arguments that it may write to. For a child to do."""
        args, kwargs = copy.deepcopy((self.args, dict(self.kwargs)))
        return lambda: executable(*args, **kwargs)

    def executed(self, executable: Executable) -> dict[int, np.ndarray]:
        """What a call gives, by the numbers of @main's results. It writes to weights: for a child to do."""
        _seed_generators()
        args, kwargs = copy.deepcopy((self.args, dict(self.kwargs)))
        results = executable(*args, **kwargs)
        found: dict[int, np.ndarray] = {}
        for result, leaf in zip(self.signature.results, flatten(self.signature.result_tree, results), strict=True):
            if result.kind in ("computed", "number"):
                array = as_mlir(leaf)
                found[result.index] = array if result.permutation is None else _unpermuted(array, result.permutation)
        leaves = flatten(self.signature.argument_tree, (args, kwargs))
        for mutation in self.signature.mutations:
            if mutation.argument is not None:
                found[mutation.result] = as_mlir(leaves[mutation.argument])
            elif mutation.weight is not None:
                found[mutation.result] = as_mlir(self.program.weights[mutation.weight])
        return found


def program_call(program: Program, given: tuple[tuple[Any, ...], Mapping[str, Any]] | None) -> ProgramCall:
    """A program with the (args, kwargs) that are given, else with numbers drawn at random."""
    args, kwargs = (drawn_arguments(program.signature), {}) if given is None else given
    return ProgramCall(program, args, kwargs)


def _seed_generators() -> None:
    manual_seed(_SEED)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(_SEED)


def _unpermuted(array: np.ndarray, permutation: Sequence[int]) -> np.ndarray:
    """The array that `permute(permutation)` was made of."""
    return array.transpose(np.argsort(permutation))
