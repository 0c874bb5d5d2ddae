"""The steps of a call: compiled parts and single nodes, each on the values that are there so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

from pipeline.errors import PipelineError
from pipeline.frontend.decompositions.random_op import draws_numbers
from pipeline.frontend.fx_passes.simplify import attribute
from pipeline.frontend.fx_passes.source_lines import source_line
from pipeline.frontend.importer.fx_importer import target_name
from pipeline.runtime.executable import Executable

#: The values of a call, by the nodes of the graph.
Values = dict[fx.Node, Any]

aten = torch.ops.aten

#: A graph has views that fit the strides which tensors had in capture; those of a call may have others.
_FOR_ANY_STRIDES = {aten.view.default: aten.reshape.default, aten._unsafe_view.default: aten.reshape.default}


def _sees_strides(target: Any) -> bool:
    """Whether a kernel may look at where elements lie: those of other libraries may, and numbers are drawn in order."""
    return isinstance(target, OpOverload) and (target.namespace not in ("aten", "prims") or draws_numbers(target))


def _in_captured_strides(values: Values) -> Callable[[fx.Node], Any]:
    """Tensors that lie in memory as they did in capture, where that is known; compiled parts give row-major ones."""

    def value_of(node: fx.Node) -> Any:
        value, captured = values[node], node.meta.get("val")
        if not isinstance(value, torch.Tensor) or not isinstance(captured, torch.Tensor):
            return value
        strides = captured.stride()
        if all(isinstance(number, int) for number in (*captured.shape, *strides)):
            if value.stride() == strides:
                return value
            return torch.empty_strided(value.shape, strides, dtype=value.dtype).copy_(value)
        return _in_order(value, strides)

    return value_of


def _in_order(value: torch.Tensor, strides: tuple[Any, ...]) -> torch.Tensor:
    """A tensor whose dims follow each other in memory as those with these symbolic strides did in capture."""
    hints = [stride.node.hint if isinstance(stride, torch.SymInt) else stride for stride in strides]
    if None in hints:
        return value
    order = sorted(range(value.dim()), key=lambda dim: -hints[dim])
    return value.permute(order).contiguous().permute([order.index(dim) for dim in range(value.dim())])


@dataclass(frozen=True)
class FallbackStep(ABC):
    """Something that runs.

    Attributes:
        last: the nodes whose values nothing reads afterwards.
    """

    last: tuple[fx.Node, ...] = field(kw_only=True, default=())

    @abstractmethod
    def run(self, values: Values) -> None:
        """Adds what it computes to the values."""

    @property
    @abstractmethod
    def reads(self) -> tuple[fx.Node, ...]:
        """The nodes whose values it takes."""


@dataclass(frozen=True)
class PartStep(FallbackStep):
    """A compiled part."""

    executable: Executable
    inputs: tuple[fx.Node, ...]
    outputs: tuple[fx.Node, ...]

    def run(self, values: Values) -> None:
        """Calls the part."""
        results = self.executable(*[values[node] for node in self.inputs])
        values.update(zip(self.outputs, results, strict=True))

    @property
    def reads(self) -> tuple[fx.Node, ...]:
        """Its inputs."""
        return self.inputs


@dataclass(frozen=True)
class NodeStep(FallbackStep):
    """A node of the graph that torch runs."""

    node: fx.Node

    def run(self, values: Values) -> None:
        """Calls what the node calls."""
        node = self.node
        if node.op == "get_attr":
            values[node] = attribute(node)
            return
        target = _FOR_ANY_STRIDES.get(node.target, node.target)
        value_of = _in_captured_strides(values) if _sees_strides(target) else values.__getitem__
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), value_of)
        try:
            values[node] = target(*args, **kwargs)
        except Exception as error:  # an op raises whatever it does
            raise PipelineError(f"{self.place}: {type(error).__name__}: {error}") from error

    @property
    def reads(self) -> tuple[fx.Node, ...]:
        """Its operands."""
        return tuple(self.node.all_input_nodes)

    @property
    def place(self) -> str:
        """`aten.foo.default at file.py:12`."""
        line = source_line(self.node)
        return target_name(self.node) + (f" at {line[0]}:{line[1]}" if line else "")
