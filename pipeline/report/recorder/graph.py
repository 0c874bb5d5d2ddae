"""A module as a graph: its ops or calls of kernels, what they read of each other, branches and loops around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pipeline.analysis.concat import INSERT
from pipeline.analysis.op_naming import group_label
from pipeline.dialects.fusion import GROUP
from pipeline.ir.attributes import ARGUMENT, KERNEL, PREPARED, WEIGHT
from pipeline.ir.locations import node_names
from pipeline.mlir import called_function, callee, defining_op, ir, symbol_name, terminator, walk
from pipeline.remarks import source_line
from pipeline.report.recording import Graph, GraphBox, GraphNode

_CONTROL = {"scf.if": "if", "scf.for": "for", "scf.while": "while", "scf.index_switch": "if"}

#: How many of their operands decide which region runs, or how often.
_DECIDING = {"scf.if": 1, "scf.for": 3, "scf.index_switch": 1}

#: The names of the regions of branches and loops.
_REGIONS = {"scf.if": ("then", "else"), "scf.while": ("while", "do")}

#: Ops of tensors that make elements, or put them elsewhere.
_MOVING = (INSERT, "tensor.pad", "tensor.concat", "tensor.generate", "tensor.scatter", "tensor.gather")

_ENTRIES = ("main", "prepare")

#: What says nothing about where an op comes from.
_SILENT = ("arith.constant", "tensor.empty", "linalg.fill", "linalg.yield", "fusion.yield", "func.return")


def graph_of(module: ir.Module, groups: Groups | None = None) -> Graph:
    """The graph of @main and @prepare; with `groups`, calls of kernels are known to come from these."""
    boxes: list[GraphBox] = []
    nodes: list[GraphNode] = []
    for function in walk(module, "func.func"):
        if symbol_name(function) in _ENTRIES:
            _EntryReader(function, boxes, nodes, groups).read()
    return Graph(tuple(_with_something_in_them(boxes, nodes)), tuple(nodes))


def _with_something_in_them(boxes: list[GraphBox], nodes: list[GraphNode]) -> list[GraphBox]:
    """Without the branches that only note that a check has failed, and the like."""
    parents, used = {box.id: box.parent for box in boxes}, set()
    for node in nodes:
        box: str | None = node.box
        while box in parents and box not in used:
            used.add(box)
            box = parents[box]
    return [box for box in boxes if box.id in used]


class Groups:
    """Where the ops of each group come from, for the calls that groups become: equal kernels are one function."""

    def __init__(self, module: ir.Module):
        self._waiting: dict[str, list[tuple[list[str], list[list[str]]]]] = {}
        for group in walk(module, GROUP):
            found = [_origins(op) for op in _shown_in(group)]
            self._waiting.setdefault(str(group.location), []).append((_origins(group), found))

    def take(self, call: ir.Operation) -> tuple[list[str], list[list[str]]]:
        """The origins of the group that became this call, and those of its ops; none where no group is known."""
        waiting = self._waiting.get(str(call.location))
        return waiting.pop(0) if waiting else (_origins(call), [])


class _EntryReader:
    """Reads one function; ids of its nodes and boxes begin with its name."""

    def __init__(
        self,
        function: ir.Operation,
        boxes: list[GraphBox],
        nodes: list[GraphNode],
        groups: Groups | None = None,
        within: str = "",
    ):
        self._function = function
        self._boxes, self._nodes = boxes, nodes
        self._groups = groups
        self._within = within
        self._count = 0
        self._ids: dict[ir.Operation, str] = {}  # of what is shown
        self._box_ids: dict[ir.Operation, str] = {}
        self._given: dict[ir.Value, tuple[str, ...]] = {}  # what arguments stand for, as ids or as names of weights

    def read(self) -> None:
        """Adds the entry with all that is in it."""
        name = symbol_name(self._function)
        box = f"@{name}"
        self._boxes.append(GraphBox(box, "entry", box, None))
        self._read_arguments(box)
        self._number()
        block = self._function.regions[0].blocks[0]
        self._read_block(block, box)
        results = [node for value in terminator(block).operands for node in self._from(value)]
        inputs = tuple(dict.fromkeys(node for node in results if not node.startswith("$")))
        types = tuple(str(value.type) for value in terminator(block).operands)
        label = "results" if name == "main" else "prepared"
        self._nodes.append(GraphNode(self._new_id(), "results", label, "return", box, types=types, inputs=inputs))

    def _read_arguments(self, box: str) -> None:
        """Arguments of the call are nodes; weights and what is prepared of them are only named."""
        marks = list(self._function.attributes["arg_attrs"]) if "arg_attrs" in self._function.attributes else []
        for number, value in enumerate(self._function.regions[0].blocks[0].arguments):
            mark = marks[number] if number < len(marks) else {}
            if WEIGHT in mark:
                self._given[value] = (f"${ir.StringAttr(mark[WEIGHT]).value}",)
            elif PREPARED in mark:
                self._given[value] = (f"$prepared {ir.IntegerAttr(mark[PREPARED]).value}",)
            elif ARGUMENT in mark or not len(mark):
                place = ir.IntegerAttr(mark[ARGUMENT]).value if ARGUMENT in mark else number
                node = GraphNode(self._new_id(), "argument", f"argument {place}", "", box, types=(str(value.type),))
                self._nodes.append(node)
                self._given[value] = (node.id,)
            else:  # a place for the numbers of failed checks, a seed
                self._given[value] = ()

    def _number(self) -> None:
        """Gives ids to everything: in a loop, an op reads what a later one has computed in the round before."""

        def visit(op: ir.Operation) -> ir.WalkResult:
            op = op.operation
            if op == self._function:
                return ir.WalkResult.ADVANCE
            if _is_shown(op):
                self._ids[op] = self._new_id()
                return ir.WalkResult.SKIP
            if op.name in _CONTROL:
                self._box_ids[op] = self._new_id()
            return ir.WalkResult.ADVANCE

        self._function.walk(visit, ir.WalkOrder.PRE_ORDER)

    def _read_block(self, block: ir.Block, box: str) -> None:
        for op in block.operations:
            op = op.operation
            if op in self._ids:
                self._add(op, box)
            elif op.name in _CONTROL:
                self._read_control(op, box)

    def _read_control(self, op: ir.Operation, box: str) -> None:
        own = self._box_ids[op]
        deciding = list(op.operands)[: _DECIDING.get(op.name, 0)]
        inputs = tuple(dict.fromkeys(node for value in deciding for node in self._from(value) if node[0] != "$"))
        self._boxes.append(GraphBox(own, _CONTROL[op.name], _CONTROL[op.name], box, inputs))
        names = _REGIONS.get(op.name, ())
        for number, region in enumerate(op.regions):
            inner = own
            if not len(region.blocks):
                continue
            if len(op.regions) > 1:
                inner = f"{own}.{number}"
                label = names[number] if number < len(names) else f"case {number}"
                self._boxes.append(GraphBox(inner, "region", label, own))
            for block in region.blocks:
                self._read_block(block, inner)

    def _add(self, op: ir.Operation, box: str, origins: list[str] | None = None) -> None:
        own = self._ids[op]
        read = tuple(dict.fromkeys(node for value in _read_by(op) for node in self._from(value)))
        is_call = op.name == "func.call"
        inner: list[list[str]] = []
        if is_call and self._groups is not None:
            origins, inner = self._groups.take(op)
        node = GraphNode(
            own,
            "kernel" if is_call else "op",
            callee(op) if is_call else group_label([op]),
            op.name,
            box,
            tuple(_origins(op) if origins is None else origins),
            source_line(op.location),
            tuple(str(result.type) for result in op.results),
            tuple(node for node in read if not node.startswith("$")),
            tuple(node.removeprefix("$") for node in read if node.startswith("$")),
            callee(op) if is_call else None,
        )
        self._nodes.append(node)
        if is_call and len(called_function(op).regions[0].blocks):
            self._read_kernel(op, own, inner)

    def _read_kernel(self, call: ir.Operation, box: str, origins: list[list[str]]) -> None:
        """Adds the ops of the kernel that is called; where they come from is another thing in each place.

        A loop that is a kernel calls others, and comes from what those come from.
        """
        function, place = called_function(call), len(self._nodes) - 1
        inner = _EntryReader(function, self._boxes, self._nodes, self._groups, f"{box}/")
        inner._given = dict.fromkeys(function.regions[0].blocks[0].arguments, ())
        ops = _shown_in(function)
        inner._ids = {op: inner._new_id() for op in ops}
        for number, op in enumerate(ops):
            inner._add(op, box, origins[number] if len(origins) == len(ops) else None)
        inside = [name for node in self._nodes[place + 1 :] for name in node.origins]
        node = self._nodes[place]
        self._nodes[place] = replace(node, origins=tuple(dict.fromkeys((*node.origins, *inside))))

    def _from(self, value: ir.Value) -> tuple[str, ...]:
        """The nodes that a value comes from, through what shows it otherwise; names of weights after a `$`."""
        found: dict[str, None] = {}
        seen, waiting = set(), [value]
        while waiting:
            value = waiting.pop()
            if value in seen:  # loops hand on to themselves
                continue
            seen.add(value)
            op = defining_op(value)
            if op is not None and op in self._ids:
                found[self._ids[op]] = None
            elif value in self._given:
                found |= dict.fromkeys(self._given[value])
            else:
                waiting += reversed(list(self._behind(value)))
        return tuple(found)

    def _behind(self, value: ir.Value) -> Iterable[ir.Value]:
        """The values that a value without a node is one of, or shows."""
        op = defining_op(value)
        if op is None:
            return _handed_in(ir.BlockArgument(value))
        if op.name not in _CONTROL:
            return op.operands
        number = next(number for number, result in enumerate(op.results) if result == value)
        return _handed_out(op, number)

    def _new_id(self) -> str:
        self._count += 1
        return f"{self._within or symbol_name(self._function)[0]}{self._count}"


def _is_shown(op: ir.Operation) -> bool:
    if op.name == "func.call" or op.name in _MOVING or KERNEL in op.attributes:
        return True
    return op.name.startswith(("linalg.", "tm_tensor.")) and op.name not in ("linalg.fill", "linalg.yield")


def _shown_in(root: ir.Operation) -> list[ir.Operation]:
    """What of a group or a kernel is shown; of one that only fills, that."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.operation != root and _is_shown(op.operation):
            found.append(op.operation)
            return ir.WalkResult.SKIP
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found or walk(root, "linalg.fill")


def _read_by(op: ir.Operation) -> list[ir.Value]:
    """What an op reads, without what only says where results go."""
    operands = list(op.operands)
    if op.name.startswith("linalg."):
        return operands[: len(operands) - len(op.results)] or operands
    return operands


def _origins(op: ir.Operation) -> list[str]:
    """The nodes of the captured graph that an op with all that is inside of it comes from."""
    names: list[str] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner.operation.name not in _SILENT:
            names.extend(node_names(inner.operation.location))
        return ir.WalkResult.ADVANCE

    op.walk(visit, ir.WalkOrder.POST_ORDER)
    return list(dict.fromkeys(names or node_names(op.location)))


def _handed_in(argument: ir.BlockArgument) -> Iterator[ir.Value]:
    """What an argument of a region may be: in the first round, and in later ones."""
    owner, number = argument.owner.owner.operation, argument.arg_number
    if owner.name == "scf.for" and number:
        yield owner.operands[2 + number]
        yield terminator(owner.regions[0].blocks[0]).operands[number - 1]
    elif owner.name == "scf.while":
        before, after = (region.blocks[0] for region in owner.regions)
        if argument.owner == before:
            yield owner.operands[number]
            yield terminator(after).operands[number]
        else:
            yield terminator(before).operands[1 + number]


def _handed_out(op: ir.Operation, number: int) -> Iterator[ir.Value]:
    """What a result of a branch or a loop may be."""
    regions = op.regions[:1] if op.name == "scf.while" else op.regions
    for region in regions:
        for block in region.blocks:
            yield terminator(block).operands[number + (op.name == "scf.while")]
