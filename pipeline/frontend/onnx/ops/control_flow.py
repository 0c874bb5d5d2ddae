"""If, Loop and Scan: run here where what decides is known, else as torch.cond and torch.while_loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.utils._pytree as torch_pytree
from onnx import numpy_helper
from torch._higher_order_ops.while_loop import while_loop_op

from pipeline.errors import CaptureError
from pipeline.frontend.onnx.call import NodeCall, attributes_of
from pipeline.frontend.onnx.known import Known, as_tensor_value
from pipeline.frontend.onnx.ops.table import op

#: Loops of a known number of rounds up to this are run round by round.
UNROLLED = 32


@op("If", as_given=(0,))
def branch(call: NodeCall, condition: Any) -> tuple[Any, ...]:
    """One of two graphs."""
    graphs = (call.get("then_branch"), call.get("else_branch"))
    if isinstance(condition, Known):
        return tuple(call.run.region(graphs[0 if condition.numbers()[0] else 1], call.env, []))
    region = _Surroundings(call, graphs)
    functions = [region.function(graph, lambda operands: [], 0) for graph in graphs]
    layouts: list[Any] = []
    functions = [_flat(function, layouts) for function in functions]
    flat = torch.ops.higher_order.cond(condition.reshape(()), *functions, region.operands)
    return tuple(torch_pytree.tree_unflatten(flat, layouts[0]))


def _flat(function: Callable[..., Any], layouts: list[Any]) -> Callable[..., Any]:
    """A function whose results are tensors alone; `layouts` gets how they lie in its lists."""

    def flat(*operands: torch.Tensor) -> tuple[torch.Tensor, ...]:
        leaves, layout = torch_pytree.tree_flatten(function(*operands))
        layouts.append(layout)
        if layout != layouts[0]:
            raise CaptureError("branches that give lists of different lengths, or a value in one case alone")
        return tuple(leaves)

    return flat


@op("Loop", as_given=None)
def loop(call: NodeCall, rounds: Any, condition: Any, *carried: Any) -> tuple[Any, ...]:
    """Rounds of a graph as long as its condition holds; results of each round are stacked."""
    graph = call.get("body")
    if any(isinstance(value, list) or value is None for value in carried) and rounds is not None:
        call.numbers(rounds)
    limit = rounds.numbers()[0] if isinstance(rounds, Known) else rounds
    goes_on = True if condition is None else condition.numbers()[0] if isinstance(condition, Known) else condition
    if isinstance(limit, int) and isinstance(goes_on, bool) and _keeps_condition(graph):
        count = limit if goes_on else 0
        if count <= UNROLLED or any(isinstance(value, list) for value in carried):
            return _unrolled(call, graph, count, carried)
    return _rolled(call, graph, limit, goes_on, [as_tensor_value(value) for value in carried])


def _keeps_condition(graph: Any) -> bool:
    """Whether the condition that a body gives is true, or the one that it was given."""
    made = {name: node for node in graph.node for name in node.output}
    name = graph.output[0].name
    while name in made and made[name].op_type in ("Identity", "Cast"):
        name = made[name].input[0]
    if name == graph.input[1].name:
        return True
    known: dict[str, Any] = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    if name in made and made[name].op_type == "Constant":
        known[name] = attributes_of(made[name], {}).get("value")
    return known.get(name) is not None and bool(known[name])


def _unrolled(call: NodeCall, graph: Any, count: int, carried: Sequence[Any]) -> tuple[Any, ...]:
    values, rows = list(carried), []
    for number in range(count):
        _, *results = call.run.region(graph, call.env, [Known.of(number), Known.of(True, torch.bool), *values])
        values, row = results[: len(carried)], results[len(carried) :]
        rows.append([as_tensor_value(value) for value in row])
    if rows:
        return (*values, *(torch.stack(column) for column in zip(*rows, strict=True)))
    return (*values, *(_no_rows(value, call) for value in graph.output[1 + len(carried) :]))


def _no_rows(value: Any, call: NodeCall) -> torch.Tensor:
    """The stack of no rounds' results, by the type that the graph declares."""
    from pipeline.frontend.onnx.element_types import torch_type

    kind = value.type.tensor_type
    return torch.empty([0, *(dim.dim_value for dim in kind.shape.dim)], dtype=torch_type(kind.elem_type, call.name))


def _rolled(call: NodeCall, graph: Any, limit: Any, goes_on: Any, carried: list[torch.Tensor]) -> tuple[Any, ...]:
    """As a while_loop; what rounds give is written to rows of tensors that have room for all of them."""
    stacked = graph.output[1 + len(carried) :]
    region = _Surroundings(call, [graph])
    bounded = limit is not None
    rooms = []
    if stacked:
        if not bounded:
            raise call.error("a loop without a greatest number of rounds has no results of each round; give it one")
        rooms = _rooms(call, region, graph, limit, carried)
    most = (
        limit
        if isinstance(limit, torch.Tensor)
        else torch.scalar_tensor(2**62 if limit is None else limit, dtype=torch.int64)
    )
    first = goes_on if isinstance(goes_on, torch.Tensor) else torch.tensor(goes_on)
    number = torch.zeros((), dtype=torch.int64)
    state = (number, first.reshape(()).clone(), *(value.clone() for value in carried), *rooms)
    count = len(carried)

    def condition(at: torch.Tensor, more: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        return torch.logical_and(more, at < rest[-1].reshape(()))

    def body(at: torch.Tensor, more: torch.Tensor, *rest: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values, room = rest[:count], rest[count : count + len(rooms)]
        operands = rest[count + len(rooms) : -1]
        again, *results = region.run(graph, operands, [at.clone(), more.clone(), *values])
        results = [as_tensor_value(value) for value in results]
        written = [
            torch.where(_is_row(at, into), row.unsqueeze(0), into)
            for into, row in zip(room, results[count:], strict=True)
        ]
        again = as_tensor_value(again).reshape(()).clone()
        return (at + 1, again, *(value.clone() for value in results[:count]), *written)

    done, _, *results = while_loop_op(condition, body, state, (*region.operands, most.reshape(())))
    if not rooms:
        return tuple(results)
    rounds = done.item()
    torch._check(rounds >= 0)
    torch._check(rounds <= rooms[0].shape[0])
    return (*results[:count], *(room.narrow(0, 0, rounds) for room in results[count:]))


def _is_row(at: torch.Tensor, into: torch.Tensor) -> torch.Tensor:
    return (torch.arange(into.shape[0]) == at).reshape(-1, *[1] * (into.dim() - 1))


def _rooms(
    call: NodeCall, region: _Surroundings, graph: Any, limit: Any, carried: list[torch.Tensor]
) -> list[torch.Tensor]:
    """Zeros for the results of all rounds."""
    from pipeline.frontend.torchscript.tensor_control_flow import without_trace

    if isinstance(limit, torch.Tensor):
        call.numbers(limit)
    with without_trace([*region.operands, *carried]):
        start = [torch.zeros((), dtype=torch.int64), torch.ones((), dtype=torch.bool)]
        _, *results = region.run(graph, region.operands, [*start, *(value.clone() for value in carried)])
        rows = [as_tensor_value(value) for value in results[len(carried) :]]
    return [torch.zeros([limit, *row.shape], dtype=row.dtype) for row in rows]


@op("Scan", as_given=())
def scan(call: NodeCall, *values: torch.Tensor) -> tuple[Any, ...]:
    """A graph over the slices of sequences."""
    graph, count = call.get("body"), call.get("num_scan_inputs")
    if call.version < 9:
        return _batched_scan(call, graph, count, values)
    state, sequences = values[: len(values) - count], values[len(values) - count :]
    axes, backwards = call.get("scan_input_axes") or [0] * count, call.get("scan_input_directions") or [0] * count
    rows = [
        sequence.movedim(axis, 0).flip(0) if back else sequence.movedim(axis, 0)
        for sequence, axis, back in zip(sequences, axes, backwards, strict=True)
    ]
    results = _scanned(call, graph, state, rows)
    stacked = results[len(state) :]
    out_axes = call.get("scan_output_axes") or [0] * len(stacked)
    reverse = call.get("scan_output_directions") or [0] * len(stacked)
    moved = [
        (value.flip(0) if back else value).movedim(0, axis)
        for value, axis, back in zip(stacked, out_axes, reverse, strict=True)
    ]
    return (*results[: len(state)], *moved)


def _batched_scan(call: NodeCall, graph: Any, count: int, values: Sequence[Any]) -> tuple[Any, ...]:
    """Version 8: over each sequence of a batch."""
    if values[0] is not None:
        raise call.error("sequences of several lengths are not supported; use version 9 of the op")
    rest = values[1:]
    state, sequences = rest[: len(rest) - count], rest[len(rest) - count :]
    batches = sequences[0].shape[0]
    runs = [
        _scanned(call, graph, [value[batch] for value in state], [value[batch] for value in sequences])
        for batch in range(batches)
    ]
    return tuple(torch.stack(column) for column in zip(*runs, strict=True))


def _scanned(call: NodeCall, graph: Any, state: Sequence[Any], rows: list[torch.Tensor]) -> tuple[Any, ...]:
    length = rows[0].shape[0]
    if isinstance(length, int) and length <= UNROLLED:
        values, stacks = list(state), []
        for number in range(length):
            results = call.run.region(graph, call.env, [*values, *(row[number] for row in rows)])
            results = [as_tensor_value(value) for value in results]
            values, stack = results[: len(state)], results[len(state) :]
            stacks.append(stack)
        return (*values, *(torch.stack(column) for column in zip(*stacks, strict=True)))
    region = _Surroundings(call, [graph])

    def step(*operands: torch.Tensor) -> list[torch.Tensor]:
        count = len(state) + len(rows)
        results = region.run(graph, operands[count:], list(operands[:count]))
        return [as_tensor_value(value).clone() for value in results]

    return tuple(torch.ops.higher_order.scan(step, list(state), rows, region.operands))


class _Surroundings:
    """What graphs of a node take from outside, as operands of torch's control flow; their constants among them."""

    def __init__(self, call: NodeCall, graphs: Sequence[Any]):
        self._call = call
        names = dict.fromkeys(name for graph in graphs for name in _free_names(graph))
        self._known = {name: call.env[name] for name in names if name in call.env}
        self._names = [name for name, value in self._known.items() if isinstance(_tensor_in(value), torch.Tensor)]
        self.operands = tuple(_tensor_in(self._known[name]) for name in self._names)

    def run(self, graph: Any, operands: Sequence[torch.Tensor], inputs: Sequence[Any]) -> list[Any]:
        """The results of a graph on operands and inputs."""
        env = dict(self._known)
        for name, operand in zip(self._names, operands, strict=True):
            before = env[name]
            env[name] = Known(before.values, before.dtype, operand) if isinstance(before, Known) else operand
        return self._call.run.region(graph, env, inputs)

    def function(
        self, graph: Any, inputs: Callable[[Sequence[Any]], list[Any]], skip: int
    ) -> Callable[..., tuple[torch.Tensor, ...]]:
        """A graph as a function of the operands."""

        def function(*operands: torch.Tensor) -> tuple[torch.Tensor, ...]:
            results = self.run(graph, operands[skip:], inputs(operands))
            return tuple(_copied(as_tensor_value(value)) for value in results)

        return function


def _copied(value: Any) -> Any:
    """Copies of tensors: what a region gives is nothing that it takes."""
    return torch_pytree.tree_map_only(torch.Tensor, torch.clone, value)


def _tensor_in(value: Any) -> Any:
    return value.weight if isinstance(value, Known) else value


def _free_names(graph: Any) -> Iterator[str]:
    """The names that a graph and its inner ones use; some are their own."""
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _free_names(attribute.g)
    yield from (value.name for value in graph.output)
