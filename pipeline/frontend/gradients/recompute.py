"""Which part of a graph with gradients runs forward and which backward: backward computes forward again.

So forward is the same code as without gradients and keeps nothing but what it was given. Random numbers are kept, too:
drawn again, they would be others.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx
from torch._functorch._aot_autograd.descriptors import InputMutationAOTOutput
from torch._functorch.partitioners import _extract_fwd_bwd_modules
from torch.fx.experimental.proxy_tensor import is_sym_node
from torch.utils.checkpoint import CheckpointPolicy

from pipeline.frontend.decompositions.random_op import draws_numbers
from pipeline.frontend.fx_passes.simplify import attribute

aten = torch.ops.aten


def recompute_partition(
    joint: fx.GraphModule, _inputs: Any, *, num_fwd_outputs: int, **_options: Any
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """(forward, backward) of a graph of aot_autograd's that computes both, as a `partition_fn` gives them."""
    copy_what_is_written(joint)
    return keep_inputs(joint, num_fwd_outputs)


def keep_inputs(joint: fx.GraphModule, num_fwd_outputs: int) -> tuple[fx.GraphModule, fx.GraphModule]:
    """(forward, backward), which is given the inputs, or copies of those that are written to, and random numbers."""
    numbers: list[fx.Node] = []
    tensors: list[fx.Node] = []
    behind: set[fx.Node] = set()  # what is computed of gradients, which forward does not have
    for node in joint.graph.nodes:
        if node.op == "placeholder":
            if "tangents" in str(node.target):
                behind.add(node)
            else:
                (numbers if is_sym_node(node) else tensors).append(_as_given(node))
        elif not behind.isdisjoint(node.all_input_nodes):
            behind.add(node)
        elif is_random(node):
            tensors += _tensors(node)
    return _extract_fwd_bwd_modules(joint, tensors, numbers, num_fwd_outputs=num_fwd_outputs)


def copy_what_is_written(joint: fx.GraphModule) -> None:
    """f(x), and x is written to  ->  f(clone(x)): what backward reads is x as it was given, and kept as such."""
    written = [desc.mutated_input for desc in joint.graph.output_node().meta["desc"] if _is_new_value(desc)]
    for node in joint.graph.find_nodes(op="placeholder"):
        if node.meta["desc"] not in written:
            continue
        with joint.graph.inserting_after(node):
            copy = joint.graph.call_function(aten.clone.default, (node,))
        copy.meta = {**node.meta, "recompute": CheckpointPolicy.MUST_SAVE}
        node.replace_all_uses_with(copy, delete_user_cb=lambda user, copy=copy: user is not copy)


def _is_new_value(desc: Any) -> bool:
    return isinstance(desc, InputMutationAOTOutput)


def _as_given(node: fx.Node) -> fx.Node:
    """The copy of an input that is made where it is written to; else the input itself."""
    users = list(node.users)
    return users[0] if len(users) == 1 and users[0].target is aten.clone.default else node


def is_random(node: fx.Node) -> bool:
    """Whether the op, or a graph that it calls, draws random numbers."""
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        graphs = [attribute(operand) for operand in node.all_input_nodes if operand.op == "get_attr"]
        return any(
            is_random(inner_node)
            for graph in graphs
            if isinstance(graph, fx.GraphModule)
            for inner_node in graph.graph.nodes
        )
    return draws_numbers(node.target)


def _tensors(node: fx.Node) -> list[fx.Node]:
    """The results of an op, one by one."""
    parts = [user for user in node.users if user.target is operator.getitem]
    return parts or [node]
