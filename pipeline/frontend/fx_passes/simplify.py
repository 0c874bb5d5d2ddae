"""Rewrites of the FX graph that the importer needs: one function each, run by `simplify` in order."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from pipeline.frontend.complex_numbers import complex_as_pairs
from pipeline.frontend.float8 import float8_as_bytes
from pipeline.frontend.fx_passes.accumulation import accumulate_in_summands
from pipeline.frontend.fx_passes.empty_tensors import replace_empty_tensors
from pipeline.frontend.fx_passes.known_sizes import known_sizes_as_numbers
from pipeline.frontend.fx_passes.literals import change_literals, literals_as_nodes_in_lists, literals_of, tensor_of
from pipeline.frontend.fx_passes.splats import compute_splats
from pipeline.frontend.numbers import check_numbers_that_select, lower_assertions, lower_numbers
from pipeline.frontend.recurrent.rows import name_rows
from pipeline.frontend.views.ops import collapse_shape, expand_shape
from pipeline.frontend.views.own_views import VIEWS, own_views

aten = torch.ops.aten

_NARROW = (torch.uint8, torch.int8, torch.int16)

#: Which arguments' elements are in the result, of ops that only move them if they have one dtype.
_PROMOTING: dict[Any, Callable[[Sequence[Any]], Sequence[Any]]] = {
    aten.cat.default: lambda args: args[0],
    aten.select_scatter.default: lambda args: args[:2],
    aten.slice_scatter.default: lambda args: args[:2],
    aten.stack.default: lambda args: args[0],
    aten.where.self: lambda args: args[1:],
}

#: What moves elements and computes nothing, so that it is the same in every dtype; and the casts themselves.
_MOVES = {
    aten.alias.default,
    aten.as_strided.default,
    aten.clone.default,
    aten.copy.default,
    aten.diagonal.default,
    aten.embedding.default,
    aten.expand.default,
    aten.flip.default,
    aten.gather.default,
    aten.index.Tensor,
    aten.index_select.default,
    aten.permute.default,
    aten.repeat.default,
    aten.select.int,
    aten.slice.Tensor,
    aten.split_with_sizes.default,
    aten.t.default,
    aten.transpose.int,
    aten.unbind.int,
    aten.view.dtype,
    aten._to_copy.default,
    aten.to.dtype,
    torch.ops.prims.convert_element_type.default,
    torch.ops.prims.view_of.default,
    *VIEWS,
    collapse_shape,
    expand_shape,
}


def attribute(node: fx.Node) -> Any:
    """What a get_attr node stands for."""
    return operator.attrgetter(str(node.target))(node.graph.owning_module)


def simplify(graph: fx.Graph, is_region: bool = False) -> None:
    """Runs every rewrite on `graph` and on the graphs of its branches and loops, which are regions of it."""
    for node in graph.nodes:
        if node.op == "get_attr" and isinstance(inner := attribute(node), fx.GraphModule):
            simplify(inner.graph, is_region=True)
    reserve_names(graph)
    drop_foreign_metadata(graph)
    lower_assertions(graph)
    known_sizes_as_numbers(graph, is_region)
    complex_as_pairs(graph)
    float8_as_bytes(graph, _MOVES | set(_PROMOTING))
    check_numbers_that_select(graph)
    replace_empty_tensors(graph)  # their sizes may be functions of others
    lower_numbers(graph)
    name_operators(graph)
    accumulate_in_summands(graph)
    compute_splats(graph)
    numbers_beside_floats(graph)
    own_views(graph)
    count_dims_from_the_front(graph)
    widen_narrow_integers(graph)
    name_rows(graph)
    literals_as_nodes_in_lists(graph)
    graph.eliminate_dead_code()


def reserve_names(graph: fx.Graph) -> None:
    """Has new nodes be called like none that is there: torch.export renames nodes behind the graph's back."""
    graph._graph_namespace._used_names.update(node.name for node in graph.nodes)


def drop_foreign_metadata(graph: fx.Graph) -> None:
    """Drops what `tensor_meta` says where it isn't of the node's value.

    torch's traces that keep a node's metadata hand it on to all ops that the node is taken apart into, such as a number
    beside a tensor; the importer would believe it rather than the value. Remove when torch replaces `tensor_meta`, too.
    """
    for node in graph.nodes:
        value, said = node.meta.get("val"), node.meta.get("tensor_meta")
        if isinstance(value, torch.Tensor) and not _is_of(value, said):
            node.meta.pop("tensor_meta", None)


def _is_of(value: torch.Tensor, said: Any) -> bool:
    """Whether the metadata of a tensor is that of a value of known sizes."""
    shape = getattr(said, "shape", None)
    if shape is None or not all(isinstance(size, int) for size in (*shape, *value.shape)):
        return False
    return tuple(shape) == tuple(value.shape) and said.dtype == value.dtype


_COMPARISONS = (
    aten.eq.Scalar,
    aten.ne.Scalar,
    aten.lt.Scalar,
    aten.le.Scalar,
    aten.gt.Scalar,
    aten.ge.Scalar,
)
_ARITHMETIC = tuple(
    getattr(getattr(aten, name), overload)
    for name in ("add", "sub", "mul", "div", "rsub")
    for overload in ("Tensor", "Scalar")
)


def numbers_beside_floats(graph: fx.Graph) -> None:
    """lt(x: f32, 0)  →  lt(x, 0.0), and mul(x: f32, -1)  →  mul(x, -1.0).

    Where x is a constant, torch-mlir folds the former to whatever lies in memory, and takes a negative integer for an
    unsigned one. Remove when it folds as torch computes.
    """
    for node in graph.nodes:
        if node.target not in (*_COMPARISONS, *_ARITHMETIC):
            continue
        tensors = [arg for arg in node.args[:2] if isinstance(arg, fx.Node)]
        if all(_is_float_tensor(tensor) for tensor in tensors):
            node.args = (*map(_as_float, node.args[:2]), *node.args[2:])


def _is_float_tensor(node: fx.Node) -> bool:
    value = node.meta["val"]
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _as_float(number: Any) -> Any:
    return float(number) if type(number) in (int, bool) else number


_OTHER_NAMES = {
    aten.__and__.Tensor: aten.bitwise_and.Tensor,
    aten.__or__.Tensor: aten.bitwise_or.Tensor,
    aten.__xor__.Tensor: aten.bitwise_xor.Tensor,
    aten.true_divide.Tensor: aten.div.Tensor,
}


def name_operators(graph: fx.Graph) -> None:
    """__and__(a, b)  →  bitwise_and(a, b), which torch-mlir knows; `&` in a decomposition gives the former.

    torch.compile computes with floats by true_divide.
    """
    for node in graph.nodes:
        node.target = _OTHER_NAMES.get(node.target, node.target)


_SCATTERS = (
    aten.scatter.src,
    aten.scatter.value,
    aten.scatter_add.default,
    aten.scatter_reduce.two,
)


def count_dims_from_the_front(graph: fx.Graph) -> None:
    """scatter(x: [4, 3], -1, ..)  →  scatter(x, 1, ..): torch-mlir writes out of bounds for a negative dimension."""
    for node in graph.nodes:
        if node.op == "call_function" and node.target in _SCATTERS and node.args[1] < 0:
            rank = tensor_of(node.args[0]).dim()
            node.args = (node.args[0], node.args[1] + rank, *node.args[2:])


def widen_narrow_integers(graph: fx.Graph) -> None:
    """add(x: u8, y: u8) -> u8  →  to(add(to(x, i32), to(y, i32)), u8), for u8, i8 and i16 and all that computes.

    Torch-mlir's lowerings take u8 for i8 in most places, and crash on bytes beside a number
    ("for conversion to byte or char type"); its casts are right. Wrap-around is that of the cast back. LLVM narrows
    the arithmetic again where that makes no difference. Remove when torch-mlir lowers bytes right.
    """
    for node in list(graph.nodes):
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload) or _only_moves(node):
            continue
        if any(_is_narrow(value) for value in (node, *node.all_input_nodes, *literals_of(node))):
            _widen(graph, node)


def _only_moves(node: fx.Node) -> bool:
    """Whether a node moves elements and, for those that promote their operands, finds nothing to promote."""
    if node.target not in _PROMOTING:
        return node.target in _MOVES
    operands = _PROMOTING[node.target](node.args)
    return len({tensor_of(operand).dtype for operand in (node, *operands)}) == 1


def _is_narrow(operand: fx.Node | torch.Tensor) -> bool:
    value = operand.meta.get("val") if isinstance(operand, fx.Node) else operand
    return isinstance(value, torch.Tensor) and value.dtype in _NARROW


def _widen(graph: fx.Graph, node: fx.Node) -> None:
    """Computes `node` on operands in int32, and casts its results, whose users take the casts."""
    with graph.inserting_before(node):
        for operand in node.all_input_nodes:
            if _is_narrow(operand):
                node.replace_input_with(operand, _cast(graph, operand, torch.int32, node))
        change_literals(node, lambda literal: literal.int() if _is_narrow(literal) else literal)
    if node.kwargs.get("dtype") in _NARROW:
        node.kwargs = {**node.kwargs, "dtype": torch.int32}
    values = node.meta.get("val")
    if isinstance(values, (tuple, list)):
        _widen_results(graph, node, list(values))
    elif isinstance(values, torch.Tensor) and values.dtype in _NARROW:
        _set_value(node, _in_dtype(values, torch.int32))
        _cast_users(graph, node, values.dtype)


def _widen_results(graph: fx.Graph, node: fx.Node, values: list[Any]) -> None:
    narrow = [isinstance(value, torch.Tensor) and value.dtype in _NARROW for value in values]
    wide = [_in_dtype(one, torch.int32) if is_narrow else one for one, is_narrow in zip(values, narrow, strict=True)]
    _set_value(node, type(node.meta["val"])(wide))
    for getter in list(node.users):
        if getter.target is operator.getitem and narrow[getter.args[1]]:
            _set_value(getter, wide[getter.args[1]])
            _cast_users(graph, getter, values[getter.args[1]].dtype)


def _cast_users(graph: fx.Graph, node: fx.Node, dtype: torch.dtype) -> None:
    users = list(node.users)
    with graph.inserting_after(node):
        is_constant = not node.all_input_nodes or node.target in _FILLS
        source = _unfoldable(graph, node) if is_constant and dtype == torch.uint8 else node
    with graph.inserting_after(source):
        cast = _cast(graph, source, dtype, node)
    for user in users:
        user.replace_input_with(node, cast)


_FILLS = (aten.fill.Scalar, aten.full_like.default, aten.zeros_like.default, aten.ones_like.default)


def _unfoldable(graph: fx.Graph, constant: fx.Node) -> fx.Node:
    """abs(constant & 255), which torch-mlir does not fold: it would fold the cast to uint8 and call the result int8."""
    byte = graph.call_function(aten.bitwise_and.Scalar, (constant, 255))
    with graph.inserting_after(byte):
        magnitude = graph.call_function(aten.abs.default, (byte,))
    for node in (byte, magnitude):
        node.meta = dict(constant.meta)
    return magnitude


def _cast(graph: fx.Graph, value: fx.Node, dtype: torch.dtype, origin: fx.Node) -> fx.Node:
    """value.to(dtype), with the source line of `origin`."""
    cast = graph.call_function(torch.ops.prims.convert_element_type.default, (value, dtype))
    cast.meta = dict(origin.meta)
    _set_value(cast, _in_dtype(value.meta["val"], dtype))
    return cast


def _in_dtype(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A tensor of another dtype and of the same sizes; torch asks how it lies, whose answers are to be no promises."""
    shape_env = getattr(getattr(value, "fake_mode", None), "shape_env", None)
    with contextlib.nullcontext() if shape_env is None else shape_env.suppress_guards():
        return value.to(dtype)


def _set_value(node: fx.Node, value: Any) -> None:
    node.meta["val"] = value
    node.meta.pop("tensor_meta", None)  # the importer would believe it rather than the value
