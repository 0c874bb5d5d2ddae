"""What is left of complex tensors when rules have taken the ops apart: pairs of real numbers at the graph's borders.

A complex tensor of shape [*s] becomes a real one of shape [*s, 2], which lies in memory as the complex one does.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx
from torch._ops import HigherOrderOperator
from torch.utils._pytree import tree_map

from pipeline.frontend.complex_numbers.table import aten
from pipeline.frontend.fx_passes.refused_ops import refuse

#: What rules leave: of clones, `split` makes some.
_LEFT = (
    aten.clone.default,
    aten.complex.default,
    aten.sym_size.int,
    aten.view_as_complex.default,
    aten.view_as_real.default,
)


def complex_as_pairs(graph: fx.Graph) -> None:
    """complex(re, im) -> re and im where they are asked for, stack([re, im], -1) elsewhere; placeholders -> [.., 2].

    Raises:
        UnsupportedOpError: lists every op on complex tensors for which there is no rule.
    """
    if not any(_has_complex(node) for node in graph.nodes):
        return
    nodes = [node for node in graph.nodes if any(map(_has_complex, [node, *node.all_input_nodes]))]
    refuse([node for node in nodes if not _is_known(node)], "is not supported on complex tensors")
    for node in graph.nodes:  # nodes that are further on go meanwhile
        if node.target is aten.complex.default:
            _replace_complex(graph, node)
        elif _is_same(node):
            _replace(graph, node, node.args[0])
        elif node.op == "placeholder" or _is_of_region(node):
            _set_value(node, pairs_of(node.meta.get("val")))


def pairs_of(value: Any) -> Any:
    """The values of a node, with [.., 2] in place of complex tensors."""
    return tree_map(lambda leaf: torch.view_as_real(leaf.resolve_conj()) if _is_complex(leaf) else leaf, value)


def _is_complex(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_complex()


def _has_complex(node: fx.Node) -> bool:
    value = node.meta.get("val")
    return any(map(_is_complex, value)) if isinstance(value, (list, tuple)) else _is_complex(value)


def _is_known(node: fx.Node) -> bool:
    """Whether the node may have to do with complex tensors: what rules leave, borders, branches and loops."""
    if node.op != "call_function":
        return True
    return node.target in _LEFT or _is_of_region(node)


def _is_same(node: fx.Node) -> bool:
    """Whether the node is its operand, seen as a tensor of pairs; of a complex operand the pairs are made later."""
    if node.target is aten.view_as_real.default:
        return not _has_complex(node.args[0])
    return node.target is aten.view_as_complex.default or (node.target is aten.clone.default and _has_complex(node))


def _is_of_region(node: fx.Node) -> bool:
    """Whether the node is a branch or a loop, whose graph is rewritten likewise, or one of its results."""
    if node.target is operator.getitem:
        return _is_of_region(node.args[0])
    return isinstance(node.target, HigherOrderOperator)


def _replace_complex(graph: fx.Graph, node: fx.Node) -> None:
    re, im = node.args
    for view in [user for user in node.users if user.target is aten.view_as_real.default]:
        for select in [user for user in view.users if _is_part(user)]:
            _replace(graph, select, im if select.args[2] else re)
        if not view.users:
            graph.erase_node(view)
    if node.users and (whole := _pairs_of_both(re, im)) is not None:
        node.replace_all_uses_with(whole)
    elif node.users:
        with graph.inserting_before(node):
            pairs = graph.call_function(aten.stack.default, ([re, im], -1))
        pairs.meta = dict(node.meta)
        _set_value(pairs, torch.stack([re.meta["val"], im.meta["val"]], -1))
        node.replace_all_uses_with(pairs)
    graph.erase_node(node)


def _pairs_of_both(re: fx.Node, im: fx.Node) -> fx.Node | None:
    """x, where re and im are x[.., 0] and x[.., 1] of pairs [.., 2]."""
    if not all(isinstance(part, fx.Node) and part.target is aten.select.int for part in (re, im)):
        return None
    (x, *first), (y, *second) = re.args, im.args
    last = x.meta["val"].dim() - 1
    is_last = x is y and x.meta["val"].shape[-1] == 2 and first[0] in (-1, last) and second[0] in (-1, last)
    return x if is_last and (first[1], second[1]) == (0, 1) else None


def _is_part(node: fx.Node) -> bool:
    """Whether the node is select(view_as_real(z), -1, 0 or 1)."""
    return node.target is aten.select.int and node.args[1] in (-1, node.meta["val"].dim()) and node.args[2] in (0, 1)


def _replace(graph: fx.Graph, node: fx.Node, by: fx.Node) -> None:
    node.replace_all_uses_with(by)
    graph.erase_node(node)


def _set_value(node: fx.Node, value: Any) -> None:
    node.meta["val"] = value
    node.meta.pop("tensor_meta", None)  # the importer would believe it rather than the value
