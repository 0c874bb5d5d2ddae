"""Executables whose weights are what @prepare has computed, in place of what it computed that from."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from pipeline.runtime.call.array_libraries import numpy_library
from pipeline.runtime.call.slot_layout import SlotLayout
from pipeline.runtime.interface.code import Code
from pipeline.runtime.interface.signature import ParameterSource, Signature, TensorType, Weight
from pipeline.runtime.weights.weight_binding import BoundWeights

#: What begins the names of weights that were prepared.
PREPARED = "@prepare."


def prepacked(
    code: Code, signature: Signature, layout: SlotLayout, bound: BoundWeights
) -> tuple[Code, Signature, dict[str, Any]]:
    """Code, signature and weights of an executable that computes the same, and has no @prepare.

    What was prepared are weights of it, without the shape, which no two executables need to agree about: `@prepare.`
    and the digest that tells what they are. They lie in memory of `bound`.
    """
    names = {number: _name(code, number) for number in code.kept}
    types = {name: _flat(code.prepared[number]) for number, name in names.items()}
    arrays = {
        name: numpy_library().adopt(
            bound, bound.prepared[number].address, list(map(int, types[name].shape)), types[name].dtype
        )
        for number, name in names.items()
    }
    only_prepared = code.prepared_weights(weight.name for weight in signature.weights)
    weights = [weight for weight in signature.weights if weight.mutated or weight.name not in only_prepared]
    weights += [Weight(name, kind) for name, kind in types.items()]
    tensors = {weight.name: bound.live[weight.name] for weight in weights if weight.name in bound.live}
    places = {number: place for place, number in enumerate(code.unread)}
    alone = replace(
        code,
        main_sources=tuple(_source(source, places, names) for source in code.main_sources),
        prepare=None,
        prepare_sources=(),
        prepared=tuple(code.prepared[number] for number in code.unread),
        unread=tuple(range(len(code.unread))),
        recipes=(),
    )
    return alone, replace(signature, weights=tuple(weights)), tensors | arrays


def _source(source: ParameterSource, places: dict[int, int], names: dict[int, str]) -> ParameterSource:
    """Where an argument of @main comes from; `places` are the new numbers of what is prepared and not read."""
    if source.kind != "prepared":
        return source
    if source.index in places:
        return replace(source, index=places[source.index])
    return ParameterSource("weight", name=names[source.index])


def _flat(kind: TensorType) -> TensorType:
    """All elements in a row."""
    return TensorType(kind.dtype, (math.prod(map(int, kind.shape)),))


def _name(code: Code, number: int) -> str:
    digest = code.recipes[number].digest if code.recipes else ""
    return f"{PREPARED}{digest or number}"
