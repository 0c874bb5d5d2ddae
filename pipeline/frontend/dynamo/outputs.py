"""Where the outputs of a functional graph come from: computed by code, given by the caller, or views of either.

Code returns tensors that share no memory. Where the graph's outputs do, as after `y, y.t()`, code computes the tensor
that they are views of, and the views are taken of that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch.fx.node import map_aggregate

from pipeline.frontend.functionalize.schema_aliases import root, viewed

#: Views without gradients, which torch's decompositions give, and the same views with gradients.
_WITH_GRADIENTS = {
    torch.ops.prims.squeeze.default: torch.ops.aten.squeeze.dims,
    torch.ops.prims.transpose.default: torch.ops.aten.permute.default,
    torch.ops.prims.view_of.default: torch.ops.aten.alias.default,
}


@dataclass(frozen=True)
class CallersInput:
    """The caller's own input."""

    index: int

    def __call__(self, inputs: Sequence[Any], results: Sequence[Any]) -> Any:
        """Takes it."""
        return inputs[self.index]


@dataclass(frozen=True)
class Computed:
    """A result of the code."""

    index: int

    def __call__(self, inputs: Sequence[Any], results: Sequence[Any]) -> Any:
        """Takes it."""
        return results[self.index]


@dataclass(frozen=True)
class Constant:
    """A number, a string or None."""

    value: Any

    def __call__(self, inputs: Sequence[Any], results: Sequence[Any]) -> Any:
        """Gives it."""
        return self.value


@dataclass(frozen=True)
class Replayed:
    """An op that the caller's library runs after the code: a view; its arguments may be of all these kinds."""

    target: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, inputs: Sequence[Any], results: Sequence[Any]) -> Any:
        """Runs it."""

        def value(part: Any) -> Any:
            return part(inputs, results) if isinstance(part, Origin) else part

        return self.target(*map_aggregate(self.args, value), **map_aggregate(dict(self.kwargs), value))


Origin = CallersInput | Computed | Constant | Replayed


@dataclass(frozen=True)
class OutputPlan:
    """How a call's outputs are made.

    Attributes:
        count: how many results the code computes.
        origins: of each output.
        strides: by the number of a result, those that views of it are taken with, where it is not row-major.
    """

    count: int
    origins: tuple[Origin, ...]
    strides: Mapping[int, tuple[int, ...]]

    @property
    def is_plain(self) -> bool:
        """Whether the outputs are the code's results as they are."""
        return self.origins == tuple(map(Computed, range(self.count)))

    def outputs(self, inputs: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        """The outputs of a call with these inputs, whose code computed these results."""
        if self.strides:
            results = [
                _laid_out(result, self.strides[number]) if number in self.strides else result
                for number, result in enumerate(results)
            ]
        return [origin(inputs, results) for origin in self.origins]


def plan_outputs(
    outputs: Sequence[Any], inputs: Mapping[fx.Node, int], own: Collection[int] = (), detached: Collection[int] = ()
) -> tuple[OutputPlan, tuple[fx.Node, ...]]:
    """Plans the outputs of a graph: how they are made, and the values of it that the code computes.

    Args:
        outputs: the graph's values.
        inputs: the number of the input in whose memory a value lies: placeholders, and what is written to inputs.
        own: the numbers of the outputs that lie in no input's memory, even if the graph has them do so.
        detached: the numbers of those that autograd does not know as views, although the graph has views.
    """
    return _Planner(outputs, inputs).plan(own, detached)


class _Planner:
    """Collects the results that outputs need."""

    def __init__(self, outputs: Sequence[Any], inputs: Mapping[fx.Node, int]):
        self._outputs = outputs
        self._inputs = inputs
        self._results: dict[fx.Node, int] = {}
        self._strides: dict[int, tuple[int, ...]] = {}
        bases = [root(value) for value in dict.fromkeys(filter(_is_tensor, outputs))]
        self._shared = {base for base in bases if bases.count(base) > 1}

    def plan(self, own: Collection[int], detached: Collection[int]) -> tuple[OutputPlan, tuple[fx.Node, ...]]:
        """The plan of all outputs, and what it wants computed."""
        origins = [self._output(value, number in own) for number, value in enumerate(self._outputs)]
        for number in detached:
            if isinstance(origins[number], Replayed):
                origins[number] = Replayed(torch.ops.aten.detach.default, (origins[number],))
        return OutputPlan(len(self._results), tuple(origins), self._strides), tuple(self._results)

    def _output(self, value: Any, own: bool) -> Origin:
        if not isinstance(value, fx.Node):
            return Constant(value)
        base = self._base(value) if _is_tensor(value) else value
        if base in self._inputs:
            given = self._view(value)
            return Replayed(torch.clone, (given,)) if own and _is_tensor(value) else given
        return self._view(value) if base in self._shared else self._computed(value)

    def _base(self, value: fx.Node) -> fx.Node:
        """The value whose memory it lies in: an input's new value, or else the root of all views."""
        step: fx.Node | None = value
        while step is not None:
            if step in self._inputs:
                return step
            step = viewed(step)
        return root(value)

    def _view(self, value: fx.Node) -> Origin:
        if value in self._inputs:
            return CallersInput(self._inputs[value])
        if viewed(value) is None:
            return self._viewed_base(value)
        operands = [map_aggregate(part, self._operand) for part in (value.args, value.kwargs)]
        return Replayed(_WITH_GRADIENTS.get(value.target, value.target), operands[0], operands[1])

    def _operand(self, value: Any) -> Any:
        return self._view(value) if isinstance(value, fx.Node) else value

    def _viewed_base(self, value: fx.Node) -> Computed:
        """A result that views are taken of: with the strides that the graph's own ops see."""
        computed, meta = self._computed(value), value.meta.get("val")
        if isinstance(meta, torch.Tensor) and not meta.is_contiguous():
            self._strides[computed.index] = tuple(map(int, meta.stride()))
        return computed

    def _computed(self, value: fx.Node) -> Computed:
        return Computed(self._results.setdefault(value, len(self._results)))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, fx.Node) and isinstance(value.meta.get("val"), torch.Tensor)


def _laid_out(result: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """The result in memory with other strides."""
    return torch.empty_strided(result.shape, strides, dtype=result.dtype).copy_(result)
