"""Fusion by hand: which ops become one group, and what a group becomes.

    pipeline.compile(model, args, fusions=[pipeline.fuse_into(["linear", "relu"], name="npu_gemm", becomes=...)])

A group becomes a kernel of its own by default, or an external C function, a Python function, MLIR that a Python
function emits, or a call of an intrinsic that takes a chain of ops as a whole. docs/fusion.md has an example of each.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import OptionError
from pipeline.fusion_rules.object_handles import Lender

if TYPE_CHECKING:
    from pipeline.fusion_rules.op_facts import OpFacts

Predicate = Callable[["OpFacts"], bool]

_numbers = itertools.count()

#: For the option of the pass fuse-into.
lender: Lender[Fusion] = Lender()


@dataclass(frozen=True)
class External:
    """A function of a shared library, called as `void function(Memref *input, ..., Memref *output, ...)`.

    Each tensor is a pointer to MLIR's descriptor of a memref, row-major; see docs/fusion.md. A number comes by value.

    Attributes:
        function: its name in the library.
        library: the path of the shared library, which is loaded when the executable is made or loaded.
    """

    function: str
    library: str | Path


@dataclass(frozen=True)
class Callback:
    """A Python function on NumPy arrays: takes the inputs, returns the result, or a tuple of several.

    Such an executable cannot be saved. Integers come as signed ones of their width, whatever they are in torch.
    """

    function: Callable[..., Any]
    symbol: str = field(default_factory=lambda: f"callback{next(_numbers)}", compare=False)


@dataclass(frozen=True)
class Emitter:
    """A Python function that builds the group's body out of other ops: on tensors, at the insertion point.

    It is called with the group's inputs, the types of its results and the ops that it takes the place of (`OpFacts`),
    and returns the values of the results.
    """

    function: Callable[..., Sequence[Any]]


@dataclass(frozen=True)
class Intrinsic:
    """A call that computes a chain of ops as a whole, such as a matrix product, a bias and an activation.

    Attributes:
        steps: what each op of the chain is, by its word or PyTorch name; a tuple where it may be one of several.
        call: what is called: with the first op's inputs, then the other inputs of each following one. A Python function
            gets the names of the steps as `steps=`, a C function for each step the number of the choice as int64_t.
    """

    steps: tuple[str | tuple[str, ...], ...]
    call: External | Callback

    def choices(self) -> list[tuple[str, ...]]:
        """The names for each step."""
        return [(step,) if isinstance(step, str) else tuple(step) for step in self.steps]


Becomes = External | Callback | Emitter | Intrinsic | None


@dataclass(frozen=True)
class Fusion:
    """Ops that a user wants in groups of their own; `fuse_into` makes it.

    Attributes:
        name: what the groups and their kernels are called.
        wants: whether an op is to be in such a group.
        becomes: what becomes of a group.
    """

    name: str
    wants: Predicate
    becomes: Becomes = None


def fuse_into(predicate: Predicate | Sequence[str] | None, *, name: str, becomes: Becomes = None) -> Fusion:
    """Wants ops in groups of their own, each as large as can be, in every branch and loop body of the model.

    Args:
        predicate: which ops: their names, as PyTorch's functions are called (`conv2d`) or as the words of kernels'
            names (`add`), or a function of an op (`pipeline.fusion_rules.op_facts.OpFacts`) that says so. May be
            None for an intrinsic, whose steps name them.
        name: what the groups and their kernels are called.
        becomes: what a group becomes; by default a kernel like any other.

    Raises:
        OptionError: one of these is not of that form.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z]\w*", name):
        raise OptionError(f"fuse_into: name={name!r}: expected a word of letters, digits and underscores")
    if becomes is not None and not isinstance(becomes, (External, Callback, Emitter, Intrinsic)):
        raise OptionError(f"fuse_into: becomes: expected External, Callback, Emitter or Intrinsic, got {becomes!r}")
    if predicate is None and isinstance(becomes, Intrinsic):
        return Fusion(name, lambda op: True, becomes)
    if callable(predicate):
        return Fusion(name, predicate, becomes)
    if isinstance(predicate, (list, tuple, set, frozenset)) and all(isinstance(op_name, str) for op_name in predicate):
        return Fusion(name, _Names(frozenset(predicate)), becomes)
    raise OptionError(f"fuse_into: predicate: expected names of ops or a function, got {predicate!r}")


def python_functions(fusions: Sequence[Fusion]) -> dict[str, Callable[..., Any]]:
    """The Python functions that groups become, by the symbols that stand for them in code."""
    found: dict[str, Callable[..., Any]] = {}
    for fusion in fusions:
        if isinstance(fusion.becomes, Callback):
            found[fusion.becomes.symbol] = fusion.becomes.function
        elif isinstance(fusion.becomes, Intrinsic) and isinstance(fusion.becomes.call, Callback):
            found[fusion.becomes.call.symbol] = _with_steps(fusion.becomes, fusion.becomes.call)
    return found


def _with_steps(intrinsic: Intrinsic, call: Callback) -> Callable[..., Any]:
    """The function of an intrinsic as the code calls it: with the numbers of the steps' names after the inputs."""
    choices = intrinsic.choices()

    def function(*given: Any) -> Any:
        inputs, numbers = given[: -len(choices)], given[-len(choices) :]
        steps = tuple(names[number] for names, number in zip(choices, numbers, strict=True))
        return call.function(*inputs, steps=steps)

    return function


@dataclass(frozen=True)
class _Names:
    """The predicate of a list of names."""

    names: frozenset[str]

    def __call__(self, op: OpFacts) -> bool:
        return op.is_called(self.names)
