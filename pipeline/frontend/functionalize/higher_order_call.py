"""A call of cond, while_loop, scan or map in an FX graph: its graphs, their placeholders and what they capture."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx
from torch._ops import HigherOrderOperator
from torch.fx.node import _side_effectful_functions

from pipeline.frontend.fx_passes.simplify import attribute

#: By name: which arguments are graphs, which are lists of values that the graphs take, the captured ones last.
_LAYOUT = {
    "cond": ((1, 2), (3,)),
    "while_loop": ((0, 1), (2, 3)),
    "scan": ((0,), (1, 2, 3)),
    "map_impl": ((0,), (1, 2)),
}


@contextlib.contextmanager
def writes_are_kept() -> Iterator[None]:
    """While a model is traced: a branch or loop whose results nobody uses is not dead, as it may write in place.

    Gets round a defect of torch: Graph.eliminate_dead_code drops those in inner graphs. Remove when Node.is_impure
    looks into the graphs of these ops.
    """
    ops = {getattr(torch.ops.higher_order, name) for name in _LAYOUT} - _side_effectful_functions
    _side_effectful_functions.update(ops)
    try:
        yield
    finally:
        _side_effectful_functions.difference_update(ops)


def regions_of(node: fx.Node) -> str | None:
    """`cond`, `while_loop`, `scan` or `map_impl` if the node is a call of that."""
    name = node.target.name() if isinstance(node.target, HigherOrderOperator) else None
    return name if name in _LAYOUT else None


class RegionCall:
    """The call `node`; what is changed here is changed in the graph.

    Attributes:
        node: the call.
        kind: which one it is.
        modules: the graphs: the branches; a loop's condition and body; the body of a scan or a map.
    """

    def __init__(self, node: fx.Node):
        self.node = node
        self.kind = str(regions_of(node))
        self._graphs, self._values = _LAYOUT[self.kind]
        self.modules = [self._own(node.args[number]) for number in self._graphs]

    def _own(self, graph: Any) -> fx.GraphModule:
        """The graph that a get_attr node names, copied if another call has it too."""
        module = attribute(graph)
        if sum(other.target == graph.target for other in graph.graph.nodes if other.op == "get_attr") > 1:
            module = copy.deepcopy(module)
            around, name = graph.graph.owning_module, f"{graph.target}_{graph.name}"
            around.add_submodule(name, module)
            graph.target = name
        return module

    @property
    def operands(self) -> list[Any]:
        """What the graphs take, in the order of their placeholders; of scan and map they get slices."""
        return [value for number in self._values for value in self.node.args[number]]

    @property
    def captures(self) -> list[Any]:
        """The operands that every round and every branch takes as they are."""
        return list(self.node.args[self._values[-1]])

    @property
    def fixed(self) -> int:
        """How many operands come before the captures."""
        return len(self.operands) - len(self.captures)

    def placeholders(self, module: fx.GraphModule) -> list[fx.Node]:
        """The placeholders of one of the graphs, one an operand."""
        return [node for node in module.graph.nodes if node.op == "placeholder"]

    def capture(self, value: fx.Node) -> int:
        """The number of the operand that is `value`, captured if it was not."""
        for number, operand in enumerate(self.captures):
            if operand is value:
                return self.fixed + number
        return self.add_capture(value)

    def add_capture(self, value: fx.Node) -> int:
        """Captures `value`; gives the number of the operand."""
        self._set_captures([*self.captures, value])
        for module in self.modules:
            inputs = self.placeholders(module)
            with module.graph.inserting_after(inputs[-1]) if inputs else _at_start(module.graph):
                added = module.graph.placeholder(f"captured_{len(inputs)}")
            added.meta = dict(value.meta)
        return len(self.operands) - 1

    def drop_capture(self, number: int) -> None:
        """Removes an operand that no graph uses."""
        for module in self.modules:
            module.graph.erase_node(self.placeholders(module)[number])
        captures = self.captures
        del captures[number - self.fixed]
        self._set_captures(captures)

    def carry(self, number: int) -> None:
        """Makes a captured operand of a while loop the last one that is carried."""
        value, place = self.operands[number], self.fixed
        captures = self.captures
        del captures[number - place]
        self.node.args = (*self.node.args[:2], (*self.node.args[2], value), tuple(captures))
        self.node.kwargs = {}  # torch's own note of what is written to
        for module in self.modules:
            inputs = self.placeholders(module)
            if number != place:
                inputs[place].prepend(inputs[number])

    def outputs(self, module: fx.GraphModule) -> list[Any]:
        """The results of one of the graphs."""
        results = _output(module).args[0]
        return list(results) if isinstance(results, (tuple, list)) else [results]

    def set_outputs(self, module: fx.GraphModule, results: list[Any]) -> None:
        """Replaces the results of one of the graphs."""
        is_single = not isinstance(_output(module).args[0], (tuple, list))
        _output(module).args = (results[0] if is_single and len(results) == 1 else tuple(results),)

    def add_result(self, value: torch.Tensor) -> int:
        """Says that the call has one more result, like `value`; gives its number."""
        results = tuple(self.node.meta["val"])
        self.node.meta["val"] = (*results, value)
        return len(results)

    def set_operand(self, number: int, value: fx.Node) -> None:
        """Has the graphs take `value` for operand `number`."""
        arguments = list(self.node.args)
        for place in self._values:
            count = len(arguments[place])
            if number < count:
                arguments[place] = (*arguments[place][:number], value, *arguments[place][number + 1 :])
                break
            number -= count
        self.node.args = tuple(arguments)

    def _set_captures(self, values: list[Any]) -> None:
        number = self._values[-1]
        self.node.args = (*self.node.args[:number], tuple(values), *self.node.args[number + 1 :])


def _output(module: fx.GraphModule) -> fx.Node:
    return next(node for node in reversed(module.graph.nodes) if node.op == "output")


def _at_start(graph: fx.Graph) -> Any:
    return graph.inserting_before(next(iter(graph.nodes)))


def at_end(graph: fx.Graph) -> Any:
    """Inserts nodes in front of the output."""
    return graph.inserting_before(next(node for node in graph.nodes if node.op == "output"))
