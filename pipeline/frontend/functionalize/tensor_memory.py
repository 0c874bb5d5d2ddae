"""Which nodes of a graph may lie in the memory of others, and which write to it."""

from __future__ import annotations

import torch
from torch import fx
from torch._ops import OpOverload
from torch.utils import _pytree as pytree


def is_in_place(op: OpOverload) -> bool:
    """Whether an op writes to its first operand, and to nothing else."""
    return op.namespace == "aten" and op._schema.is_mutable and op._schema.name.endswith("_")


def is_write(node: fx.Node) -> bool:
    """Whether a node is an op like `add_`."""
    return isinstance(node.target, OpOverload) and is_in_place(node.target)


def root_of(node: fx.Node) -> fx.Node:
    """What a tensor that ops like `add_` return was computed as."""
    while is_write(node):
        node = node.args[0]
    return node


def names_of(root: fx.Node) -> list[fx.Node]:
    """The nodes that are one tensor: the one that it was computed as, and what writing to it returned."""
    names = [root]
    for name in names:
        names += [user for user in name.users if is_write(user) and user.args[0] is name]
    return names


def node_may_share(node: fx.Node) -> bool:
    """Whether a node's results may lie in the memory of its operands: not those of ops that compute new tensors."""
    own = not isinstance(node.target, OpOverload) or may_share(node.target)
    return node.op == "call_function" and own and holds_tensors(node)


def holds_tensors(node: fx.Node) -> bool:
    """Whether a node's value is a tensor, or has some, as far as is known: numbers lie in no memory."""
    values = pytree.tree_leaves(node.meta["val"]) if "val" in node.meta else ()
    return not values or any(isinstance(value, torch.Tensor) for value in values)


def shares_with(node: fx.Node) -> list[fx.Node]:
    """The nodes in whose memory a node's results may lie."""
    if not is_write(node) and not node_may_share(node):
        return []
    reads = node.all_input_nodes[:1] if is_write(node) else node.all_input_nodes
    return [read for read in reads if holds_tensors(read)]


def writes_alone(node: fx.Node) -> bool:
    """Whether nothing but results of writes lies in the memory of what a node writes to, which an op has computed."""
    root = root_of(node)
    users = (user for name in names_of(root) for user in name.users)
    is_made = root.op == "call_function" and not node_may_share(root)
    return is_made and not any(node_may_share(user) and not is_write(user) for user in users)


def may_share(op: OpOverload) -> bool:
    """Whether an op's results may lie in the memory of its operands: composite ops do not announce that they do."""
    return announces_sharing(op) or op.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd)


def announces_sharing(op: OpOverload) -> bool:
    """Whether an op's schema says that its results lie in the memory of its operands, as those of views do."""
    return any(argument.alias_info is not None for argument in op._schema.arguments)
