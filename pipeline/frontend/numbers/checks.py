"""torch's assertions about numbers become checks of the call, which the importer knows as `aten._assert_scalar`."""

from __future__ import annotations

import operator
import re
from typing import Any

import torch
from torch import fx

aten = torch.ops.aten

#: What torch.export has proved, or says to its own symbols; a rewrite may change the dtype that is asserted.
_PROVED = (
    aten._assert_tensor_metadata.default,
    aten.sym_constrain_range.default,
    aten.sym_constrain_range_for_size.default,
)

_OF_TENSORS = (aten._assert_async.default, aten._assert_async.msg, aten._functional_assert_async.msg)


def drop_proved_assertions(graph: fx.Graph) -> None:
    """_assert_tensor_metadata(x, ..)  →  nothing."""
    for node in list(graph.nodes):
        if node.target in _PROVED or (node.target is aten._assert_scalar.default and _always_holds(node.args[0])):
            graph.erase_node(node)


def lower_assertions(graph: fx.Graph) -> None:
    """_assert_async(t: bool [])  →  _assert_scalar(item(t)), without those that are proved."""
    drop_proved_assertions(graph)
    for node in list(graph.nodes):
        if node.target in _OF_TENSORS:
            _lower_assertion_of_tensor(node)


def _always_holds(condition: Any) -> bool:
    """Whether it is true, or compares a size with 0."""
    if not isinstance(condition, fx.Node):
        return bool(condition)
    if condition.target is not operator.ge or condition.args[1] != 0:
        return False
    size = condition.args[0]
    return isinstance(size, fx.Node) and size.target in (aten.sym_size.int, aten.sym_numel.default)


def _lower_assertion_of_tensor(node: fx.Node) -> None:
    graph, flag = node.graph, node.args[0]
    message = node.args[1] if len(node.args) > 1 else "Expected Tensor with single nonzero value"
    with graph.inserting_before(node):
        item = graph.call_function(aten._local_scalar_dense.default, (flag,))
        check = graph.call_function(aten._assert_scalar.default, (item, message))
    item.meta = {key: entry for key, entry in node.meta.items() if key != "tensor_meta"} | {"val": True}
    check.meta = dict(node.meta)
    if node.target is aten._functional_assert_async.msg:
        node.replace_all_uses_with(node.args[2])
    graph.erase_node(node)


def message_of(text: str) -> str:
    """What a failed assertion of torch's says to the user: the condition, or the model's own words."""
    found = re.fullmatch(r"Runtime assertion failed for expression (.*) on node '.*'", text)
    return f"the model's check {found[1]} failed" if found else text
