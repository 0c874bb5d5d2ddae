"""Ops with effects as functionalization leaves them: each takes a token from the one before. The order stays."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator

import torch
from torch import fx
from torch._higher_order_ops.effects import _get_effect, _register_effectful_op

_with_effects = torch.ops.higher_order.with_effects
_make_token = torch.ops.prims._make_token.default
_sink_tokens = torch.ops.prims._sink_tokens.default

#: What raises if a factorization failed. Torch does not take ops with effects apart, and branches may have none.
_LINALG_CHECK = "aten::_linalg_check_errors"


@contextlib.contextmanager
def linalg_checks_taken_apart() -> Iterator[None]:
    """Has torch apply the table of decompositions to the checks of linalg in the `with` block; one thread at a time.

    Each becomes an assertion, which stays in a graph without being an op with effects.
    """
    effect = _get_effect(_LINALG_CHECK)
    _register_effectful_op(_LINALG_CHECK, None)
    try:
        yield
    finally:
        _register_effectful_op(_LINALG_CHECK, effect)


def drop_effect_tokens(graph: fx.Graph) -> None:
    """t = _make_token(); t, y = with_effects(t, op, x); _sink_tokens([t])  →  y = op(x)."""
    for node in list(graph.nodes):
        if node.target is _sink_tokens:
            graph.erase_node(node)
    for node in list(graph.nodes):
        if node.target is _with_effects:
            _call_plainly(graph, node)
    for node in reversed(graph.nodes):
        if not node.users and (node.target is _make_token or _is_part_of_effects(node)):
            graph.erase_node(node)


def _call_plainly(graph: fx.Graph, node: fx.Node) -> None:
    """Puts a call of the op in front of a with_effects node, whose results it takes over but for the token."""
    _, op, *args = node.args
    values = node.meta["val"][1:]
    is_single = len(op._schema.returns) == 1
    with graph.inserting_before(node):
        call = graph.call_function(op, tuple(args), dict(node.kwargs))
    call.meta = {**node.meta, "val": values[0] if is_single else (tuple(values) if op._schema.returns else None)}
    for getter in list(node.users):
        if getter.target is not operator.getitem or getter.args[1] == 0:
            continue
        if is_single:
            getter.replace_all_uses_with(call)
        else:
            getter.args = (call, getter.args[1] - 1)


def _is_part_of_effects(node: fx.Node) -> bool:
    source = node.args[0] if node.target is operator.getitem else node
    return source.op == "call_function" and source.target is _with_effects
