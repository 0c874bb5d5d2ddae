"""Whether code alone can do what a graph does, without aot_autograd's runtime around it, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import fx
from torch._functorch._aot_autograd.schemas import (
    InputAliasInfo,
    OutputAliasInfo,
    OutputType,
    PlainTensorMeta,
)

from pipeline.frontend.dynamo.capture import Capture
from pipeline.frontend.functionalize.schema_aliases import viewed

_OWN = (OutputType.non_alias, OutputType.unsafe_view_alias, OutputType.custom_function_view)


class NotDirectError(Exception):
    """Says what code alone cannot do."""


@dataclass(frozen=True)
class DirectForm:
    """A graph as one call of code.

    Attributes:
        outputs: the values that it returns.
        mutated: the number and the new value of each input that it writes to.
        own: the numbers of the outputs that lie in no input's memory.
        detached: the numbers of those that carry no gradients, and lie in the memory of an input that does.
    """

    outputs: tuple[Any, ...]
    mutated: tuple[tuple[int, fx.Node], ...]
    own: frozenset[int]
    detached: frozenset[int]


def direct_form(capture: Capture) -> DirectForm:
    """The form of a graph; raises `NotDirectError` if it has none."""
    _check(capture.trains, "its results carry gradients")
    facts = capture.facts
    placeholders = [node for node in capture.graph.graph.nodes if node.op == "placeholder"]
    _check(not capture.takes_inputs, "some of its inputs share memory, and it writes to one of them")
    _check(bool(facts.num_intermediate_bases), "some of its results share memory and carry gradients")
    _check(bool(facts.tokens), "it has effects beside its results")
    _check(facts.grad_enabled_mutation is not None, "it switches gradients on or off")
    _check(not all(map(_is_plain, facts.subclass_inp_meta)), "an input is a subclass of Tensor")
    for info in facts.input_info:
        _check_input(info)
    values = list(capture.graph.graph.output_node().args[0])
    written = [number for number, info in enumerate(facts.input_info) if info.mutates_data]
    mutated = tuple(zip(written, values[: len(written)], strict=True))
    homes = {node: number for number, node in enumerate(placeholders)}
    homes = {**{value: number for number, value in mutated}, **homes}
    outputs, own, detached = [], set(), set()
    for number, (value, info) in enumerate(zip(values[len(written) :], facts.output_info, strict=True)):
        outputs.append(placeholders[_base(info)] if info.output_type == OutputType.is_input else value)
        if info.output_type in _OWN:
            own.add(number)
        elif info.output_type == OutputType.alias_of_input:
            _check(_home(value, homes) != info.base_idx, "a result is a view of an input that the graph does not show")
            if facts.input_info[_base(info)].requires_grad and not info.requires_grad:
                detached.add(number)
        else:
            _check(info.output_type != OutputType.is_input, "some of its results share memory and carry gradients")
    return DirectForm(tuple(outputs), mutated, frozenset(own), frozenset(detached))


def _check(condition: bool, reason: str) -> None:
    if condition:
        raise NotDirectError(reason)


def _check_input(info: InputAliasInfo) -> None:
    _check(info.mutates_metadata, "it changes the shape or the memory of an input")
    with_gradients = info.requires_grad and not info.mutations_under_no_grad_or_inference_mode
    _check(info.mutates_data and with_gradients, "it writes to an input that carries gradients")


def _is_plain(meta: Any) -> bool:
    return isinstance(meta, PlainTensorMeta)


def _base(info: OutputAliasInfo) -> int:
    assert info.base_idx is not None
    return info.base_idx


def _home(value: Any, homes: dict[fx.Node, int]) -> int | None:
    """The number of the input in whose memory a value lies."""
    while isinstance(value, fx.Node):
        if value in homes:
            return homes[value]
        value = viewed(value)
    return None
