"""Where in the graph of kernels things are that are known by other names: what is timed, the ends of an edge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipeline.report.recording import Graph

#: The pass whose word on an edge is the last.
_DECIDES = "form-groups"


class KernelPlaces:
    """Looks nodes of the graph of kernels up."""

    def __init__(self, graph: Graph):
        self._calls = {node.id: node for node in graph.nodes if node.kind == "kernel"}
        self._inputs = {node.id: node.inputs for node in graph.nodes}
        entries = {box.id: box.parent for box in graph.boxes}
        self._entry = {node.id: _outermost(node.box, entries) for node in self._calls.values()}

    def of_sites(self, names: Sequence[str]) -> list[str | None]:
        """The calls in @main that are timed, by the names of what is timed there in the order of the program.

        None for copies, and for all calls of a kernel of which there are more or fewer than in the graph.
        """
        calls: dict[str, list[str]] = {}
        for node in self._calls.values():
            if self._entry[node.id] == "@main":  # not in another kernel
                calls.setdefault(str(node.kernel), []).append(node.id)
        counts = {name: list(names).count(name) for name in set(names)}
        left = {name: iter(ids) for name, ids in calls.items() if len(ids) == counts.get(name)}
        return [next(left[name]) if name in left else None for name in names]

    def edges(self, remarks: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """What was said of edges between two calls that are still there: which, why two, and what would change that."""
        missed = [remark for remark in remarks if remark["edge"] and remark["kind"] == "missed"]
        decided = [remark for remark in missed if remark["pass_name"] == _DECIDES] or missed
        found: dict[tuple[Any, ...], dict[str, Any]] = {}
        for remark in decided:
            producer, consumer = remark["edge"]
            for source, reader in self._pairs(producer["nodes"], consumer["nodes"]):
                edge = {
                    "from": source,
                    "to": reader,
                    "producer": _shown(producer),
                    "consumer": _shown(consumer),
                    **{name: remark[name] for name in ("reason", "key", "change")},
                }
                found.setdefault((source, reader, remark["key"], remark["reason"]), edge)
        return list(found.values())

    def _pairs(self, producer: Sequence[str], consumer: Sequence[str]) -> Iterator[tuple[str, str]]:
        """The calls of which the one has the producer, and the other, which reads its results, the consumer."""
        holders = self._holding(producer)
        for reader in self._holding(consumer):
            yield from ((source, reader) for source in holders if source in self._read_by(reader))

    def _holding(self, origins: Sequence[str]) -> list[str]:
        """The calls that hold all these nodes of the captured graph."""
        wanted = set(origins)
        return [id for id, node in self._calls.items() if wanted and wanted <= set(node.origins)]

    def _read_by(self, call: str) -> set[str]:
        """The calls whose results a call reads, be it through copies."""
        found: set[str] = set()
        waiting, seen = [call], {call}
        while waiting:
            for source in self._inputs.get(waiting.pop(), ()):
                if source in self._calls:
                    found.add(source)
                elif source not in seen:
                    waiting.append(source)
                seen.add(source)
        return found


def _shown(subject: Mapping[str, Any]) -> dict[str, Any]:
    return {"label": subject["label"], "source": subject["source"]}


def _outermost(box: str, parents: Mapping[str, str | None]) -> str:
    while parents.get(box):
        box = str(parents[box])
    return box
