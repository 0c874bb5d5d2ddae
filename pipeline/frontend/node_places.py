"""Where the nodes of an imported graph come from, for those who ask while it is imported. Needs no torch."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from dataclasses import dataclass

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
    """Collects the places of all nodes that are imported inside of the `with` block, in this thread.

    A collection around this one gets them too, when the block ends.
    """
    places: list[NodePlace] = []
    outer = _listener.get()
    token = _listener.set(places)
    try:
        yield places
    finally:
        _listener.reset(token)
        if outer is not None:
            outer += places


def is_asked() -> bool:
    """Whether somebody collects places."""
    return _listener.get() is not None


def tell(place: NodePlace) -> None:
    """Says where a node comes from."""
    places = _listener.get()
    if places is not None:
        places.append(place)
