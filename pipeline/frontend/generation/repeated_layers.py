"""Equal layers are traced once: the others are copies in the functional graph.

While torch traces a model, the first of some equal layers stands between two ops, `layer_begins` and `layer_ends`; each
of the others, if it is called with arguments of the same types, is one op, `layer_again`. When the graph is functional,
what is between the two ops of the first is put in the place of each of these, with weights, and keys and values of the
cache, of that layer.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind, OutputSpec, TensorArgument
from torch.utils import _pytree as pytree

from pipeline.frontend.functionalize.plain_values import tensor_key
from pipeline.frontend.generation.equal_layers import EqualLayer, numbered
from pipeline.frontend.generation.size_tensors import is_known, known_numbers
from pipeline.frontend.generation.told_modules import PLAIN

_numbers = itertools.count()


def _new(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device) for x in tensors]


@torch.library.custom_op("pipeline::layer_begins", mutates_args=())
def _layer_begins(taken: Sequence[torch.Tensor], traced: int) -> list[torch.Tensor]:
    return [x.clone() for x in taken]


@_layer_begins.register_fake
def _(taken: Sequence[torch.Tensor], traced: int) -> list[torch.Tensor]:
    return _new(taken)


@torch.library.custom_op("pipeline::layer_ends", mutates_args=())
def _layer_ends(given: Sequence[torch.Tensor], traced: int) -> list[torch.Tensor]:
    return [x.clone() for x in given]


@_layer_ends.register_fake
def _(given: Sequence[torch.Tensor], traced: int) -> list[torch.Tensor]:
    return _new(given)


@torch.library.custom_op("pipeline::layer_again", mutates_args=())
def _layer_again(taken: Sequence[torch.Tensor], traced: int, layer: int) -> list[torch.Tensor]:
    raise NotImplementedError  # it is in graphs alone


@_layer_again.register_fake
def _(taken: Sequence[torch.Tensor], traced: int, layer: int) -> list[torch.Tensor]:
    return _new(_traced[traced].given)


_BEGINS, _ENDS, _AGAIN = (
    getattr(torch.ops.pipeline, name).default for name in ("layer_begins", "layer_ends", "layer_again")
)


class CannotRepeatError(Exception):
    """What a layer does is not all in its part of the graph, or not what another does."""


@dataclass(frozen=True)
class _Traced:
    """A layer that is traced.

    Attributes:
        number: of its ops.
        layer: its place among all.
        structure: of its results, of which `others` are the leaves that it does not compute.
        given: the tensors that it computes.
        kept: what its arguments are told by.
    """

    number: int
    layer: int
    structure: pytree.TreeSpec
    others: Sequence[Any]
    given: Sequence[torch.Tensor]
    kept: Sequence[Any]

    def results(self, taken: Sequence[torch.Tensor], computed: Sequence[torch.Tensor]) -> Any:
        """What the layer returns of these arguments, of which it computes some."""
        given = iter(computed)
        leaves = [
            next(given) if _is_hole(leaf) else taken[leaf.place] if isinstance(leaf, _Taken) else leaf
            for leaf in self.others
        ]
        return pytree.tree_unflatten(leaves, self.structure)


#: What is traced, by its number, as long as somebody has it.
_traced: weakref.WeakValueDictionary[int, _Traced] = weakref.WeakValueDictionary()

#: Stands for a tensor among other values.
_HOLE = object()


@dataclass(frozen=True)
class _Taken:
    """Stands for a tensor that a layer gives back as it is: by its place among those that it was given."""

    place: int


def _is_hole(value: Any) -> bool:
    return value is _HOLE


@dataclass(frozen=True)
class RepeatedLayers:
    """The layers of an entry, and what has been traced of them.

    Attributes:
        layers: those that have equals.
        cache: the names of the buffers of the cache that a layer of each number has.
        known: what was traced last, by what calls have in common.
        numbered: all that was traced, by number: torch.export may begin anew.
    """

    layers: Sequence[EqualLayer]
    cache: Mapping[int, Sequence[str]]
    known: dict[Any, _Traced] = field(default_factory=dict)
    numbered: dict[int, _Traced] = field(default_factory=dict)

    @contextlib.contextmanager
    def traced(self) -> Iterator[None]:
        """Has layers leave these ops meanwhile."""
        with numbered(self.layers):
            for place, layer in enumerate(self.layers):
                layer.module.__dict__["forward"] = functools.partial(self._forward, place, layer.module.forward)
            try:
                yield
            finally:
                for layer in self.layers:
                    del layer.module.__dict__["forward"]

    def _forward(self, place: int, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        leaves, structure = pytree.tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if _is_traced(leaf)]
        key = (self.layers[place].kind, structure, *_keys(leaves))
        known = self.known.get(key)
        if known is None or known.layer == place:
            number = next(_numbers)
            inside = _BEGINS(tensors, number)
            given = iter(inside)
            args, kwargs = pytree.tree_unflatten([next(given) if _is_traced(x) else x for x in leaves], structure)
            results, result_structure = pytree.tree_flatten(forward(*args, **kwargs))
            places = {id(tensor): _Taken(at) for at, tensor in enumerate(inside)}
            others = [places.get(id(leaf), _HOLE) if _is_traced(leaf) else leaf for leaf in results]
            computed = [leaf for leaf, other in zip(results, others, strict=True) if _is_hole(other)]
            if any(x._version for x in inside) or _share_memory(inside, computed):
                raise CannotRepeatError("a layer writes to what it is given, or gives a view of it back")
            known = _Traced(number, place, result_structure, others, computed, leaves)
            self.known[key] = self.numbered[number] = _traced[number] = known
            return known.results(tensors, _ENDS(computed, number))
        return known.results(tensors, _AGAIN(tensors, known.number, place))

    def expanded(self, exported: ExportedProgram) -> ExportedProgram:
        """The functional program with the ops of all layers.

        Raises:
            CannotRepeatError: a value that a layer leaves is not computed between its two ops.
        """
        found = [exported.graph.find_nodes(op="call_function", target=op) for op in (_BEGINS, _AGAIN)]
        if not any(found):
            return exported
        return _Expansion(self, exported).program()

    def names(self, layer: int) -> list[str]:
        """What a layer's weights, and keys and values, are called in the program."""
        own = self.layers[layer]
        cached = self.cache.get(own.number, ()) if own.numbers else ()  # without its number it finds nothing there
        return [*(f"{own.prefix}{name}" for name, _ in own.tensors()), *cached]


def _is_traced(value: Any) -> bool:
    """Whether a value is a tensor that is computed, none whose elements are known."""
    return isinstance(value, torch.Tensor) and not is_known(value)


def _keys(leaves: Sequence[Any]) -> Iterator[Any]:
    """What calls have in common where a layer does the same: types, which tensors are one, numbers and objects."""
    first: dict[int, int] = {}
    for place, leaf in enumerate(leaves):
        if is_known(leaf):
            yield type(leaf), repr(known_numbers(leaf))
        elif isinstance(leaf, (torch.Tensor, torch.SymInt)):
            yield tensor_key(leaf), first.setdefault(id(leaf), place)
        else:
            yield type(leaf), repr(leaf) if isinstance(leaf, PLAIN) else id(leaf)


def _share_memory(some: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    memory = {tensor.untyped_storage()._cdata for tensor in some}
    return any(tensor.untyped_storage()._cdata in memory for tensor in others)


class _Expansion:
    """Puts layers in the place of ops that stand for them, in a program's graph."""

    def __init__(self, layers: RepeatedLayers, exported: ExportedProgram):
        self._layers, self._exported, self._graph = layers, exported, exported.graph
        self._placed = {spec.target: spec.arg.name for spec in exported.graph_signature.input_specs if spec.target}
        self._nodes = {node.name: node for node in self._graph.find_nodes(op="placeholder")}
        self._written: dict[str, fx.Node] = {}

    def program(self) -> ExportedProgram:
        """See `RepeatedLayers.expanded`."""
        traced = self._layers.numbered
        begins = {node.args[1]: node for node in self._ops(_BEGINS)}
        ends = {node.args[1]: node for node in self._ops(_ENDS)}
        bodies = {number: _between(begins[number], ends[number]) for number in begins}
        signature = self._exported.graph_signature
        mutations = [spec for spec in signature.output_specs if spec.kind == OutputKind.BUFFER_MUTATION]
        places = {own.name: (number, own) for number, body in bodies.items() for own in body}
        written = {spec.target: places.get(spec.arg.name, (None, None)) for spec in mutations}
        for node in self._ops(_AGAIN):
            number, layer = node.args[1:]
            if number not in bodies:
                raise CannotRepeatError("the layer that is traced is not in the graph")
            renamed = dict(zip(self._layers.names(traced[number].layer), self._layers.names(layer), strict=True))
            copied = self._copied(begins[number], bodies[number], node, renamed)
            for own in copied.keys() & set(bodies[number]):
                self._move(copied[own], self._layers.layers[traced[number].layer], self._layers.layers[layer])
            _replace_results(node, [copied.get(value, value) for value in ends[number].args[0]])
            for spec in mutations:
                if spec.target not in renamed:
                    continue
                writer, value = written[spec.target]
                if writer is None:
                    raise CannotRepeatError("the cache is written to elsewhere")
                if writer == number:  # or it is a layer of the same number that has nothing in the cache
                    self._written[renamed[spec.target]] = copied[value]
        for node in (*ends.values(), *begins.values()):
            _replace_results(node, node.args[0])
        return self._with_written()

    def _ops(self, op: Any) -> list[fx.Node]:
        return list(self._graph.find_nodes(op="call_function", target=op))

    def _copied(
        self, begin: fx.Node, body: Sequence[fx.Node], node: fx.Node, renamed: Mapping[str, str]
    ) -> dict[fx.Node, fx.Node]:
        """Copies a body in front of a node for other weights; gives the copy of each node that is not the same."""
        copied = {
            self._nodes[self._placed[name]]: self._nodes[self._placed[other]]
            for name, other in renamed.items()
            if name in self._placed
        }
        for item in begin.users:
            own, other = begin.args[0][item.args[1]], node.args[0][item.args[1]]
            if own is not other:
                copied[item] = other
        with self._graph.inserting_before(node):
            for own in body:
                if not isinstance(own.meta.get("val"), torch.SymInt) and _changes(own, copied):
                    copied[own] = self._graph.node_copy(own, lambda read: copied.get(read, read))
        return copied

    @staticmethod
    def _move(node: fx.Node, before: EqualLayer, after: EqualLayer) -> None:
        """Has a node be one of another layer's modules."""
        stack = node.meta.get("nn_module_stack", {}).items()
        node.meta["nn_module_stack"] = {
            key.removesuffix(path) + moved: (moved, kind)
            for key, (path, kind) in stack
            for moved in [f"{path}.".replace(before.prefix, after.prefix, 1)[:-1]]
        }

    def _with_written(self) -> ExportedProgram:
        """The program, which gives what the copies have written, too."""
        old = self._exported
        (output,) = self._graph.find_nodes(op="output")
        outputs = list(zip(old.graph_signature.output_specs, output.args[0], strict=True))
        outputs += [
            (OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(value.name), target), value)
            for target, value in self._written.items()
        ]
        order = {spec.target: place for place, spec in enumerate(old.graph_signature.input_specs)}
        last = len(order)
        outputs.sort(key=lambda one: order[one[0].target] if one[0].kind == OutputKind.BUFFER_MUTATION else last)
        output.args = (tuple(value for _, value in outputs),)
        return ExportedProgram(
            root=old.graph_module,
            graph=self._graph,
            graph_signature=replace(old.graph_signature, output_specs=[spec for spec, _ in outputs]),
            state_dict=old.state_dict,
            range_constraints=old.range_constraints,
            module_call_graph=old.module_call_graph,
            example_inputs=old.example_inputs,
            constants=old.constants,
        )


def _between(begin: fx.Node, end: fx.Node) -> list[fx.Node]:
    """The nodes between two, but for the results of the first."""
    found, node = [], begin.next
    while node is not end:
        if node not in begin.users:
            found.append(node)
        node = node.next
    return found


def _changes(node: fx.Node, copied: Mapping[fx.Node, fx.Node]) -> bool:
    """Whether a node computes something else in another layer."""
    is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
    return is_random or any(read in copied for read in node.all_input_nodes)


def _replace_results(node: fx.Node, values: Sequence[fx.Node]) -> None:
    """Lets the results of a node be these values, and erases it."""
    for item in list(node.users):
        item.replace_all_uses_with(values[item.args[1]])
        item.graph.erase_node(item)
    node.graph.erase_node(node)
