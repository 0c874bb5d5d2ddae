"""What the code of an executable reads of the model's weights."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.errors import PipelineError
from pipeline.runtime.arrays import Extent, dtype_and_shape, extent, library_of, place_of, pointer
from pipeline.runtime.code import Code
from pipeline.runtime.layout import Layout, Slots
from pipeline.runtime.memory import Arena, offsets
from pipeline.runtime.native import NativeCode
from pipeline.runtime.signature import Signature, TensorType, Weight


@dataclass(frozen=True)
class BoundWeights:
    """The weights at one time. `refresh` makes new ones, so that running calls keep one state.

    Attributes:
        template: the slots of a call with the weights' addresses filled in.
        tensors: keeps what the addresses point to alive: the weights, then what was prepared.
        extents: where they lie.
        copies: for a mutated weight that is not row-major, the row-major copy that the code reads.
    """

    template: Slots
    tensors: tuple[Any, ...]
    extents: tuple[Extent, ...]
    copies: Mapping[str, Any]


def bind(
    code: Code,
    native: NativeCode,
    signature: Signature,
    layout: Layout,
    weights: Mapping[str, Any],
) -> BoundWeights:
    """Looks up the live weights and runs `@prepare` on them.

    Raises:
        PipelineError: a weight has another dtype or shape than when the model was compiled.
    """
    tensors: dict[str, Any] = {}
    copies: dict[str, Any] = {}
    for weight in signature.weights:
        live = live_weight(weight, weights)
        owner = library_of(live)
        assert owner is not None
        tensors[weight.name] = owner.contiguous(live)
        if weight.mutated and not owner.is_row_major(live):
            copies[weight.name] = tensors[weight.name]
    prepared, places = _prepare(code, native, tensors)
    template = (ctypes.c_int64 * layout.slots)()
    for slot, source in layout.weight_slots:
        template[slot] = pointer(tensors[source.name]) if source.kind == "weight" else places[source.index]
    extents = tuple(extent(f"weight {name}", tensor) for name, tensor in tensors.items())
    return BoundWeights(template, (*tensors.values(), prepared), extents, copies)


def live_weight(weight: Weight, weights: Mapping[str, Any]) -> Any:
    """The tensor that a weight is now.

    Raises:
        PipelineError: it has another dtype or shape than at compilation, or no elements in memory.
    """
    live = weights[weight.name]
    place = place_of(live)
    if place.partition(":")[0] not in ("cpu", "cuda"):
        raise PipelineError(f"weight {weight.name}: expected a dense tensor, got {place}")
    got = TensorType(*dtype_and_shape(live))
    if got != weight.type:
        raise PipelineError(f"weight {weight.name}: expected {weight.type}, is now {got}")
    return live


def _prepare(code: Code, native: NativeCode, tensors: Mapping[str, Any]) -> tuple[Arena, list[int]]:
    """What depends on the weights alone, computed: the memory that it lies in, and the address of each tensor."""
    arena, starts = _lay_out(code.kept)
    scratch, others = _lay_out({number: code.prepared[number] for number in code.unread})
    known = {**starts, **others}
    places = [known[number] for number in range(len(code.prepared))]
    entry = code.prepare
    if entry is None:
        return arena, places
    slots = (ctypes.c_int64 * entry.slots)()
    first = entry.parameter_slots()
    for slot, source in zip(first, code.prepare_sources, strict=False):
        slots[slot] = pointer(tensors[source.name])
    for slot, place in zip(first[len(code.prepare_sources) :], places, strict=True):
        slots[slot] = place
    native.entry(entry.symbol)(ctypes.addressof(slots))
    del scratch  # code takes its addresses, and doesn't look there
    return arena, places


def _lay_out(types: Mapping[int, TensorType]) -> tuple[Arena, dict[int, int]]:
    """Memory for tensors one behind the other, and the address of each by its number."""
    *starts, size = offsets(list(types.values()))
    arena = Arena(size)
    return arena, {number: arena.address + start for number, start in zip(types, starts, strict=True)}
