"""Which module of the model each node of an imported graph belongs to, for those who ask while it is imported."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from dataclasses import dataclass

from torch import fx

from pipeline.frontend.fx_passes.source_lines import modules_of, source_line

_listener: contextvars.ContextVar[list[NodePlace] | None] = contextvars.ContextVar("pipeline_nodes", default=None)


@dataclass(frozen=True)
class NodePlace:
    """A node of the imported graph.

    Attributes:
        modules: the paths and classes of the modules that it is in, outermost first; the path of the model is empty.
        op: what it calls, `aten.relu.default`.
        source: the line of the model's source, `file.py:12`, where known.
    """

    name: str
    modules: tuple[tuple[str, str], ...]
    op: str
    source: str | None

    @property
    def path(self) -> str:
        """The innermost module, `encoder.layer.3.attention`."""
        return self.modules[-1][0] if self.modules else ""


@contextlib.contextmanager
def told() -> Iterator[list[NodePlace]]:
    """Collects the places of all nodes that are imported inside of the `with` block, in this thread."""
    places: list[NodePlace] = []
    token = _listener.set(places)
    try:
        yield places
    finally:
        _listener.reset(token)


def tell(node: fx.Node, op: str) -> None:
    """Says that a node is imported, which calls `op`; nothing happens where nobody asks."""
    places = _listener.get()
    if places is None or node.op in ("placeholder", "output"):
        return
    line = source_line(node)
    places.append(NodePlace(node.name, modules_of(node), op, f"{line[0]}:{line[1]}" if line else None))
