"""Where an executable's weights come from: what gives the live tensors by name, whenever it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pipeline.errors import PipelineError
from pipeline.runtime.weights.preparation import Preparation

#: Whether calls notice that weights have changed, or leave that to `Executable.refresh`.
RefreshMode = Literal["auto", "manual"]


class WeightSource(Protocol):
    """Gives the tensors that a model has at the moment.

    Attributes:
        preparation: what executables of these weights prepare of them once; None for each its own.
    """

    @property
    def preparation(self) -> Preparation | None:
        """See the class."""
        ...

    def tensors(self) -> Mapping[str, Any]:
        """The tensors by name."""
        ...

    def holders(self) -> tuple[dict[str, Any], ...]:
        """The dictionaries that hold the tensors; one that is written to may hold others."""
        ...


@dataclass(frozen=True)
class FixedWeights:
    """Tensors that stay those that they are; what they contain may change."""

    fixed: Mapping[str, Any] = field(default_factory=dict)
    preparation: Preparation | None = None

    def tensors(self) -> Mapping[str, Any]:
        """See `WeightSource`."""
        return self.fixed

    def holders(self) -> tuple[dict[str, Any], ...]:
        """None: the names are bound once and for all."""
        return ()


@dataclass(frozen=True)
class Rebound:
    """A source some of whose tensors others took the place of."""

    behind: WeightSource
    taken: Mapping[str, Any]

    @staticmethod
    def over(source: WeightSource, weights: Mapping[str, Any], known: set[str]) -> Rebound:
        """`source` with `weights` in place of its own; raises `PipelineError` for a name that is not `known`."""
        unknown = sorted(weights.keys() - known)
        if unknown:
            raise PipelineError(f"weight {unknown[0]}: the model has none of that name; it has {_some(sorted(known))}")
        if isinstance(source, Rebound):
            return Rebound(source.behind, {**source.taken, **weights})
        return Rebound(source, dict(weights))

    @staticmethod
    def with_made(source: WeightSource, weights: Mapping[str, Any]) -> Rebound:
        """`source`, and those of `weights` that capture made and that it has not."""
        live = source.tensors()
        return Rebound(source, {name: tensor for name, tensor in weights.items() if live.get(name) is not tensor})

    @property
    def preparation(self) -> Preparation | None:
        """See `WeightSource`."""
        return self.behind.preparation

    def tensors(self) -> Mapping[str, Any]:
        """See `WeightSource`."""
        return {**self.behind.tensors(), **self.taken}

    def holders(self) -> tuple[dict[str, Any], ...]:
        """See `WeightSource`."""
        return self.behind.holders()


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "") if names else "no weights"
