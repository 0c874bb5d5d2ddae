"""What backward computes of a kept value alone, and forward has computed as well, is kept in the place of that value.

forward: returns mm, and reads add = mm + bias  →  returns add
backward: computes add = mm + bias of mm        →  takes add

A cut of the graph costs the same on either side of such an op. But forward would write both values, if something else
reads the second one, and backward would compute it again.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload
from torch.fx.experimental.symbolic_shapes import statically_known_true

aten = torch.ops.aten

#: Ops that hand on what they are given in another shape; to keep such a result gains nothing.
_RESHAPES = (aten.view.default, aten._unsafe_view.default, aten.reshape.default)


def keep_what_is_read(forward: fx.GraphModule, backward: fx.GraphModule, results: int) -> None:
    """Changes both graphs in place; `results` is the number of forward's own results, before what it keeps."""
    output = forward.graph.output_node()
    values = list(output.args[0])
    computed = {node.name: node for node in forward.graph.nodes}
    taken = {node.name: node for node in backward.graph.find_nodes(op="placeholder")}
    for number, value in enumerate(values[results:], results):
        if not isinstance(value, fx.Node) or value.op != "call_function" or value.name not in taken:
            continue
        if not is_tensor(value):  # a size, for example, that tensors are made of
            continue
        node = taken[value.name]
        read = _read_instead(node, computed) if values.count(value) == 1 else None
        if read is None or computed[read.name] in values:
            continue
        values[number] = computed[read.name]
        _take(backward.graph, node, read)
    output.args = (tuple(values),)
    for graph in (forward, backward):
        graph.graph.eliminate_dead_code()
        graph.recompile()


def _read_instead(taken: fx.Node, computed: dict[str, fx.Node]) -> fx.Node | None:
    """The op whose result is to be kept: of those that each alone read the one before, with results no larger.

    The first one that lies in memory in forward anyway, since not only elementwise ops read it; else the last one.
    """
    node, found = taken, None
    while len(node.users) == 1:
        (user,) = node.users
        if not _is_in_forward(user, computed) or not statically_known_true(byte_count(user) <= byte_count(taken)):
            break
        node = user
        if user.target in _RESHAPES:
            continue
        found = user
        if not all(map(_is_elementwise, computed[user.name].users)):
            break
    return found


def _is_elementwise(node: fx.Node) -> bool:
    return isinstance(node.target, OpOverload) and torch.Tag.pointwise in node.target.tags


def _is_in_forward(user: fx.Node, computed: dict[str, fx.Node]) -> bool:
    """Whether forward computes the same from the same values."""
    own = computed.get(user.name)
    if own is None or own.op != "call_function" or own.target is not user.target or not is_tensor(user):
        return False
    names = [[node.name for node in each.all_input_nodes] for each in (own, user)]
    return names[0] == names[1]


def _take(graph: fx.Graph, taken: fx.Node, read: fx.Node) -> None:
    """Makes an input of the graph the value that was computed of it."""
    read.replace_all_uses_with(taken)
    taken.meta = dict(read.meta)
    graph.erase_node(read)
    taken.name = taken.target = read.name


def is_tensor(node: fx.Node) -> bool:
    """Whether a node is a tensor."""
    return isinstance(node.meta.get("val"), torch.Tensor)


def byte_count(node: fx.Node) -> Any:
    """How many bytes a tensor has, as a number or a symbol."""
    value = node.meta["val"]
    return value.numel() * value.element_size()
