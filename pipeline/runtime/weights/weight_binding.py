"""What the code of an executable reads of the model's weights."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.errors import PipelineError
from pipeline.runtime.call.array_libraries import Extent, dtype_and_shape, extent, library_of, place_of, pointer
from pipeline.runtime.call.slot_layout import SlotLayout, Slots
from pipeline.runtime.interface.aligned_memory import byte_size, offsets
from pipeline.runtime.interface.code import Code, PreparedRecipe
from pipeline.runtime.interface.recycled_memory import Lease, RecycledMemory
from pipeline.runtime.interface.signature import Signature, TensorType, Weight
from pipeline.runtime.native.object_loader import NativeCode
from pipeline.runtime.weights.preparation import Preparation, PreparedTensor, sources_of
from pipeline.runtime.weights.watch import Outdated, Watch, Watched, watch
from pipeline.runtime.weights.weight_source import WeightSource


@dataclass(frozen=True)
class BoundWeights:
    """The weights at one time. `refresh` makes new ones, so that running calls keep one state.

    Attributes:
        template: the slots of a call with the weights' addresses filled in.
        live: the model's own tensors, by name.
        tensors: keep what the addresses point to alive.
        prepared: what was prepared, by its number.
        extents: where they lie.
        copies: for a mutated weight that is not row-major, the row-major copy that the code reads.
        watch: notices when all this is old.
        states: what those weights that are watched were, by name.
    """

    template: Slots
    live: Mapping[str, Any]
    tensors: tuple[Any, ...]
    prepared: Mapping[int, PreparedTensor]
    extents: tuple[Extent, ...]
    copies: Mapping[str, Any]
    watch: Watch
    states: dict[str, Any]

    def has_changed(self) -> bool:
        """Whether a weight may not be what it was."""
        return bool(self.watch.run(0, self.watch.record))

    def outdated(self, prepared: Mapping[int, PreparedTensor]) -> BoundWeights:
        """The same for calls to find that weights have changed; the memory of all but this that is prepared may go."""
        return replace(self, prepared=prepared, watch=Outdated())

    def accept_copies(self) -> None:
        """Takes the weights that the code has a copy of as they are now: they were brought up to date with it."""
        if not self.copies:
            return
        self.watch.accept(self.copies)
        watched = {weight.name: weight for weight in self.watch.weights}
        self.states.update({name: watched[name].state() for name in self.copies if name in watched})


@dataclass(frozen=True)
class WeightsNow:
    """The weights of an executable as they are now, before anything is computed from them.

    Attributes:
        live, watch, states: see `BoundWeights`.
    """

    live: Mapping[str, Any]
    watch: Watch
    states: dict[str, Any]


def look_up(
    code: Code, native: NativeCode, signature: Signature, source: WeightSource, *, is_watched: bool = True
) -> WeightsNow:
    """Looks up the live weights, and watches them from now on.

    Args:
        is_watched: whether new values of weights are to be noticed, not only that they have moved.

    Raises:
        PipelineError: a weight has another dtype or shape than when the model was compiled.
    """
    while True:
        live = live_weights(signature, source)
        watched = list(_watched(code, live, is_watched=is_watched))
        noticing = watch(watched, source if is_watched else None, native.guarded(), native.entry(code.main.symbol))
        if _are_current(live, source):  # a thread may have replaced one before it was watched
            break
    return WeightsNow(live, noticing, {weight.name: weight.state() for weight in watched})


def bind(
    code: Code,
    native: NativeCode,
    signature: Signature,
    layout: SlotLayout,
    now: WeightsNow,
    preparation: Preparation,
    memory: RecycledMemory,
) -> BoundWeights:
    """Runs `@prepare` on weights, unless others have prepared the same.

    Args:
        preparation: what there is already, and what others are to have.
        memory: has memory for what is prepared.
    """
    live = now.live
    tensors: dict[str, Any] = {}
    copies: dict[str, Any] = {}
    for weight in signature.weights:
        tensors[weight.name] = _contiguous(live[weight.name])
        if weight.mutated and not _is_row_major(live[weight.name]):
            copies[weight.name] = tensors[weight.name]
    prepared = _prepared(code, native, tensors, live, preparation, memory)
    template = (ctypes.c_int64 * layout.slots)()
    for slot, source_of_slot in layout.weight_slots:
        is_weight = source_of_slot.kind == "weight"
        if is_weight:
            template[slot] = pointer(tensors[source_of_slot.name])
        elif source_of_slot.index in prepared:  # code takes the address of the others, too, and doesn't look there
            template[slot] = prepared[source_of_slot.index].address
    extents = tuple(extent(f"weight {name}", tensor) for name, tensor in tensors.items())
    return BoundWeights(template, live, tuple(tensors.values()), prepared, extents, copies, now.watch, now.states)


def _are_current(live: Mapping[str, Any], source: WeightSource) -> bool:
    now = source.tensors()
    return all(now.get(name) is tensor for name, tensor in live.items())


def live_weights(signature: Signature, source: WeightSource) -> dict[str, Any]:
    """The tensors that the weights are now.

    Raises:
        PipelineError: one has another dtype or shape than at compilation, or no elements in memory.
    """
    tensors = source.tensors()
    return {weight.name: _checked(weight, tensors) for weight in signature.weights}


def _checked(weight: Weight, tensors: Mapping[str, Any]) -> Any:
    live = tensors.get(weight.name)
    if library_of(live) is None:
        raise PipelineError(f"weight {weight.name}: expected {weight.type}, is now no tensor but {live!r:.40}")
    place = place_of(live)
    if place.partition(":")[0] not in ("cpu", "cuda"):
        raise PipelineError(f"weight {weight.name}: expected a dense tensor, got {place}")
    got = TensorType(*dtype_and_shape(live))
    if got != weight.type:
        raise PipelineError(f"weight {weight.name}: expected {weight.type}, is now {got}")
    return live


def _watched(code: Code, live: Mapping[str, Any], *, is_watched: bool) -> Iterator[Watched]:
    """The weights that may change behind the executable's back: torch's, which are what can move."""
    read = {source.name for source in code.main_sources if source.kind == "weight"}
    prepared = {source.name for source in code.prepare_sources}
    for name, tensor in live.items():
        if not _is_torchs(tensor):
            continue
        in_place = _is_row_major(tensor)
        weight = Watched(name, tensor, name in read and in_place, is_watched and (name in prepared or not in_place))
        if weight.is_read or weight.is_copied:
            yield weight


def watched_copies(live: Mapping[str, Any]) -> list[Watched]:
    """What is to be watched where code reads copies of the weights alone."""
    return [Watched(name, tensor, False, True) for name, tensor in live.items() if _is_torchs(tensor)]


def _is_torchs(tensor: Any) -> bool:
    owner = library_of(tensor)
    return owner is not None and owner.name == "torch"


def _contiguous(tensor: Any) -> Any:
    owner = library_of(tensor)
    assert owner is not None
    return owner.contiguous(tensor)


def _is_row_major(tensor: Any) -> bool:
    owner = library_of(tensor)
    assert owner is not None
    return owner.is_row_major(tensor)


def known(code: Code, live: Mapping[str, Any], preparation: Preparation) -> dict[int, PreparedTensor]:
    """What there is already of what @main reads of these weights, by its number."""
    tensors = enumerate(preparation.known(_recipes(code), live))
    return {number: tensor for number, tensor in tensors if tensor is not None}


def _recipes(code: Code) -> Sequence[PreparedRecipe]:
    return code.recipes or (PreparedRecipe("", ()),) * len(code.prepared)


def _prepared(
    code: Code,
    native: NativeCode,
    tensors: Mapping[str, Any],
    live: Mapping[str, Any],
    preparation: Preparation,
    memory: RecycledMemory,
) -> dict[int, PreparedTensor]:
    """What @main reads of what depends on the weights alone, by its number: what others have, and the rest computed.

    Args:
        tensors: the weights as code reads them.
        live: as the model has them.
    """
    recipes, found = _recipes(code), known(code, live, preparation)
    missing = {number: kind for number, kind in code.kept.items() if number not in found}
    if not missing:
        return {number: found[number] for number in code.kept}
    lease, places = _lay_out(missing, memory)
    rest = {number: kind for number, kind in enumerate(code.prepared) if number not in missing}
    scratch, others = _lay_out(rest, RecycledMemory(0))
    _run_prepare(code, native, tensors, {**places, **others})
    del scratch
    for number, kind in missing.items():
        sources = sources_of(recipes[number], live)
        found[number] = PreparedTensor(places[number], byte_size(kind), lease, sources)
        preparation.keep(recipes[number], live, found[number])
    return {number: found[number] for number in code.kept}


def _run_prepare(code: Code, native: NativeCode, tensors: Mapping[str, Any], places: Mapping[int, int]) -> None:
    """Has @prepare write its results to these addresses."""
    entry = code.prepare
    assert entry is not None
    slots = (ctypes.c_int64 * entry.slots)()
    first = entry.parameter_slots()
    for slot, source in zip(first, code.prepare_sources, strict=False):
        slots[slot] = pointer(tensors[source.name])
    for number, slot in enumerate(first[len(code.prepare_sources) :]):
        slots[slot] = places[number]
    native.entry(entry.symbol)(ctypes.addressof(slots))


def _lay_out(types: Mapping[int, TensorType], memory: RecycledMemory) -> tuple[Lease, dict[int, int]]:
    """Memory for tensors one behind the other, and the address of each by its number."""
    *starts, size = offsets(list(types.values()))
    lease = memory.lease(size)
    return lease, {number: lease.address + start for number, start in zip(types, starts, strict=True)}
