"""What ops are taken apart to: graphs of ops that are left whole, traced by the parts of torch that trace programs.

A fragment depends on an op and its arguments' types alone, so that it can be put in the place of all such ops.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._functorch._aot_autograd.functional_utils import has_data_mutation
from torch._higher_order_ops.effects import _get_effect
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode, dispatch_functionalize
from torch.export import exported_program
from torch.export._trace import _ignore_backend_decomps
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from pipeline.frontend.capture.traces_without_modules import traces_without_modules
from pipeline.frontend.functionalize.plain_values import NotPlainError, has_plain_value, is_symbolic, leaf_key, type_key
from pipeline.frontend.functionalize.tensor_memory import may_share

aten = torch.ops.aten

#: Ops whose results are tensors that lie in the memory of others, which torch leaves as they are.
_VIEWS = frozenset(
    {
        aten.as_strided.default,
        aten.diagonal.default,
        aten.expand.default,
        aten.permute.default,
        aten.select.int,
        aten.slice.Tensor,
        aten.split.Tensor,
        aten.split_with_sizes.default,
        aten.squeeze.default,
        aten.squeeze.dim,
        aten.squeeze.dims,
        aten.t.default,
        aten.transpose.int,
        aten.unbind.int,
        aten.unfold.default,
        aten.unsqueeze.default,
        aten.view.default,
    }
)

#: Ops with regions that others are taken apart to: recurrent layers are loops.
_LOOPS = frozenset({torch.ops.higher_order.while_loop})

#: In the place of a fragment: the op is left whole.
Whole: TypeAlias = Literal["whole"]
WHOLE: Whole = "whole"

#: Ops that torch puts others in the place of when it functionalizes a graph.
_FUNCTIONALIZED = frozenset({aten.lift_fresh.default, aten.lift_fresh_copy.default})

#: What tells of a tensor what it is like, and computes nothing.
_QUESTIONS = frozenset(
    {torch.ops.prim.device.default, *(getattr(aten.result_type, name) for name in aten.result_type.overloads())}
)

Table = Mapping[Any, Callable[..., Any]]

#: What ops are taken apart to, by the table, the op and its arguments' types; None for what is not plain.
_fragments: dict[Any, Fragment | Whole | None] = {}

#: Of more, all are forgotten.
_MOST_FRAGMENTS = 10_000

#: A table, and what `_split` makes of it.
_splits: dict[int, tuple[Any, ...]] = {}


@dataclass(frozen=True)
class TracedGraph:
    """The graph of an op with regions' fragment, or of a region.

    Graphs are kept without the modules that own them: each has a class, and torch's tracing takes longer with each one.

    Attributes:
        graph: the graph.
        inside: the graphs of the regions that its ops run, by the names by which it gets them.
    """

    graph: fx.Graph
    inside: Mapping[str, TracedGraph]

    @classmethod
    def of(cls, module: fx.GraphModule) -> TracedGraph:
        """Takes a module apart."""
        graph = module.graph
        graph.owning_module = None
        return cls(graph, {name: cls.of(inner) for name, inner in module.named_children()})

    def module(self) -> fx.GraphModule:
        """The graph in a module of its own."""
        return fx.GraphModule({name: inner.module() for name, inner in self.inside.items()}, copy.deepcopy(self.graph))

    def is_plain(self, symbolic: bool) -> bool:
        """Whether it can stand in any program; with `symbolic`, in one with the same symbols. Loops count in some."""
        symbolic = symbolic or bool(self.inside)
        plain = all(_is_plain(node, symbolic) for node in self.graph.nodes)
        return plain and all(region.is_plain(True) for region in self.inside.values())


@dataclass(frozen=True)
class Fragment:
    """What an op is taken apart to.

    Attributes:
        body: takes the tensors among the op's arguments, in their order.
        spec: the structure of the op's results, of which the graph gives the leaves.
        shares: whether results may lie in the memory of what the graph takes.
    """

    body: TracedGraph
    spec: pytree.TreeSpec
    shares: bool

    @property
    def counts(self) -> bool:
        """Whether it has loops: their counters are symbols of its own."""
        return bool(self.body.inside)


@dataclass
class FragmentTracer:
    """Finds out what ops are taken apart to, in the state in which `run_decompositions` traces.

    Attributes:
        mode: that of the fake tensors of a program.
        symbolic: whether some of its sizes are symbols.
        known: what is known for arguments of symbolic sizes, as `_fragments`.
        state: what tracing needs, from the first trace on.
    """

    table: Table
    mode: FakeTensorMode
    symbolic: bool
    known: dict[Any, Fragment | Whole | None] = field(default_factory=dict)
    state: contextlib.ExitStack | None = None

    def __enter__(self) -> FragmentTracer:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.state is not None:
            self.state.close()

    def fragment(self, op: OpOverload, args: Any, kwargs: Any) -> Fragment | Whole | None:
        """What an op is taken apart to, for nodes and what else its arguments are; None if that is not plain."""
        leaves, spec = pytree.tree_flatten((args, kwargs))
        key = (id(self.table), op, spec, torch.get_default_dtype(), *map(leaf_key, leaves))
        nodes = [leaf for leaf in leaves if isinstance(leaf, fx.Node)]
        known = self.known if any(map(is_symbolic, nodes)) else _fragments
        if key in known:
            return known[key]
        fragment = self._found(op, leaves, spec)
        if len(known) >= _MOST_FRAGMENTS:
            known.clear()
        if not isinstance(fragment, Fragment) or not fragment.counts:
            known[key] = fragment
        return fragment

    def _found(self, op: OpOverload, leaves: Sequence[Any], spec: pytree.TreeSpec) -> Fragment | Whole | None:
        values = [leaf.meta["val"] if isinstance(leaf, fx.Node) else leaf for leaf in leaves]
        if _is_kept_for(op, self.table, *pytree.tree_unflatten(values, spec)):
            return WHOLE
        nodes = [leaf for leaf in leaves if isinstance(leaf, fx.Node)]
        return self.trace(op, leaves, spec, [self.like(read.meta["val"]) for read in nodes])

    def like(self, value: Any) -> Any:
        """A fake tensor of its own of the same type; a size is as it is."""
        if not isinstance(value, torch.Tensor):
            return value
        with self.mode:
            made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
        return made.requires_grad_() if value.requires_grad else made

    def trace(
        self, op: OpOverload, leaves: Sequence[Any], spec: pytree.TreeSpec, inputs: Sequence[Any]
    ) -> Fragment | None:
        """What an op is taken apart to for tensors and sizes like `inputs` and the other leaves of its arguments."""
        structure: list[pytree.TreeSpec] = []

        def run(*values: Any) -> list[Any]:
            given = iter(values)
            flat = [next(given) if isinstance(leaf, fx.Node) else leaf for leaf in leaves]
            args, kwargs = pytree.tree_unflatten(flat, spec)
            results, result_spec = pytree.tree_flatten(op(*args, **kwargs))
            structure.append(result_spec)
            return results

        body = self._traced(run, inputs)
        _drop_checks_of_types(body.graph)
        body.graph.eliminate_dead_code()
        return Fragment(body, structure[-1], _shares(body.graph)) if body.is_plain(self.symbolic) else None

    def trace_stretch(
        self,
        stretch: Sequence[fx.Node],
        taken: Sequence[fx.Node],
        given: Sequence[fx.Node],
        arguments: Sequence[fx.Node],
        inputs: Sequence[Any],
    ) -> Fragment | None:
        """What ops become that take the values of some nodes, which are like `inputs`, and give those of others.

        Behind these it gives what `arguments`, of the nodes that are taken, have become.
        """

        def run(*values: Any) -> list[Any]:
            known = dict(zip(taken, values, strict=True))
            known.update((argument, known[argument].clone()) for argument in arguments)
            with fx_traceback.preserve_node_meta():
                for node in stretch:
                    with fx_traceback.set_current_meta(node):
                        args, kwargs = fx.map_arg((node.args, node.kwargs), known.__getitem__)
                        known[node] = node.target(*args, **kwargs)
            return [known[node] for node in (*given, *arguments)]

        body = self._traced(run, inputs)
        places = [number for number, node in enumerate(taken) if node in arguments]
        _drop_copies([node for number, node in enumerate(body.graph.find_nodes(op="placeholder")) if number in places])
        _drop_writes_to_all(body.graph)
        _drop_checks_of_types(body.graph)
        body.graph.eliminate_dead_code()
        spec = pytree.tree_flatten([0] * (len(given) + len(arguments)))[1]
        return Fragment(body, spec, True) if body.is_plain(self.symbolic) else None

    def _traced(self, run: Callable[..., list[Any]], inputs: Sequence[Any]) -> TracedGraph:
        """The graph of what is run, in ops that are not taken apart."""
        composite, others = _split(self.table)
        if self.state is None:
            self.state = contextlib.ExitStack()
            self.state.enter_context(self.mode)
            self.state.enter_context(exported_program._override_composite_implicit_decomp(composite))
            self.state.enter_context(_ignore_backend_decomps())
            self.state.enter_context(torch.no_grad())
            self.state.enter_context(enable_python_dispatcher())
            self.state.enter_context(traces_without_modules())

        def checked(*values: Any) -> list[Any]:
            results = run(*values)
            if any(isinstance(value, FunctionalTensor) and has_data_mutation(value) for value in values):
                raise NotPlainError  # as norms do with their statistics, unannounced
            return results

        functional = dispatch_functionalize(checked, FunctionalTensorMode(export=True))
        try:
            module = make_fx(functional, decomposition_table=others)(*inputs)
        except Exception as error:  # torch raises many types, and says of which op where it traces a whole program
            raise NotPlainError from error
        return TracedGraph.of(module)


def _split(table: Table) -> tuple[Any, Any]:
    """The composite ops of a table with all those that are kept whole, and the table's other ops."""
    if id(table) not in _splits:
        _splits[id(table)] = (table, *exported_program._split_decomp_table_to_cia_and_python_decomp(dict(table)))
    return _splits[id(table)][1:]


def is_kept(op: OpOverload, table: Table) -> bool:
    """Whether an op that writes nothing is one of those that torch does not take apart."""
    return op not in table and _may_be_kept(op)


def _is_kept_for(op: OpOverload, table: Table, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether it is one for these arguments, fake tensors and sizes: the table's rule for it stands aside at once.

    Most rules of a table are for some dtypes only.
    """
    if op not in table or op in _FUNCTIONALIZED or not _may_be_kept(op):
        return False
    try:
        with torch.no_grad(), _NothingRuns():
            return table[op](*args, **kwargs) is NotImplemented
    except Exception:  # an op has run, or the rule raises what the trace will raise, too
        return False


class _NothingRuns(TorchDispatchMode):
    """Raises an exception when an op is called that computes something."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _QUESTIONS:
            return func(*args, **kwargs or {})
        raise NotPlainError


@functools.cache
def _may_be_kept(op: OpOverload) -> bool:
    """Whether torch leaves an op whole that a table has no rule for."""
    announces = any(argument.alias_info is not None for argument in op._schema.arguments)
    composite = op.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd)
    whole = not composite or exported_program._is_preservable_cia_op(op)
    return whole and (not announces or op in _VIEWS)


def _drop_copies(taken: Sequence[fx.Node]) -> None:
    """Lets a graph, which writes to nothing, read what it takes in place of the copy that each has there."""
    for node in taken:
        copy_of_it = next((user for user in node.users if user.target is aten.clone.default), None)
        if copy_of_it is None:  # copies of complex tensors are those of their parts
            raise NotPlainError
        copy_of_it.replace_all_uses_with(node)
        copy_of_it.graph.erase_node(copy_of_it)


def _drop_checks_of_types(graph: fx.Graph) -> None:
    """Leaves out what checks types: those of what the graph takes, which are known, say all others."""
    for node in graph.find_nodes(op="call_function", target=aten._assert_tensor_metadata.default):
        graph.erase_node(node)


def _drop_writes_to_all(graph: fx.Graph) -> None:
    """Lets a tensor that is written to as a whole, by one of its type that nothing else sees, be that one."""
    seen = set(graph.find_nodes(op="output")[0].all_input_nodes)
    for node in graph.find_nodes(op="call_function", target=aten.copy.default):
        into, value = node.args[:2]
        is_own = value.op == "call_function" and value not in seen
        if is_own and into.target not in _VIEWS and type_key(into.meta["val"]) == type_key(value.meta["val"]):
            node.replace_all_uses_with(value)
            seen.add(value)  # it may be one result only: results that are one node are one tensor to callers


def _shares(graph: fx.Graph) -> bool:
    """Whether a result of a graph may lie in the memory of what the graph takes."""
    nodes = list(graph.find_nodes(op="output")[0].all_input_nodes)
    for node in nodes:
        if node.op == "placeholder":
            return True
        if not isinstance(node.target, OpOverload) or may_share(node.target):  # a loop may hand on what it is given
            nodes += [read for read in node.all_input_nodes if read.op != "get_attr"]
    return False


def _is_plain(node: fx.Node, symbolic: bool) -> bool:
    """Whether a node of what an op is taken apart to can stand in any program; with `symbolic`, as for a fragment."""
    if node.op in ("placeholder", "output", "get_attr"):
        return True
    op = node.target
    if node.op != "call_function" or "val" not in node.meta or not has_plain_value(node, symbolic):
        return False
    if op is operator.getitem or op in _LOOPS or symbolic and not isinstance(node.meta["val"], torch.Tensor):
        return True
    return isinstance(op, OpOverload) and not op._schema.is_mutable and _get_effect(op) is None
