"""Of values that are views of one tensor, backward is given that tensor.

forward: returns q = x[.., :n], k = x[.., n:]  →  returns x
backward: takes q and k                        →  takes x, and looks at q and k in it

Such views are no row-major tensors, so that each call of backward would copy them.
"""

from __future__ import annotations

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import statically_known_true

from pipeline.frontend.functionalize.schema_aliases import root, views
from pipeline.frontend.gradients.kept_values import byte_count, is_tensor


def keep_bases(forward: fx.GraphModule, backward: fx.GraphModule, results: int) -> None:
    """Changes both graphs in place; `results` is the number of forward's own results, before what it keeps."""
    output = forward.graph.output_node()
    own, kept = list(output.args[0][:results]), list(output.args[0][results:])
    taken = {node.name: node for node in backward.graph.find_nodes(op="placeholder")}
    groups: dict[fx.Node, list[fx.Node]] = {}
    for node in dict.fromkeys(kept):
        if isinstance(node, fx.Node) and node.op == "call_function" and node.name in taken and is_tensor(node):
            groups.setdefault(root(node), []).append(node)
    for base, nodes in groups.items():
        if nodes == [base] or not _pays(base, nodes) or not _can_be_rebuilt(nodes, taken):
            continue
        _look_at(backward.graph, base, nodes, taken)
        kept = [base if node is nodes[0] else node for node in kept if node not in nodes[1:]]
    output.args = ((*own, *kept),)
    for graph in (forward, backward):
        graph.graph.eliminate_dead_code()
        graph.recompile()


def _pays(base: fx.Node, nodes: list[fx.Node]) -> bool:
    """Whether a tensor is no larger than what is kept of it."""
    if base.op != "call_function" or not is_tensor(base):
        return False
    return statically_known_true(byte_count(base) <= sum(map(byte_count, nodes)))


def _can_be_rebuilt(nodes: list[fx.Node], taken: dict[str, fx.Node]) -> bool:
    """Whether backward knows the sizes that the views are made with."""
    for view in (view for node in nodes for view in views(node)):
        sizes = [operand for operand in view.all_input_nodes if isinstance(operand.meta.get("val"), torch.SymInt)]
        if not all(size.name in taken for size in sizes):
            return False
    return True


def _look_at(graph: fx.Graph, base: fx.Node, nodes: list[fx.Node], taken: dict[str, fx.Node]) -> None:
    """Has a graph take `base` in the place of views of it, and look at these in it."""
    first = taken[nodes[0].name]
    again = next((node for node in graph.nodes if node.name == base.name), None)
    with graph.inserting_before(first):
        placeholder = graph.placeholder(base.name)
    placeholder.meta = dict(base.meta)
    if again is not None and again.op == "call_function":  # backward would compute it again
        again.replace_all_uses_with(placeholder)
        graph.erase_node(again)
    known = {base: placeholder}
    with graph.inserting_before(graph.find_nodes(op="placeholder")[-1].next):
        made = [_rebuilt(graph, node, known, taken) for node in nodes]
    for node, view in zip(nodes, made, strict=True):
        taken[node.name].replace_all_uses_with(view)
        graph.erase_node(taken[node.name])
    placeholder.name = placeholder.target = base.name


def _rebuilt(graph: fx.Graph, node: fx.Node, known: dict[fx.Node, fx.Node], taken: dict[str, fx.Node]) -> fx.Node:
    for view in views(node):
        if view not in known:
            known[view] = graph.node_copy(view, lambda operand: known.get(operand) or taken[operand.name])
            known[view]._rename(f"{view.name}_in_backward")  # else perhaps as another value of forward's
    return known[node]
