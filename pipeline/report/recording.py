"""What is written down while a model is compiled for a report: passes, graphs, the plan of memory. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ModelNode:
    """A node of the captured graph.

    Attributes:
        path: the module of the model that calls it, `encoder.layer.3.attention`; empty for the model itself.
        op: what it calls, `aten.relu.default`.
        source: the line of the model's source, `file.py:12`, where known.
    """

    path: str
    op: str = ""
    source: str | None = None


@dataclass(frozen=True)
class GraphBox:
    """What nodes of a graph lie in: an entry (`@main`), a branch, a loop, one of their regions.

    Attributes:
        kind: `entry`, `if`, `for`, `while`, `region`.
        parent: the box around it; None for an entry.
        inputs: the ids of the nodes whose values decide about it: the condition of a branch, the bounds of a loop.
    """

    id: str
    kind: str
    label: str
    parent: str | None
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class GraphNode:
    """An op, a call of a kernel, an argument or the results.

    Attributes:
        kind: `op`, `kernel`, `argument`, `results`.
        label: what it computes, as in kernels' names; the name of an argument.
        op: MLIR's name of it.
        box: the box that it lies in; for an op of a kernel the id of the call.
        origins: the nodes of the captured graph that it comes from.
        source: the line of the model's source that it comes from, where known.
        types: the types of its results.
        inputs: the ids of the nodes whose values it reads.
        reads: the weights, and results of @prepare, that it reads.
        kernel: of a call, the kernel.
    """

    id: str
    kind: str
    label: str
    op: str
    box: str
    origins: tuple[str, ...] = ()
    source: str | None = None
    types: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    kernel: str | None = None


@dataclass(frozen=True)
class Graph:
    """The program at one stage; nodes are in program order."""

    boxes: tuple[GraphBox, ...] = ()
    nodes: tuple[GraphNode, ...] = ()


@dataclass(frozen=True)
class FunctionChange:
    """What a pass changed of a function.

    Attributes:
        added, removed: how many lines.
        lines: the differing lines with some around them, each after `+`, `-` or a space; `@` begins a new place.
        cut: how many of such lines were left out.
    """

    function: str
    added: int
    removed: int
    lines: tuple[str, ...]
    cut: int = 0


@dataclass
class RecordedPass:
    """A pass that ran.

    Attributes:
        name, options: as in a pipeline.
        stage: what it works towards: `fused`, `kernels`, `code`.
        seconds: how long it took on all the ops that it ran on.
        changes: what it changed, by function.
        remarks: which of the recording's remarks it made: from the first to before the last.
    """

    name: str
    options: str
    stage: str
    seconds: float = 0.0
    changes: list[FunctionChange] = field(default_factory=list)
    remarks: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class PlannedBuffer:
    """A temporary in a workspace.

    Attributes:
        offset, size: bytes.
        first, last: the steps of the function between which it is needed.
        type: of its elements and sizes, as MLIR spells it.
        source: the line of the model's source that it is made for.
        label: the node of the captured graph that it is made for.
        users: the kernels that read or write it.
    """

    offset: int
    size: int
    first: int
    last: int
    type: str
    source: str | None
    label: str
    users: tuple[str, ...]


@dataclass(frozen=True)
class MemoryPlan:
    """The workspace of a function over its steps, which are its ops in program order.

    Attributes:
        total: bytes.
        calls: the steps that call kernels, and which.
    """

    function: str
    total: int
    steps: int
    buffers: tuple[PlannedBuffer, ...]
    calls: tuple[tuple[int, str], ...]


@dataclass
class Recording:
    """A compilation that was watched.

    Attributes:
        nodes: of the captured graph, by name.
        classes: of the model's modules, by their paths.
        passes: in order.
        remarks: all that were made, as dictionaries.
        imported, compiled: the program as imported, and as calls of kernels.
        texts: MLIR of each function by stage: the stage, then the function's name.
        memory: the plans of the functions that have a workspace.
        options: what was chosen about the compilation, where it is not the default.
    """

    nodes: dict[str, ModelNode] = field(default_factory=dict)
    classes: dict[str, str] = field(default_factory=dict)
    passes: list[RecordedPass] = field(default_factory=list)
    remarks: list[dict[str, object]] = field(default_factory=list)
    imported: Graph = field(default_factory=Graph)
    compiled: Graph = field(default_factory=Graph)
    texts: dict[str, dict[str, str]] = field(default_factory=dict)
    memory: list[MemoryPlan] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
