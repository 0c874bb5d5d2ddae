"""aot_autograd's graphs in the ops that can be lowered: what was not taken apart as they were captured."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import detect_fake_mode
from torch.fx.experimental.proxy_tensor import decompose, make_fx
from torch.fx.traceback import preserve_node_meta
from torch.utils import _pytree as pytree
from torch.utils._sympy.interp import sympy_interp
from torch.utils._sympy.reference import OptimizedPythonReferenceAnalysis

from pipeline.frontend.capture.capture import capturing
from pipeline.frontend.capture.lean_traces import lean_traces
from pipeline.frontend.capture.traces_without_modules import traces_without_modules
from pipeline.frontend.decompositions import decomposition_table
from pipeline.frontend.decompositions.replacements.strided import as_strided
from pipeline.frontend.functionalize.schema_aliases import root, viewed
from pipeline.frontend.functionalize.strides_of_owners import graph_from_owners

aten = torch.ops.aten

#: What asks how a tensor lies in memory.
_LAYOUT_OF_VALUES = (aten.sym_stride.int, aten.sym_storage_offset.default)

#: In the metadata of a node, which copies of graphs keep: it is not taken apart.
_STAYS = "pipeline_stays"


def table_with_strides(random: str) -> dict[Any, Callable[..., Any]]:
    """The decompositions but for that of as_strided: what is a view of an input, the caller's library computes."""
    return {op: function for op, function in decomposition_table(random).items() if op is not aten.as_strided.default}


def has_symbolic_strides(graph: fx.Graph) -> bool:
    """Whether there is an as_strided that looks at a symbolic number: torch-mlir takes no such one."""
    return any(_is_symbolic(node) for node in graph.find_nodes(op="call_function", target=aten.as_strided.default))


def _is_symbolic(call: fx.Node) -> bool:
    sizes = call.args[0].meta["val"].shape
    numbers = pytree.tree_leaves((call.args[1:], call.kwargs))
    return any(isinstance(number, (fx.Node, torch.SymInt)) for number in (*sizes, *numbers))


def keep_views(graph: fx.Graph) -> None:
    """Makes results that the caller's library computes as views values of their own, of which nothing is computed.

    That are as_strided and views of complex numbers in the memory of an input or of another result, and views of such.
    They are not taken apart, as what they consist of would be no views.
    """
    output = graph.output_node()
    results = output.all_input_nodes
    roots = Counter(map(root, results))
    for result in results:
        chain, base = _views(result), root(result)
        stays = any(view.target is aten.as_strided.default for view in chain) or views_complex_numbers(result)
        if not chain or not stays or (base.op != "placeholder" and roots[base] == 1):
            continue
        copies = _copied(graph, chain, output)
        output.replace_input_with(result, copies[-1])
        for copy in copies:
            copy.meta[_STAYS] = True
    graph.eliminate_dead_code()


def views_complex_numbers(value: fx.Node) -> bool:
    """Whether a value lies in the memory of complex numbers."""
    metas = [node.meta.get("val") for node in (root(value), *_views(value))]
    return any(isinstance(meta, torch.Tensor) and meta.is_complex() for meta in metas)


def _copied(graph: fx.Graph, chain: list[fx.Node], place: fx.Node) -> list[fx.Node]:
    """Copies of some nodes, which read each other, in front of another."""
    copies: dict[fx.Node, fx.Node] = {}
    with graph.inserting_before(place):
        for node in chain:
            copies[node] = graph.node_copy(node, lambda read: copies.get(read, read))
    return list(copies.values())


def _views(value: fx.Node) -> list[fx.Node]:
    """The nodes that lead from the value in whose memory another lies to that one, which is the last."""
    chain, step = list[fx.Node](), viewed(value)
    while step is not None:
        chain.append(value)
        value, step = step, viewed(step)
    return chain[::-1]


def decomposed(graph: fx.GraphModule, random: str = "philox") -> fx.GraphModule:
    """A functional graph in the ops that can be lowered, but for what `keep_views` has kept.

    Of graphs with gradients that is done after forward and backward have been parted.
    """
    examples = [node.meta["val"] for node in graph.graph.nodes if node.op == "placeholder"]
    with (
        torch.no_grad(),
        torch._C._DisableAutocast(),
        detect_fake_mode(examples) or contextlib.nullcontext(),
        enable_python_dispatcher(),
        preserve_node_meta(),
        capturing,
        lean_traces(),
        traces_without_modules(),
    ):
        trace = make_fx(
            _Reshaping(graph_from_owners(graph)).run,
            decomposition_table=table_with_strides(random),
            tracing_mode="symbolic",
            _allow_non_fake_inputs=True,
        )
        return trace(*examples)


class _Reshaping(fx.Interpreter):
    """Runs a graph whose values may be laid out in other ways than those it was captured with."""

    def __init__(self, graph: fx.GraphModule):
        super().__init__(graph)
        self._symbols: dict[Any, torch.SymInt] = {}
        self._stays = False

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An argument, whose sizes are what others are computed of."""
        value = super().placeholder(target, args, kwargs)
        sizes = (*value.shape, *value.stride()) if isinstance(value, torch.Tensor) else (value,)
        self._symbols |= {size.node.expr: size for size in sizes if isinstance(size, torch.SymInt)}
        return value

    def run_node(self, n: fx.Node) -> Any:
        """What says how a value lies in memory is as it was captured: backward counts on that."""
        self._stays = _STAYS in n.meta
        return self._of_arguments(n.meta["val"]) if n.target in _LAYOUT_OF_VALUES else super().run_node(n)

    def _of_arguments(self, number: Any) -> Any:
        """A number as this trace computes it: of an expression that nothing else computes, torch knows no node."""
        if not isinstance(number, torch.SymInt) or not number.node.expr.free_symbols <= self._symbols.keys():
            return number
        return sympy_interp(OptimizedPythonReferenceAnalysis, self._symbols, number.node.expr)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """view(x) → reshape(x), which is the same where there is such a view; as_strided is taken apart."""
        if self._stays:
            with decompose({}):
                return super().call_function(target, args, kwargs)
        if target is aten.as_strided.default:
            result = as_strided(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return super().call_function(aten.reshape.default if target is aten.view.default else target, args, kwargs)
