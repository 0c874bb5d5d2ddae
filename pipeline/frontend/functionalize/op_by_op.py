"""Takes plain programs apart op by op, each op once for the types of its arguments.

`ExportedProgram.run_decompositions` traces a whole program three times. Where no op has regions and nothing is written
to that others may see, what an op is taken apart to depends on its arguments' types alone: it is traced once in a
process, by the same parts of torch, and its graph put in its place from then on. Where sizes are symbolic, once in a
program, whose symbols they are. A stretch of ops that write to parts of tensors or to arguments is taken apart as one.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx
from torch._guards import detect_fake_mode
from torch._higher_order_ops.effects import _get_effect
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.export import ExportedProgram, exported_program
from torch.export.graph_signature import ExportGraphSignature, OutputKind, SymIntArgument, TensorArgument
from torch.utils import _pytree as pytree
from torch.utils._sympy.symbol import SymT, symbol_is_type

from pipeline.frontend.functionalize.fragments import WHOLE, Fragment, FragmentTracer, Table, is_kept
from pipeline.frontend.functionalize.plain_values import (
    NotPlainError,
    has_plain_value,
    tensor_key,
    tensors_of,
    type_key,
)
from pipeline.frontend.functionalize.tensor_memory import (
    announces_sharing,
    holds_tensors,
    is_in_place,
    is_write,
    may_share,
    names_of,
    root_of,
    shares_with,
    writes_alone,
)
from pipeline.frontend.functionalize.written_arguments import WrittenArguments
from pipeline.frontend.functionalize.written_parts import Stretch, stretches

aten = torch.ops.aten

#: Kinds of symbols that no size of an argument is.
_UNBACKED = (SymT.UNBACKED_INT, SymT.UNBACKED_FLOAT)


def decomposed(exported: ExportedProgram, table: Table) -> ExportedProgram | None:
    """What `exported.run_decompositions(table)` gives; None if the program is none to be taken apart op by op."""
    mode = _plain_mode(exported)
    if mode is None:
        return None
    with FragmentTracer(table, mode, bool(exported.range_constraints)) as tracer:
        for of_arguments in (False, True):
            with contextlib.suppress(NotPlainError):
                return _OpByOp(exported, table, mode, tracer, WrittenArguments(exported)).program(of_arguments)
    return None


def _plain_mode(exported: ExportedProgram) -> FakeTensorMode | None:
    """The mode of the program's fake tensors; None if it has elements for sizes, or writes to what it is given.

    Under autocast, what torch makes of an op is not what it is taken apart to alone.
    """
    kinds = {spec.kind for spec in exported.graph_signature.output_specs}
    values = [node.meta.get("val") for node in exported.graph.nodes]
    symbols = set().union(*(expression.free_symbols for expression in exported.range_constraints))
    of_elements = any(symbol_is_type(symbol, _UNBACKED) for symbol in symbols)
    if kinds != {OutputKind.USER_OUTPUT} or of_elements or torch.is_autocast_enabled("cpu"):
        return None
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    mode = detect_fake_mode(tensors)
    weights = (*exported.state_dict.values(), *exported.constants.values())
    plain = all(type(weight) in (torch.Tensor, torch.nn.Parameter) for weight in weights)
    return mode if plain and all(isinstance(value, FakeTensor) for value in tensors) else None


@dataclass(frozen=True)
class _OpByOp:
    """Writes a program's graph anew.

    Attributes:
        written: the arguments that are written to.
        values: what became of each node: a node, or a tuple of such.
        types: a fake tensor of each type.
        sharing: the nodes of ops whose results may lie in the memory of their operands.
        regions: the graphs of the regions that ops run, by the names by which they get them.
        numbers: the nodes that compute sizes, by what they compute.
    """

    exported: ExportedProgram
    table: Table
    mode: FakeTensorMode
    tracer: FragmentTracer
    written: WrittenArguments
    graph: fx.Graph = field(default_factory=fx.Graph)
    values: dict[fx.Node, Any] = field(default_factory=dict)
    types: dict[Any, torch.Tensor] = field(default_factory=dict)
    sharing: set[fx.Node] = field(default_factory=set)
    regions: dict[str, fx.GraphModule] = field(default_factory=dict)
    numbers: dict[Any, fx.Node] = field(default_factory=dict)

    def program(self, of_arguments: bool) -> ExportedProgram:
        """The program in the ops that are not taken apart; it may write to arguments if `of_arguments`."""
        graph = self.exported.graph
        found = stretches(graph, is_write, shares_with, writes_alone, of_arguments=of_arguments)
        starts = {stretch.nodes[0]: stretch for stretch in found}
        inside = {node for stretch in found for node in stretch.nodes}
        for node in self.exported.graph.nodes:
            if node in starts:
                self._rewrite_stretch(starts[node])
            elif node not in inside:
                self._rewrite(node)
        self.graph.eliminate_dead_code()
        if self.graph.find_nodes(op="call_function", target=aten.as_strided.default):
            self._compute_types()
        return self._exported()

    def _compute_types(self) -> None:
        """Gives each node a fake tensor of its own, in the memory that it lies in: `as_strided` looks at that."""
        for node in self.graph.nodes:
            if node.op == "call_function" and holds_tensors(node):
                args, kwargs = fx.map_arg((node.args, node.kwargs), lambda read: read.meta["val"])
                try:
                    with self.mode, torch.no_grad():
                        node.meta["val"] = node.target(*args, **kwargs)
                except Exception as error:
                    raise NotPlainError from error

    def _rewrite(self, node: fx.Node) -> None:
        if node.op != "output" and ("val" not in node.meta or not has_plain_value(node, self.tracer.symbolic)):
            raise NotPlainError
        if node.op == "placeholder":
            self.values[node] = self.graph.node_copy(node)
            self.values[node].name = node.name  # fx calls `input`, a name of Python's, `input_1`
        elif node.op == "output":
            made = self.graph.output((*self.written.results(), *self._mapped(node.args[0])))
            made.meta = dict(node.meta)
        elif node.op != "call_function":
            raise NotPlainError
        elif node.target is operator.getitem:
            self._get_item(node)
        elif node.target in (aten.detach.default, aten.detach_.default):
            self.values[node] = self.values[node.args[0]]
            self.sharing.add(node)
        elif isinstance(node.meta["val"], torch.SymInt) and not _is_product_of_sizes(node):
            self.values[node] = self._number(node, self._mapped)
        elif isinstance(node.target, OpOverload):
            self._call(node, node.target)
        else:
            raise NotPlainError

    def _rewrite_stretch(self, stretch: Stretch) -> None:
        """Puts what a stretch is taken apart to in its place; what others read of it are tensors."""
        nodes = [node for node in stretch.nodes if not self._comes_first(node)]
        inside = set(nodes)
        if not all(_runs_alone(node) and has_plain_value(node, self.tracer.symbolic) for node in nodes):
            raise NotPlainError
        taken = list(dict.fromkeys(read for node in nodes for read in node.all_input_nodes if read not in inside))
        given = [node for node in nodes if any(user not in inside for user in node.users)]
        if not all(isinstance(node.meta["val"], torch.Tensor) for node in given):
            raise NotPlainError
        values = [self._value(node) for node in taken]
        inputs = [self.tracer.like(value.meta["val"]) for value in values]
        arguments = [node for node in taken if node in stretch.arguments]
        fragment = self.tracer.trace_stretch(nodes, taken, given, arguments, inputs)
        if fragment is None:
            raise NotPlainError
        results = self._inline(None, fragment, values)
        self.values.update(zip(given, results[: len(given)], strict=True))
        self.sharing.update(given)
        for argument, result in zip(arguments, results[len(given) :], strict=True):
            if result is not self.values[argument]:
                self.written.write(argument, result)
                self.values[argument] = result

    def _comes_first(self, node: fx.Node) -> bool:
        """Rewrites a node in front of its stretch, if it computes a number of what is known there."""
        is_ahead = "val" in node.meta and isinstance(node.meta["val"], torch.SymInt)
        if not is_ahead or not all(read in self.values for read in node.all_input_nodes):
            return False
        self._rewrite(node)
        return True

    def _get_item(self, node: fx.Node) -> None:
        source = self.values[node.args[0]]
        if isinstance(source, fx.Node):
            self.values[node] = self.graph.node_copy(node, self.values.__getitem__)
            self.values[node].meta["val"] = source.meta["val"][node.args[1]]
        else:
            self.values[node] = source[node.args[1]]

    def _call(self, node: fx.Node, op: OpOverload) -> None:
        if _get_effect(op) is not None:
            raise NotPlainError
        if op._schema.is_mutable:
            op = self._functional(node, op)
        args, kwargs = self._mapped(node.args), self._mapped(node.kwargs)
        if is_kept(op, self.table):
            self.values[node] = self._keep(node, op, args, kwargs)
        else:
            self.values[node] = self._take_apart(node, op, args, kwargs)
        if node.target is not op:  # written in place
            self._write(node)

    def _number(self, node: fx.Node, mapped: Callable[[Any], Any]) -> fx.Node:
        """The node that computes the size that a node of another graph computes: a new one if there is none yet."""
        expression = node.meta["val"].node.expr
        if expression not in self.numbers:
            found = self._size_of_argument(expression)
            if found is None:
                found = self.graph.node_copy(node, mapped)
            self.numbers[expression] = found
        return self.numbers[expression]

    def _size_of_argument(self, expression: Any) -> fx.Node | None:
        """A node that computes a size, if it is one of an argument of the program's."""
        for node in self.graph.find_nodes(op="placeholder"):
            for dim, size in enumerate(getattr(node.meta["val"], "shape", ())):
                if isinstance(size, torch.SymInt) and size.node.expr == expression:
                    made = self.graph.call_function(aten.sym_size.int, (node, dim))
                    made.meta["val"] = size
                    return made
        return None

    def _functional(self, node: fx.Node, op: OpOverload) -> OpOverload:
        """The op that computes what an op like `add_` writes, where only this program's ops see that it does."""
        name, _, overload = op.name().removeprefix("aten::").partition(".")
        functional = getattr(getattr(aten, name.removesuffix("_"), None), overload or "default", None)
        if not is_in_place(op) or functional is None or functional._schema.is_mutable:
            raise NotPlainError
        if not self._has_own_memory(root_of(node)):
            raise NotPlainError
        return functional

    def _has_own_memory(self, root: fx.Node) -> bool:
        """Whether an op has computed a tensor, and up to now nothing else lies in its memory."""
        if root.op != "call_function" or not isinstance(root.target, OpOverload) or root in self.sharing:
            return False
        return not any(user in self.sharing for name in names_of(root) for user in name.users)

    def _write(self, node: fx.Node) -> None:
        """Lets what was written to be what was computed, from here on."""
        root = root_of(node)
        before, after = self.values[root], self.values[node]
        if not isinstance(after, fx.Node) or type_key(before.meta["val"]) != type_key(after.meta["val"]):
            raise NotPlainError
        self.values.update((name, after) for name in names_of(root) if name in self.values)

    def _keep(self, node: fx.Node, op: OpOverload, args: Any, kwargs: Any) -> fx.Node:
        given = _by_position(op, args, kwargs)
        made = self.graph.create_node("call_function", op, *given, name=op.overloadpacket.__name__)
        made.meta = dict(node.meta)
        if may_share(op):
            self.sharing.add(node)
        types = [type_key(value) for value in tensors_of(node)]
        if node.target is not op or types != [type_key(value) for value in tensors_of(made)]:
            values = fx.map_arg((args, kwargs), lambda read: read.meta["val"])
            try:
                with self.mode, torch.no_grad():
                    made.meta["val"] = op(*values[0], **values[1])
            except Exception as error:  # a view that what it is one of does not allow any more
                raise NotPlainError from error
        return made

    def _take_apart(self, node: fx.Node, op: OpOverload, args: Any, kwargs: Any) -> Any:
        fragment = self.tracer.fragment(op, args, kwargs)
        if fragment is None:
            raise NotPlainError
        if fragment == WHOLE:
            return self._keep(node, op, args, kwargs)
        if fragment.shares or announces_sharing(op):  # some views are taken apart to copies
            self.sharing.add(node)
        leaves = pytree.tree_leaves((args, kwargs))
        return self._inline(node, fragment, [leaf for leaf in leaves if isinstance(leaf, fx.Node)])

    def _inline(self, node: fx.Node | None, fragment: Fragment, inputs: Sequence[fx.Node]) -> Any:
        """Puts a fragment in the place of a node, whose origin it has; of a stretch each node has its own."""
        given = iter(inputs)
        inside: dict[fx.Node, fx.Node] = {}
        for own in fragment.body.graph.nodes:
            if own.op == "placeholder":
                inside[own] = next(given)
            elif own.op == "get_attr":
                name = f"region_{len(self.regions)}"
                self.regions[name] = fragment.body.inside[own.target].module()
                inside[own] = self.graph.create_node("get_attr", name)
            elif isinstance(own.meta.get("val"), torch.SymInt):
                inside[own] = self._number(own, inside.__getitem__)
            elif own.op == "output":
                return pytree.tree_unflatten(fx.map_arg(own.args[0], inside.__getitem__), fragment.spec)
            else:
                made = self.graph.node_copy(own, inside.__getitem__)
                made.meta = {
                    **(node or own).meta,
                    "val": pytree.tree_map_only(torch.Tensor, self._typical, own.meta["val"]),
                }
                inside[own] = made
        raise AssertionError("a graph without an output")

    def _typical(self, value: torch.Tensor) -> torch.Tensor:
        """The fake tensor of its type that stands for all."""
        key = tensor_key(value)
        if key not in self.types:
            self.types[key] = self.tracer.like(value)
        return self.types[key]

    def _mapped(self, value: Any) -> Any:
        return fx.map_arg(value, self._value)

    def _value(self, node: fx.Node) -> fx.Node:
        value = self.values[node]
        if not isinstance(value, fx.Node):
            raise NotPlainError
        return value

    def _exported(self) -> ExportedProgram:
        old = self.exported
        names = {node.name: value.name for node, value in self.values.items() if isinstance(value, fx.Node)}
        outputs = [
            replace(spec, arg=replace(spec.arg, name=names[spec.arg.name]))
            if isinstance(spec.arg, (TensorArgument, SymIntArgument))
            else spec
            for spec in old.graph_signature.output_specs
        ]
        module = fx.GraphModule(self.regions, self.graph)
        module.meta = dict(old.graph_module.meta)
        ranges = old.range_constraints  # without the symbols that have turned out to be numbers
        ranges = exported_program._get_updated_range_constraints(module, ranges) if ranges else ranges
        return ExportedProgram(
            root=module,
            graph=self.graph,
            graph_signature=ExportGraphSignature(
                list(old.graph_signature.input_specs), [*self.written.output_specs(), *outputs]
            ),
            state_dict=old.state_dict,
            range_constraints=ranges,
            module_call_graph=old.module_call_graph,
            example_inputs=old.example_inputs,
            constants=old.constants,
        )


def _runs_alone(node: fx.Node) -> bool:
    """Whether a node is an op that does nothing but what its results say, or to what it is given."""
    if node.op != "call_function" or "val" not in node.meta:
        return False
    return node.target is operator.getitem or isinstance(node.target, OpOverload) and _get_effect(node.target) is None


def _is_product_of_sizes(node: fx.Node) -> bool:
    """Whether a node computes a number of elements or the like, which torch takes apart to sizes."""
    return isinstance(node.target, OpOverload) and node.target is not aten.sym_size.int


def _by_position(
    op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments as torch passes them on: by name only those that cannot be given by position."""
    named = dict(kwargs)
    positional = list(args)
    takes = [argument for argument in op._schema.arguments if not argument.kwarg_only]
    for argument in takes[len(args) :]:
        if not named.keys() & {later.name for later in takes[len(positional) :]}:
            break
        positional.append(named.pop(argument.name, argument.default_value))
    return tuple(positional), named
