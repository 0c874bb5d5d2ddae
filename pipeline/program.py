"""A Program: an MLIR module with `@main`, and the Signature that says what its arguments and results are.

`@main` marks each of its arguments with where it comes from: `pipeline.argument = i`, `pipeline.weight = "name"` (and
`pipeline.mutable` on weights that the model writes to).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline.runtime.interface.signature import Signature, TensorType

if TYPE_CHECKING:
    from pipeline.frontend.importer.graph_reader import CapturedGraph
    from pipeline.mlir import ir
    from pipeline.runtime.weights.preparation import Preparation

#: Sees a stage: its name, and the module or the text.
Dump = Callable[[str, "ir.Module | str"], None]


@dataclass(frozen=True)
class Program:
    """See the module's docstring.

    Attributes:
        module: linalg on tensors, with `@main`.
        signature: what it takes and returns.
        weights: the live tensors of the model, by name.
        weights_library: `torch` or `numpy`: what results are made with where no argument is a tensor.
    """

    module: ir.Module
    signature: Signature
    weights: Mapping[str, Any] = field(default_factory=dict)
    weights_library: str = "torch"


class ProgramSource(ABC):
    """What a Program can be made of, a captured model or MLIR text, and a `WeightSource` of its weights.

    Attributes:
        name: what the model is called, for people.
        preparation: see `WeightSource`.
    """

    name: str = "a model"
    preparation: Preparation | None = None

    @abstractmethod
    def program(self, dump: Dump) -> Program:
        """Imports it; `dump` sees the stages on the way."""

    @abstractmethod
    def fingerprint(self) -> str | None:
        """Text that is equal for sources that compile to equal code; None where there is no such text."""

    def captured(self, type_of: Callable[[Any, str], TensorType]) -> CapturedGraph | None:
        """The functional graph that it is, for what cannot be lowered to be cut out of it; None if it is no such graph.

        `type_of` says what a tensor that the model takes or returns is to the program, see `GraphReader`.
        """
        return None

    def example(self) -> tuple[tuple[Any, ...], Mapping[str, Any]] | None:
        """The (args, kwargs) that it was captured with; None where it was captured without."""
        return None

    def tensors(self) -> Mapping[str, Any]:
        """The live tensors of the model by name, all of the Program's weights among them unless capture made some."""
        return {}

    def holders(self) -> tuple[dict[str, Any], ...]:
        """The dictionaries of the model that hold the tensors."""
        return ()
