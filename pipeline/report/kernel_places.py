"""Where in the graph of kernels things are that are known by other names: what is timed, the ends of an edge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline.report.recording import Graph

#: The pass whose word on an edge is the last.
_DECIDES = "form-groups"


class KernelPlaces:
    """Looks nodes of the graph of kernels up."""

    def __init__(self, graph: Graph):
        kernels = {node.id for node in graph.nodes if node.kind == "kernel"}
        self._calls = [node for node in graph.nodes if node.kind == "kernel" and node.box not in kernels]
        entries = {box.id: box.parent for box in graph.boxes}
        self._entry = {node.id: _outermost(node.box, entries) for node in self._calls}

    def of_sites(self, names: Sequence[str]) -> list[str | None]:
        """The calls in @main that are timed, by the names of what is timed there in the order of the program.

        None for copies, and for all calls of a kernel of which there are more or fewer than in the graph.
        """
        calls: dict[str, list[str]] = {}
        for node in self._calls:
            if self._entry[node.id] == "@main":
                calls.setdefault(str(node.kernel), []).append(node.id)
        counts = {name: list(names).count(name) for name in set(names)}
        left = {name: iter(ids) for name, ids in calls.items() if len(ids) == counts.get(name)}
        return [next(left[name]) if name in left else None for name in names]

    def edges(self, remarks: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """What was said of edges that are still there: from which calls to which, why, and what would change it."""
        missed = [remark for remark in remarks if remark["edge"] and remark["kind"] == "missed"]
        decided = [remark for remark in missed if remark["pass_name"] == _DECIDES] or missed
        found = []
        for remark in decided:
            producer, consumer = remark["edge"]
            found.append(
                {
                    "producer": _shown(producer),
                    "consumer": _shown(consumer),
                    "from": self._holding(producer["nodes"]),
                    "to": self._holding(consumer["nodes"]),
                    "reason": remark["reason"],
                    "key": remark["key"],
                    "change": remark["change"],
                }
            )
        return found

    def _holding(self, origins: Sequence[str]) -> list[str]:
        """The calls that hold all these nodes of the captured graph."""
        wanted = set(origins)
        return [node.id for node in self._calls if wanted and wanted <= set(node.origins)]


def _shown(subject: Mapping[str, Any]) -> dict[str, Any]:
    return {"label": subject["label"], "source": subject["source"]}


def _outermost(box: str, parents: Mapping[str, str | None]) -> str:
    while parents.get(box):
        box = str(parents[box])
    return box
