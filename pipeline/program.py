"""A Program: an MLIR module with `@main`, and the Signature that says what its arguments and results are.

`@main` marks each of its arguments with where it comes from: `pipeline.argument = i`, `pipeline.weight = "name"` (and
`pipeline.mutable` on weights that the model writes to).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import PipelineError
from pipeline.mlir import ir
from pipeline.runtime.signature import Signature, TensorType

Dump = Callable[[str, ir.Module | str], None]


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


class Source(ABC):
    """What a Program can be made of: a captured model, or MLIR text."""

    @abstractmethod
    def program(self, dump: Dump) -> Program:
        """Imports it; `dump` sees the stages on the way."""

    @abstractmethod
    def fingerprint(self) -> str | None:
        """Text that is equal for sources that compile to equal code; None where there is no such text."""

    def tensors(self) -> Mapping[str, Any]:
        """The live tensors of the model by name, all of the Program's weights among them unless capture made some."""
        return {}


#: MLIR's element types. Integers have no sign in MLIR; a signature that knows better (uint8) says so itself.
_DTYPES = {
    "i1": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
}


def tensor_type(kind: ir.Type, symbol: str = "d") -> TensorType:
    """An MLIR tensor type as the runtime knows it; unknown sizes are called `symbol` and their dimension."""
    element = str(kind.element_type) if isinstance(kind, ir.RankedTensorType) else ""
    if element not in _DTYPES:
        raise PipelineError(f"{kind} is not supported; expected a ranked tensor of {', '.join(_DTYPES)}")
    kind = ir.RankedTensorType(kind)
    sizes = [f"{symbol}{dim}" if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim) for dim in range(kind.rank)]
    return TensorType(_DTYPES[element], tuple(sizes))
