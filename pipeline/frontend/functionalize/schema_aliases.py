"""Which values of an FX graph share memory, and which calls write to it: read off the schemas of the ops."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

aten = torch.ops.aten

#: What the schema calls a view is a copy where this fails: the dtype stays, the tensor is row-major, the shape fits.
_PERHAPS_COPIES = {
    "aten::to": lambda source, result: source.dtype == result.dtype,
    "aten::contiguous": lambda source, result: source.is_contiguous(),
    "aten::reshape": lambda source, result: _can_view(source, result),
    "aten::reshape_as": lambda source, result: _can_view(source, result),
    "aten::flatten": lambda source, result: _can_view(source, result),
    "aten::ravel": lambda source, result: _can_view(source, result),
}


def written(node: fx.Node) -> list[fx.Node]:
    """The tensors that a call writes to."""
    if not _has_schema(node):
        return []
    return [value for argument, value in _arguments(node) if argument.alias_info and argument.alias_info.is_write]


def viewed(node: fx.Node) -> fx.Node | None:
    """The value in whose memory the result of `node` lies: what a view looks at, what an op in place wrote to."""
    call = node.args[0] if node.target is operator.getitem else node
    if not isinstance(call, fx.Node) or not _has_schema(call):
        return None
    for argument, value in _arguments(call):
        if argument.alias_info and any(_same_memory(argument, result) for result in call.target._schema.returns):
            return call if node is not call else None if _is_copy(node, value) else value
    return _in_memory_of(call, node)


def same_tensor(node: fx.Node) -> fx.Node:
    """The value that `node` is, where an op that writes in place returned it."""
    while written(node) and (source := viewed(node)) is not None:
        node = source
    return node


def root(node: fx.Node) -> fx.Node:
    """The value whose memory `node` lies in, through any number of views."""
    while (source := viewed(node)) is not None:
        node = source
    return node


def views(node: fx.Node) -> list[fx.Node]:
    """The views that lead from `root(node)` to `node`, without the ops that write in place."""
    chain = []
    while (source := viewed(node := same_tensor(node))) is not None:
        chain.append(node)
        node = source
    return chain[::-1]


def _has_schema(node: fx.Node) -> bool:
    return node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)


def _arguments(node: fx.Node) -> Iterator[tuple[Any, fx.Node]]:
    """(argument of the schema, value) for each argument that is a value of the graph, in lists too."""
    for number, argument in enumerate(node.target._schema.arguments):
        given = node.args[number] if number < len(node.args) else node.kwargs.get(argument.name)
        for value in given if isinstance(given, (list, tuple)) else [given]:
            if isinstance(value, fx.Node):
                yield argument, value


def _same_memory(argument: Any, result: Any) -> bool:
    """Whether a result is a view of an argument; of a list of views, only the argument's "a -> *" tells."""
    if result.alias_info is None:
        return False
    return "*" in argument.alias_info.after_set or bool(argument.alias_info.before_set & result.alias_info.before_set)


def _in_memory_of(call: fx.Node, result: fx.Node) -> fx.Node | None:
    """The operand in whose memory a result lies though the schema is silent, as that of meshgrid and of type_as is."""
    memory = _storage(result)
    given = (value for _, value in _arguments(call))
    return next((value for value in given if memory is not None and _storage(value) == memory), None)


def _storage(node: fx.Node) -> int | None:
    value = node.meta.get("val")
    has_storage = isinstance(value, torch.Tensor) and value.layout == torch.strided
    return value.untyped_storage()._cdata if has_storage else None


def _is_copy(node: fx.Node, source: fx.Node) -> bool:
    """Whether a call that may return a view returned a copy."""
    rule = _PERHAPS_COPIES.get(node.target._schema.name)
    before, after = source.meta.get("val"), node.meta.get("val")
    if rule is None or not isinstance(before, torch.Tensor) or not isinstance(after, torch.Tensor):
        return False
    return not rule(before, after)


def _can_view(source: torch.Tensor, result: torch.Tensor) -> bool:
    try:
        source.view(result.shape)
    except (RuntimeError, ValueError):
        return False
    return True
