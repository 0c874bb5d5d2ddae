"""Numbers of a graph as tensors of no dimensions, and back."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx
from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import FakeTensorMode

aten = torch.ops.aten

#: The dtype that a number of a graph has as a tensor, by what FX says it is.
_DTYPES = {
    bool: torch.bool,
    torch.SymBool: torch.bool,
    int: torch.int64,
    torch.SymInt: torch.int64,
    float: torch.float64,
    torch.SymFloat: torch.float64,
}

_ITEMS = {torch.bool: aten.Bool.Tensor, torch.int64: aten.Int.Tensor, torch.float64: aten.Float.Tensor}


def value_of(number: Any) -> Any:
    """What FX knows about a node's value; of a number itself, the number."""
    return number.meta.get("val") if isinstance(number, fx.Node) else number


def is_number(value: Any) -> bool:
    """Whether it is a number, or a node that gives one."""
    return type(value_of(value)) in _DTYPES


def dtype_of(number: Any) -> torch.dtype:
    """int64, float64 or bool."""
    return _DTYPES[type(value_of(number))]


def box_result(number: fx.Node) -> fx.Node:
    """full([], n): a number that the graph returns, as a tensor."""
    boxes = Boxes(number.graph)
    boxes.origin = next(node for node in number.graph.nodes if node.op == "output")
    return boxes.box(number, dtype_of(number))


class Boxes:
    """Makes tensors of a graph's numbers, each once.

    Attributes:
        origin: the node before which new ones are inserted, and whose source line they have.
    """

    def __init__(self, graph: fx.Graph):
        self._graph = graph
        self._boxes: dict[fx.Node, fx.Node] = {}
        self._fake = detect_fake_mode([node.meta.get("val") for node in graph.nodes]) or FakeTensorMode()
        self.origin: fx.Node = next(iter(graph.nodes))

    def box(self, number: Any, dtype: torch.dtype) -> fx.Node:
        """[] of a dtype: what holds the number."""
        if not isinstance(number, fx.Node):
            return self.call(aten.full.default, dtype, [], number, dtype=dtype)
        if number not in self._boxes:
            own = dtype_of(number)
            self._boxes[number] = self.call(aten.full.default, own, [], number, dtype=own)
        return self.cast(self._boxes[number], dtype)

    def cast(self, box: fx.Node, dtype: torch.dtype) -> fx.Node:
        """The box in another dtype; numbers that are not 0 are true."""
        if value_of(box).dtype == dtype:
            return box
        if dtype == torch.bool:
            return self.call(aten.ne.Scalar, dtype, box, 0)
        return self.call(torch.ops.prims.convert_element_type.default, dtype, box, dtype)

    def unbox(self, box: fx.Node, number: fx.Node) -> None:
        """The number in a box, in the place of a node, which goes."""
        item = self._item(box, number, value_of(number))
        number.replace_all_uses_with(item)
        self._graph.erase_node(number)

    def _item(self, box: fx.Node, origin: fx.Node, value: Any) -> fx.Node:
        with self._graph.inserting_before(self.origin):
            item = self._graph.call_function(_ITEMS[value_of(box).dtype], (box,))
        item.meta = {key: entry for key, entry in origin.meta.items() if key != "tensor_meta"} | {"val": value}
        self._boxes[item] = box
        return item

    def read(self, source: fx.Node, dtype: torch.dtype) -> fx.Node:
        """The box of what a tensor of one element holds."""
        value = value_of(source)
        if value.dim() > 0:
            source = self.call(aten.view.default, value.dtype, source, [])
        return self.cast(source, dtype)

    def call(self, target: Any, kind: torch.dtype, /, *args: Any, **kwargs: Any) -> fx.Node:
        """A call before the origin that gives a tensor of no dimensions, of the dtype `kind`."""
        with self._graph.inserting_before(self.origin):
            node = self._graph.call_function(target, args, kwargs)
        node.meta = {key: value for key, value in self.origin.meta.items() if key not in ("val", "tensor_meta")}
        with self._fake:
            node.meta["val"] = torch.empty([], dtype=kind)
        return node

    def check(self, flag: fx.Node, message: str) -> None:
        """Has the call fail with the message unless the flag is true."""
        item = self._item(flag, self.origin, True)
        self.call(aten._assert_scalar.default, torch.bool, item, message).meta["val"] = None

    def compute(self, target: Any, *operands: Any, value: Any) -> fx.Node:
        """A call of Python's operators on whole numbers, which stay numbers."""
        with self._graph.inserting_before(self.origin):
            node = self._graph.call_function(target, operands)
        node.meta = {key: item for key, item in self.origin.meta.items() if key != "tensor_meta"}
        node.meta["val"] = value
        return node

    def product(self, factors: list[Any]) -> Any:
        """The product of whole numbers."""
        first, *others = factors
        for other in others:
            first = self.compute(operator.mul, first, other, value=value_of(first) * value_of(other))
        return first
