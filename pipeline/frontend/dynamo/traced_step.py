"""What aot_autograd makes of a graph with gradients, as bytes: the parts that are code, and how torch calls them.

These bytes are a pickle of torch's classes, as those of AOTAutograd's own cache are. Whoever may write to the cache may
hand code to its readers anyway.
"""

from __future__ import annotations

import io
import pickle
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._inductor.output_code import OutputCode
from torch._ops import OpOverload

from pipeline.frontend.dynamo.called_part import CalledPart


@dataclass(frozen=True)
class BoundPart:
    """A part of a graph.

    Attributes:
        part: what it computes.
        weights: the numbers of the inputs that are weights which code is bound to.
    """

    part: CalledPart
    weights: tuple[int, ...]

    def kept(self) -> BoundPart | None:
        """The same with its graph as bytes; None where it cannot be."""
        part = self.part.kept()
        return None if part is None else BoundPart(part, self.weights)


@dataclass(frozen=True)
class TracedStep:
    """A graph with gradients, taken apart.

    Attributes:
        runtime: what aot_autograd does around the code: its own cache's entry, pickled.
        takes_inputs: see `Capture`.
    """

    runtime: bytes
    takes_inputs: bool
    forward: BoundPart
    backward: BoundPart

    def to_bytes(self) -> bytes:
        """The step as bytes."""
        stream = io.BytesIO()
        _Pickler(stream).dump(self)
        return zlib.compress(stream.getvalue(), 1)

    @staticmethod
    def from_bytes(data: bytes) -> TracedStep:
        """The inverse of `to_bytes`."""
        step = pickle.loads(zlib.decompress(data))
        assert isinstance(step, TracedStep)
        return step


class _Pickler(pickle.Pickler):
    """Pickles torch's operators by name."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, OpOverload):
            return _operator, (value.namespace, value._opname, value._overloadname)
        return NotImplemented


def _operator(namespace: str, name: str, overload: str) -> OpOverload:
    packet = getattr(getattr(torch.ops, namespace), name)
    found = getattr(packet, overload)
    assert isinstance(found, OpOverload)
    return found


class Boxed(OutputCode):
    """A compiled graph as aot_autograd calls it, with a list that it empties.

    Attributes:
        run: what runs it; None in the cache's entry.
    """

    def __init__(self, run: Callable[[list[Any]], Any] | None):
        super().__init__()
        self._boxed_call = True  # of the instance, from which torch's wrappers take it
        self.run = run

    def __call__(self, inputs: Any) -> Any:
        """The outputs."""
        assert self.run is not None
        return self.run(inputs)

    def prepare_for_serialization(self) -> None:
        """See the class's docstring."""
        self.run = None

    def post_compile(self, example_inputs: Any, constants: Any, graph_kwargs: Any) -> None:
        """Leaves it as it is."""
