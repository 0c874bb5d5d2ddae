"""Keys and values in buffers of a module, and the attention that reads them.

Keys lie as [batch * heads, width, slots] and values as [batch * heads, slots, width], so that both products of an
attention read them row by row as they are, and queries that share keys and values are rows of one product: nothing is
transposed, repeated or copied in a step. A step reads the slots that are filled, not all that there are.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NoReturn, TypeAlias

import torch
from torch import nn
from transformers.cache_utils import Cache
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from pipeline.errors import CaptureError
from pipeline.frontend.generation.equal_layers import LayerNumber
from pipeline.frontend.generation.layer_states import StateShape, StatesView, state_shapes
from pipeline.frontend.generation.quantized_slots import QuantizedSlots, QuantizedSlotsByHeads

#: The name of `cached_attention` among transformers' attentions.
ATTENTION = "pipeline-cached"

#: What models hand to their attention that does not change what it computes, when it does not train.
_IDLE = {
    "dropout",
    "position_ids",
    "is_causal",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "use_cache",
    "logits_to_keep",
}

#: The configs that `attending_to_buffers` has changed, and the attention that they named before.
_REPLACED: ContextVar[tuple[tuple[Any, str], ...]] = ContextVar("_REPLACED", default=())

#: Keys or values of a layer, as they lie in the cache.
Slots: TypeAlias = torch.Tensor | QuantizedSlots

#: The same as models see them, which look at sizes: [batch, heads, slots, width].
SlotsByHeads: TypeAlias = torch.Tensor | QuantizedSlotsByHeads


@dataclass(frozen=True)
class LayerShape:
    """What a layer caches for a row and a token: `heads` vectors of `key_width` and `value_width` elements.

    Attributes:
        heads: 0 for a layer that has no attention.
        states: what it keeps for a row, however many tokens there are.
    """

    heads: int
    key_width: int
    value_width: int
    dtype: torch.dtype
    states: tuple[StateShape, ...] = ()


class CacheBuffers(nn.Module):
    """The cache: buffers `keys_0`, `values_0`, `keys_1`, ... for `slots` tokens of each of `batch` rows.

    With `quantized` these are int8, and `keys_0_scale`, `values_0_scale`, ... f32[batch * heads, slots] say what a unit
    stands for in each slot. The states of a layer are `conv_0_0`, `recurrent_0_0`, ..., [batch, ..].

    Attributes:
        layers: what each layer caches.
    """

    def __init__(self, layers: Sequence[LayerShape], batch: int, slots: int, quantized: bool = False):
        super().__init__()
        self.quantized, self.layers, self.slots = quantized, tuple(layers), slots
        for number, layer in enumerate(layers):
            for state in layer.states:
                self._add(state.name(number), torch.zeros(batch, *state.shape, dtype=state.dtype))
            if not layer.heads:
                continue
            rows, dtype = batch * layer.heads, torch.int8 if quantized else layer.dtype
            keys, values, *scales = self._slots(number)
            self._add(keys, torch.zeros(rows, layer.key_width, slots, dtype=dtype))
            self._add(values, torch.zeros(rows, slots, layer.value_width, dtype=dtype))
            for name in scales:
                self._add(name, torch.zeros(rows, slots))

    @property
    def has_keys(self) -> bool:
        """Whether a layer has attention."""
        return any(layer.heads for layer in self.layers)

    @property
    def has_states(self) -> bool:
        """Whether a layer has states."""
        return any(layer.states for layer in self.layers)

    def _add(self, name: str, tensor: torch.Tensor) -> None:
        self.register_buffer(name, tensor, persistent=False)

    def names(self, number: int) -> tuple[str, ...]:
        """The names of a layer's buffers."""
        layer = self.layers[number]
        slots = self._slots(number) if layer.heads else ()
        return (*slots, *(state.name(number) for state in layer.states))

    def _slots(self, number: int) -> tuple[str, ...]:
        """The names of keys, values, and the scales of both if they are quantized."""
        names = (f"keys_{number}", f"values_{number}")
        return (*names, *(f"{name}_scale" for name in names)) if self.quantized else names

    def of_layer(self, number: int | LayerNumber) -> tuple[Slots, Slots]:
        """The keys and the values of a layer."""
        number = number.value if isinstance(number, LayerNumber) else number
        keys, values, *scales = (getattr(self, name) for name in self._slots(number))
        if not self.quantized:
            return keys, values
        return QuantizedSlots(keys, scales[0], -1), QuantizedSlots(values, scales[1], 1)

    def state(self, kind: str, number: int, place: int) -> torch.Tensor:
        """A state of a layer, [batch, ..]."""
        return self.get_buffer(f"{kind}_{number}_{place}")


class _HiddenLayers(list[Any]):
    """The layers of a cache that keeps what they have elsewhere."""

    def __getitem__(self, place: Any) -> NoReturn:
        raise CaptureError(
            "the model looks for more in the layers of its cache than keys, values and states: no cache for those"
        )


class _FilledLayers(Sequence[SimpleNamespace]):
    """The layers of a cache in which all is there; what one of them has is read where it is asked for."""

    def __init__(self, count: int, layer: Callable[[int], SimpleNamespace]):
        self._count, self._layer = count, layer

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: Any) -> Any:
        return self._layer(place)


class CacheView(StatesView, Cache):
    """The cache as a model sees it that puts tokens to the slots from `first` up to `end`.

    Where these are the first there are, attention needs only what the model has just computed. With `is_filled` all up
    to `end` is there already, for `rows` texts, and nothing is put.
    """

    def __init__(
        self,
        buffers: CacheBuffers,
        first: int | torch.SymInt,
        end: int | torch.SymInt,
        rows: int,
        is_filled: bool = False,
    ):
        Cache.__init__(self, layers=[])
        StatesView.__init__(self, buffers, is_first=_is_zero(first))
        self.buffers, self.first, self._end, self._rows = buffers, first, end, rows
        self.layers = _FilledLayers(len(buffers.layers), self._layer) if is_filled else _HiddenLayers()

    def update(
        self,
        key_states: torch.Tensor,
        value_states: torch.Tensor,
        layer_idx: int | LayerNumber,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[SlotsByHeads, SlotsByHeads]:
        """Writes [batch, heads, length, width] to its slots; returns what is to be read."""
        keys, values = self.buffers.of_layer(layer_idx)
        new_keys = key_states.transpose(2, 3).flatten(0, 1)
        new_values = value_states.flatten(0, 1)
        keys[:, :, self.first : self._end] = new_keys
        values[:, self.first : self._end] = new_values
        if _is_zero(self.first):
            return key_states, value_states
        return self._read(keys, values)

    def _layer(self, number: int | LayerNumber) -> SimpleNamespace:
        """What is in the cache of a layer."""
        keys, values = self._read(*self.buffers.of_layer(number))
        return SimpleNamespace(keys=keys, values=values)

    def _read(self, keys: Slots, values: Slots) -> tuple[SlotsByHeads, SlotsByHeads]:
        found, read = keys[:, :, : self._end], values[:, : self._end]
        if isinstance(found, QuantizedSlots) and isinstance(read, QuantizedSlots):
            return QuantizedSlotsByHeads(found, self._rows), QuantizedSlotsByHeads(read, self._rows)
        assert isinstance(found, torch.Tensor) and isinstance(read, torch.Tensor)
        return found.transpose(1, 2).unflatten(0, (self._rows, -1)), read.unflatten(0, (self._rows, -1))

    def get_seq_length(self, layer_idx: int = 0) -> Any:
        """How many slots are filled."""
        return self.first

    def get_query_offset(self, layer_idx: int = 0) -> Any:
        """The slot of the first token."""
        return self.first

    def get_mask_sizes(self, query_length: Any, layer_idx: int) -> tuple[Any, int]:
        """How many slots masks are for, and the first of them."""
        return self._end, 0


def _is_zero(size: int | torch.SymInt) -> bool:
    return isinstance(size, int) and size == 0


def cached_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: SlotsByHeads,
    value: SlotsByHeads,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    position_bias: torch.Tensor | None = None,
    s_aux: torch.Tensor | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """transformers' attention on what `CacheView.update` gives, or on what a model has computed itself.

    Args:
        query: [batch, heads, length, width], of the last tokens.
        key, value: [batch, heads, slots, width].
        attention_mask: bool[batch, 1, length, slots], whether a query sees what is in a slot; or what a model has made
            of it, numbers that are added to scores, [batch, 1 or heads, length, slots]; None where all sees all.
        position_bias: [1, heads, length, slots], what is added to scores.
        s_aux: [heads], the score of what a head sees besides, which has no value (an attention sink).

    Returns:
        [batch, length, heads, width], and no weights.
    """
    unknown = sorted(name for name, given in others.items() if given is not None and name not in _IDLE)
    if unknown:
        raise CaptureError(f"{type(module).__name__}: its attention takes {unknown[0]}, which generation has not yet")
    keys, values = _by_rows(key, transposed=True), _by_rows(value)
    batch, heads, length, width = query.shape
    rows, slots = keys.shape[0], keys.shape[2]
    shared = batch * heads // rows
    factor = width**-0.5 if scaling is None else scaling
    scores = _product_with_keys((query * factor).reshape(rows, shared * length, width), keys)
    scores = scores.view(batch, rows // batch, shared, length, slots).float()
    if position_bias is not None:
        scores = scores + position_bias.unflatten(1, (rows // batch, shared))
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    seen = attention_mask if attention_mask is not None and attention_mask.dtype == torch.bool else None
    if attention_mask is not None and seen is None:
        heads_of_mask = (rows // batch, shared) if attention_mask.shape[1] == heads else (1, 1)
        scores = scores + attention_mask.unflatten(1, heads_of_mask)
    if sliding_window is not None:
        window = _in_window(length, slots, sliding_window)
        seen = window[None, None] if seen is None else seen & window
    if seen is not None:
        # A padding token sees nothing: it may see all alike, as in eager mode, but it must not leave NaN.
        scores = torch.where(seen[:, :, None], scores, torch.finfo(torch.float32).min)
    sinks = None if s_aux is None else s_aux.float().view(rows // batch, shared, 1, 1)
    weights = _softmax(scores, sinks).view(rows, shared * length, slots)
    found = _sum_of_values(weights, values).to(query.dtype)
    return found.view(batch, heads, length, values.shape[2]).transpose(1, 2).contiguous(), None


def _by_rows(found: SlotsByHeads, transposed: bool = False) -> Slots:
    """[batch * heads, slots, width], or [batch * heads, width, slots]."""
    if isinstance(found, QuantizedSlotsByHeads):
        return found.slots
    return (found.transpose(2, 3) if transposed else found).flatten(0, 1)


def _softmax(scores: torch.Tensor, sinks: torch.Tensor | None) -> torch.Tensor:
    """Of each last dim; with `sinks`, as if that had one score more, whose weight is left out."""
    if sinks is None:
        return torch.softmax(scores, -1)
    largest = torch.maximum(scores.amax(-1, keepdim=True), sinks)
    exponentials = torch.exp(scores - largest)
    return exponentials / (exponentials.sum(-1, keepdim=True) + torch.exp(sinks - largest))


def _product_with_keys(query: torch.Tensor, key: Slots) -> torch.Tensor:
    """[rows, queries, slots] from [rows, queries, width]; the scale of a slot is that of its scores."""
    if isinstance(key, torch.Tensor):
        return torch.bmm(query, key)
    return torch.bmm(query.float(), key.elements.float()) * key.scales[:, None]


def _sum_of_values(weights: torch.Tensor, value: Slots) -> torch.Tensor:
    """[rows, queries, width] from f32[rows, queries, slots]; the scale of a slot is that of its weight."""
    if isinstance(value, torch.Tensor):
        return torch.bmm(weights.to(value.dtype), value)
    return torch.bmm(weights * value.scales[:, None], value.elements.float())


def _in_window(length: int | torch.SymInt, slots: int | torch.SymInt, window: int) -> torch.Tensor:
    """bool[length, slots]: whether a slot is among the last `window` up to that of a query."""
    own = torch.arange(length)[:, None] + (slots - length)
    return own - torch.arange(slots)[None] < window


def attends_itself(model: nn.Module) -> bool:
    """Whether the attention of a decoder is its own, none of transformers' attention functions."""
    says = model.get_decoder() if getattr(model.config, "is_encoder_decoder", False) else model
    return not supports_attention_functions(says) and not any(map(_looks_up, model.get_decoder().modules()))


def supports_attention_functions(model: nn.Module) -> bool:
    """Whether a model says that it takes any function for its attention; others may all the same."""
    return getattr(model, "_supports_attention_backend", False)


def _looks_up(module: nn.Module) -> bool:
    """Whether a module takes its attention from transformers' functions."""
    code = getattr(inspect.unwrap(type(module).forward), "__code__", None)  # some have an object for it
    return code is not None and "ALL_ATTENTION_FUNCTIONS" in code.co_names


def _mask_of_slots(*args: Any, **kwargs: Any) -> torch.Tensor | None:
    """The mask that transformers makes of one of padding: there always is one."""
    return sdpa_mask(*args, **{**kwargs, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False})


@contextlib.contextmanager
def attending_to_buffers(model: nn.Module) -> Iterator[None]:
    """Has a decoder of transformers use `cached_attention` meanwhile, if its attention is one of those functions.

    What is beside the decoder, as what looks at images, keeps the attention that it has.
    """
    if attends_itself(model):
        yield
        return
    ALL_ATTENTION_FUNCTIONS.register(ATTENTION, cached_attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register(ATTENTION, _mask_of_slots)
    decoder = model.get_decoder()
    around = [part for part in model.modules() if any(inner is decoder for inner in part.modules())]
    parts = [part for part in (*around, *decoder.modules()) if hasattr(part, "config")]
    configs = {id(part.config): part.config for part in parts}.values()
    token = _REPLACED.set(tuple((config, config._attn_implementation_internal) for config in configs))
    try:
        with _attending([(config, ATTENTION) for config in configs]):
            yield
    finally:
        _REPLACED.reset(token)


def attending_as_before() -> AbstractContextManager[None]:
    """Within `attending_to_buffers`: has models use the attention that they had, as encoders do."""
    return _attending(_REPLACED.get())


@contextlib.contextmanager
def _attending(kinds: Sequence[tuple[Any, str]]) -> Iterator[None]:
    """Has configs name these attentions meanwhile."""
    before = [(config, config._attn_implementation_internal) for config, _ in kinds]
    try:
        for config, kind in kinds:
            config._attn_implementation_internal = kind
        yield
    finally:
        for config, kind in before:
            config._attn_implementation_internal = kind


def cache_of(results: Any) -> Any:
    """transformers' cache, by either of the names that it has."""
    found = getattr(results, "past_key_values", None)
    return getattr(results, "cache_params", None) if found is None else found


def layer_shapes(run: Callable[[], Any]) -> list[LayerShape]:
    """What the layers of a model cache; `run` runs it on a text of one row and returns transformers' cache."""
    layers = list(getattr(run(), "layers", None) or ())
    while layers and getattr(layers[-1], "is_initialized", True) is False:
        layers.pop()  # the config of BART's decoders counts layers of an encoder that is not there
    shapes = [_layer_shape(layer) for layer in layers]
    found = [shape for shape in shapes if shape is not None]
    if not found or len(found) < len(shapes):
        raise CaptureError(
            "the model keeps other things than keys, values and states from token to token: no cache for those"
        )
    return found


def _layer_shape(layer: Any) -> LayerShape | None:
    """None for one that has other things."""
    states, keys = state_shapes(layer), getattr(layer, "keys", None)
    if keys is None:
        return LayerShape(0, 0, 0, states[0].dtype, states) if states else None
    return LayerShape(keys.shape[1], keys.shape[3], layer.values.shape[3], keys.dtype, states)
