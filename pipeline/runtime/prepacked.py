"""Executables whose weights are what @prepare has computed, in place of what it computed that from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeline.runtime.call.array_libraries import numpy_library
from pipeline.runtime.call.slot_layout import SlotLayout
from pipeline.runtime.interface.code import Code
from pipeline.runtime.interface.signature import ParameterSource, Signature, TensorType, Weight
from pipeline.runtime.weights.weight_binding import BoundWeights


def prepacked(
    code: Code, signature: Signature, layout: SlotLayout, bound: BoundWeights
) -> tuple[Code, Signature, dict[str, Any]]:
    """Code, signature and weights of an executable that computes the same, and has no @prepare.

    What was prepared are weights of it, `@prepare.0` and so on. They lie in memory of `bound`.
    """
    prepared = {source.index: slot for slot, source in layout.weight_slots if source.kind == "prepared"}
    arrays = {
        number: numpy_library().adopt(bound, bound.template[prepared[number]], _sizes(kind), kind.dtype)
        for number, kind in code.kept.items()
    }
    only_prepared = code.prepared_weights(weight.name for weight in signature.weights)
    weights = [weight for weight in signature.weights if weight.mutated or weight.name not in only_prepared]
    weights += [Weight(_name(number), kind) for number, kind in code.kept.items()]
    tensors = {weight.name: bound.live[weight.name] for weight in weights if weight.name in bound.live}
    tensors |= {_name(number): array for number, array in arrays.items()}
    places = {number: place for place, number in enumerate(code.unread)}
    alone = replace(
        code,
        main_sources=tuple(_source(source, places) for source in code.main_sources),
        prepare=None,
        prepare_sources=(),
        prepared=tuple(code.prepared[number] for number in code.unread),
        unread=tuple(range(len(code.unread))),
    )
    return alone, replace(signature, weights=tuple(weights)), tensors


def _source(source: ParameterSource, places: dict[int, int]) -> ParameterSource:
    """Where an argument of @main comes from; `places` are the new numbers of what is prepared and not read."""
    if source.kind != "prepared":
        return source
    if source.index in places:
        return replace(source, index=places[source.index])
    return ParameterSource("weight", name=_name(source.index))


def _sizes(kind: TensorType) -> list[int]:
    """The shape of what is prepared, which never has symbols."""
    return [int(size) for size in kind.shape]


def _name(number: int) -> str:
    return f"@prepare.{number}"
