"""The modules of a model as boxes around the nodes of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pipeline.report.recording import Graph, GraphBox, GraphNode, ModelNode


def with_modules(graph: Graph, known: Mapping[str, ModelNode]) -> Graph:
    """The graph with a box for each module that has more than one node, inside of the entries, branches and loops.

    A node that comes from several modules lies in the one that has them all.
    """
    return _Sorter(graph, known).sorted()


def module_of(node: GraphNode, known: Mapping[str, ModelNode]) -> str:
    """The path of the module that has all that a node comes from."""
    return common_path(known[name].path for name in node.origins if name in known)


def common_path(paths: Iterable[str]) -> str:
    """The path of the innermost module around all: `encoder.0` of `encoder.0.norm` and `encoder.0.linear`."""
    parts = [path.split(".") if path else [] for path in paths]
    if not parts:
        return ""
    shared = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    return ".".join(shared)


class _Sorter:
    def __init__(self, graph: Graph, known: Mapping[str, ModelNode]):
        self._graph, self._known = graph, known
        self._boxes = {box.id: box for box in graph.boxes}
        self._paths = self._paths_of_boxes()
        self._modules: dict[str, GraphBox] = {}

    def sorted(self) -> Graph:
        """See `with_modules`."""
        nodes = [self._placed(node) for node in self._graph.nodes]
        boxes = [self._moved(box) for box in self._graph.boxes]
        return _without_needless(Graph((*boxes, *self._modules.values()), tuple(nodes)))

    def _paths_of_boxes(self) -> dict[str, str]:
        inside: dict[str, list[str]] = {box: [] for box in self._boxes}
        for node in self._graph.nodes:
            box: str | None = node.box
            while node.origins and box in self._boxes:
                inside[box].append(module_of(node, self._known))
                box = self._boxes[box].parent
        return {id: "" if self._boxes[id].kind == "entry" else common_path(paths) for id, paths in inside.items()}

    def _placed(self, node: GraphNode) -> GraphNode:
        if node.box not in self._boxes or not node.origins:
            return node
        return replace(node, box=self._module(node.box, module_of(node, self._known)))

    def _moved(self, box: GraphBox) -> GraphBox:
        if box.parent is None or box.kind == "region":
            return box
        return replace(box, parent=self._module(box.parent, self._paths[box.id]))

    def _module(self, box: str, path: str) -> str:
        """The box of a module inside of another box; made where it is new."""
        around = self._paths[box]
        inner = path.removeprefix(around).strip(".") if path != around else ""
        for part in filter(None, inner.split(".")):
            around = f"{around}.{part}" if around else part
            id = f"{box.partition('|')[0]}|{around}"
            self._modules.setdefault(id, GraphBox(id, "module", part, box))
            box = id
        return box


def _without_needless(graph: Graph) -> Graph:
    """Takes away modules with one node, and joins those that have nothing but one other module."""
    boxes = {box.id: box for box in graph.boxes}
    children: dict[str, list[str]] = {}
    for node in graph.nodes:
        children.setdefault(node.box, []).append(node.id)
    for box in graph.boxes:
        if box.parent is not None:
            children.setdefault(box.parent, []).append(box.id)
    gone: dict[str, str] = {}
    for box in sorted(graph.boxes, key=lambda box: -box.id.count(".")):
        inside = children.get(box.id, [])
        if box.kind != "module" or len(inside) > 1:
            continue
        gone[box.id] = str(box.parent)
        if inside and boxes.get(inside[0], box).kind == "module" and inside[0] in boxes:
            inner = boxes[inside[0]]
            boxes[inner.id] = replace(inner, label=f"{box.label}.{inner.label}")

    def kept(box: str) -> str:
        while box in gone:
            box = gone[box]
        return box

    left = [replace(box, parent=box.parent and kept(box.parent)) for box in boxes.values() if box.id not in gone]
    return Graph(tuple(left), tuple(replace(node, box=kept(node.box)) for node in graph.nodes))
