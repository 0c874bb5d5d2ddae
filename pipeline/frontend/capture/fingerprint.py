"""The text of a captured graph: equal for graphs that compile to equal code.

It holds what any later step looks at: nodes with their targets, arguments, types and source lines, the signature, the
types of weights, and the values of constants that are small enough to become literals. Where a graph holds something
whose meaning text cannot carry, such as an operator of another package's, there is no fingerprint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import fx
from torch._ops import HigherOrderOperator, OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from pipeline.frontend.capture.call_parameters import Parameters
from pipeline.frontend.capture.pytree_nodes import tree_of
from pipeline.frontend.fx_passes.source_lines import module_path, source_line
from pipeline.frontend.numbers.guards import guards_of

#: Constants up to this many elements become literals in the IR, where folding sees them.
LITERAL_ELEMENTS = 64

#: Whose operators mean the same in every process with the same version of torch, and of this package.
NAMESPACES = ("aten", "prims", "prim", "pipeline")

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


class _Opaque(Exception):
    """The graph holds something that text cannot carry."""


def exported_fingerprint(exported: ExportedProgram, parameters: Parameters) -> str | None:
    """Of a program as torch.export gives it; None if it has none."""
    try:
        lines = [
            f"default {torch.get_default_dtype()}",
            repr(parameters),
            repr([(str(symbol), str(bounds)) for symbol, bounds in exported.range_constraints.items()]),
            repr((tree_of(exported.call_spec.in_spec), tree_of(exported.call_spec.out_spec))),
            repr([guard.condition for guard in guards_of(exported.graph)]),
            *map(repr, exported.graph_signature.input_specs),
            *map(repr, exported.graph_signature.output_specs),
            *_weights(exported),
            *_module(exported.graph_module),
            *_known_of_symbols(exported.graph_module),
        ]
    except _Opaque:
        return None
    return "\n".join(lines)


def graph_fingerprint(module: fx.GraphModule, weights: Mapping[str, str], mutated: tuple[str, ...]) -> str | None:
    """Of a functional graph, such as aot_autograd's; None if it has none.

    Args:
        module: the graph.
        weights: the names in the model of the placeholders that are weights.
        mutated: the placeholders that are written to.
    """
    digest = graph_digest(module)
    return None if digest is None else called_with(digest, weights, mutated)


def graph_digest(module: fx.GraphModule) -> str | None:
    """Of the graph by itself, in 64 digits; None if it has no fingerprint."""
    try:
        lines = [*_module(module), *_known_of_symbols(module)]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()
    except _Opaque:
        return None


def called_with(digest: str, weights: Mapping[str, str], mutated: tuple[str, ...]) -> str:
    """The fingerprint of a graph with this digest; `weights` and `mutated` as of `graph_fingerprint`."""
    return "\n".join([f"default {torch.get_default_dtype()}", repr(sorted(weights.items())), repr(mutated), digest])


def _weights(exported: ExportedProgram) -> Iterator[str]:
    specs = exported.graph_signature.input_specs
    literal = {spec.target for spec in specs if spec.kind == InputKind.CONSTANT_TENSOR}
    for name, value in (*exported.state_dict.items(), *exported.constants.items()):
        if not isinstance(value, torch.Tensor):
            raise _Opaque
        yield f"weight {name}: {_value(value)}"
        if name in literal and 0 < value.numel() <= LITERAL_ELEMENTS:
            yield f"= {value.detach().contiguous().view(-1).view(torch.uint8).tolist()}"


def _module(module: fx.GraphModule) -> Iterator[str]:
    for name, inner in module.named_modules():
        if not isinstance(inner, fx.GraphModule):
            continue
        yield f"graph {name}"
        for node in inner.graph.nodes:
            if node.op == "get_attr" and not isinstance(getattr(inner, str(node.target), None), fx.GraphModule):
                raise _Opaque  # a tensor inside the graph
            yield _node(node)


def _known_of_symbols(module: fx.GraphModule) -> Iterator[str]:
    """What torch knows of the symbols in sizes: of equal texts, w // 4 may be 1 in one, which later steps find out."""
    graphs = (inner.graph for inner in module.modules() if isinstance(inner, fx.GraphModule))
    values = (node.meta.get("val") for graph in graphs for node in graph.nodes)
    leaves = [leaf for value in values for leaf in pytree.tree_leaves(value)]
    numbers = [n for leaf in leaves for n in (leaf.shape if isinstance(leaf, torch.Tensor) else (leaf,))]
    for environment in {id(n.node.shape_env): n.node.shape_env for n in numbers if isinstance(n, _SYMBOLS)}.values():
        yield f"guards {[str(guard.expr) for guard in environment.guards]}"
        yield f"equal {sorted((str(symbol), str(value)) for symbol, value in environment.replacements.items())}"
        yield f"divisible {sorted(map(str, environment.divisible))}"
        yield f"ranges {sorted((str(symbol), str(bounds)) for symbol, bounds in environment.var_to_range.items())}"


def _node(node: fx.Node) -> str:
    arguments = f"{_argument(node.args)} {_argument(node.kwargs)}"
    place = f"{source_line(node)} {module_path(node)}"
    return f"{node.op} {node.name} {_target(node)} {arguments} {_value(node.meta.get('val'))} {place}"


def _target(node: fx.Node) -> str:
    target = node.target
    if isinstance(target, str):
        return target
    if isinstance(target, OpOverload):
        if target.namespace not in NAMESPACES:
            raise _Opaque
        return str(target)
    if isinstance(target, HigherOrderOperator):
        return f"hop {target.name()}"
    if getattr(target, "__module__", None) in ("_operator", "math", "builtins", "torch.sym_node"):
        return f"{target.__module__}.{target.__qualname__}"
    raise _Opaque


def _argument(value: Any) -> str:
    if isinstance(value, fx.Node):
        return f"%{value.name}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(_argument, value))})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_argument(item)}' for key, item in value.items())}}}"
    if isinstance(value, slice):
        return f"slice{_argument((value.start, value.stop, value.step))}"
    plain = (bool, int, float, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format)
    if value is None or value is Ellipsis or isinstance(value, plain):
        return repr(value)
    raise _Opaque


def _value(value: Any) -> str:
    """The type of what a node gives, as capture knows it."""
    if isinstance(value, torch.Tensor):
        strides = tuple(map(str, value.stride())) if value.layout == torch.strided else None
        return (
            f"{value.dtype}{tuple(map(str, value.shape))}{strides} {value.layout} {value.device} {value.requires_grad}"
        )
    if isinstance(value, _SYMBOLS):
        return f"{type(value).__name__} {value.node.expr}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(_value, value))})"
    return f"{type(value).__name__} {value!r}" if isinstance(value, (bool, int, float, str)) else type(value).__name__
