"""The entries of a model with an encoder: a source with the first token of what follows, and one token more.

The encoder runs once for a source, with the attention that it always has. What the decoder reads of what it gives, keys
and values of each of its layers, is computed once, too, and kept in buffers beside those of its own tokens.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers.cache_utils import EncoderDecoderCache
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from pipeline.errors import CaptureError, OptionError
from pipeline.frontend.generation.cached_attention import (
    ATTENTION,
    CacheBuffers,
    CacheView,
    LayerShape,
    attending_as_before,
    attending_to_buffers,
    cached_attention,
    layer_shapes,
)
from pipeline.frontend.generation.compiled_entry import (
    aligned_slots,
    compiled_entry,
    is_quantized,
    of_any_length,
    options_of_entries,
    positions_of,
)
from pipeline.frontend.generation.entries import called, mask_of
from pipeline.frontend.generation.inputs import example_inputs, of_rows
from pipeline.plugins import one_line
from pipeline.runtime.executable import Executable
from pipeline.runtime.weights.preparation import Preparation

#: What configs call the positions of a decoder's tokens, and of a source's.
_OWN_POSITIONS = ("max_target_positions", "max_decoder_position_embeddings", "max_position_embeddings")
_SOURCE_POSITIONS = ("max_encoder_position_embeddings", "max_position_embeddings")


class SourceTextEntry(nn.Module):
    """Takes a source of tokens through the encoder, and the token that texts begin with into an empty cache.

    Takes int64[batch, length], the source; int64[batch, length], 0 where it is padding; int64[batch, 1], the first
    token. Returns the logits after that, f32[batch, vocabulary].
    """

    def __init__(self, model: nn.Module, cache: CacheBuffers, source: CacheBuffers):
        super().__init__()
        self.model, self.cache, self.source = model, cache, source

    def forward(self, source_ids: torch.Tensor, source_mask: torch.Tensor, input_ids: torch.Tensor) -> torch.Tensor:
        """See the class."""
        inputs = {"input_ids": source_ids, "attention_mask": source_mask}
        return _first_logits(self.model, inputs, input_ids, self.cache, self.source)


class SourceEntry(nn.Module):
    """As `SourceTextEntry` of what else encoders read: the features of speech, an image.

    Takes these by the names that the encoder has for them, [batch, ..], `attention_mask` among them if there is one,
    and int64[batch, 1], the first token.
    """

    def __init__(self, model: nn.Module, cache: CacheBuffers, source: CacheBuffers, fields: EncodedFields):
        super().__init__()
        self.model, self.cache, self.source, self.fields = model, cache, source, fields

    def forward(self, inputs: dict[str, torch.Tensor], input_ids: torch.Tensor) -> torch.Tensor:
        """See the class."""
        return _first_logits(self.model, inputs, input_ids, self.cache, self.source, self.fields)


class TargetEntry(nn.Module):
    """Takes one token after those in the cache.

    Takes int64[batch, 1]; `slots`, int64[filled], the numbers from 0, one for each slot that is filled then, that of
    the new token included; and the mask of the source as before, where it has one. Returns the logits,
    f32[batch, vocabulary].
    """

    def __init__(
        self,
        model: nn.Module,
        cache: CacheBuffers,
        source: CacheBuffers,
        fields: EncodedFields,
        length: int | None,
    ):
        """Takes the length of what the encoder gives where that is not the source's."""
        super().__init__()
        self.model, self.cache, self.source, self.fields, self.length = model, cache, source, fields, length

    def forward(
        self, input_ids: torch.Tensor, slots: torch.Tensor, source_mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """See the class."""
        filled, rows = slots.shape[0], len(input_ids)
        length = self.length
        if length is None:
            assert source_mask is not None
            length = source_mask.shape[1]
        source = CacheView(self.source, 0, length, rows, is_filled=True)
        cache = _both(CacheView(self.cache, filled - 1, filled, rows), source, True)
        return _logits(self.model, self.fields.encoded(length), source_mask, input_ids, slots, cache)


class EncodedFields(nn.Module):
    """What an encoder gives for `batch` rows as steps are given it.

    Of its vectors the cache has all that is read. What there is besides, as the mask of those vectors that Moonshine's
    decoder reads, is kept in buffers of the same names.
    """

    def __init__(self, example: Any, batch: int):
        """Takes what the encoder gives for one row."""
        super().__init__()
        states = example.last_hidden_state
        self.kind, self.batch, self.width, self.dtype = type(example), batch, states.shape[2], states.dtype
        for name, tensor in example.items():
            if isinstance(tensor, torch.Tensor) and tensor is not states:
                kept = torch.zeros(batch, *tensor.shape[1:], dtype=tensor.dtype)
                self.register_buffer(name, kept, persistent=False)

    def keep(self, encoded: Any) -> None:
        """Writes what an encoder has given for all rows to the buffers."""
        for name, buffer in self.named_buffers():
            buffer.copy_(encoded[name])

    def encoded(self, length: int | torch.SymInt) -> Any:
        """What the encoder has given, with vectors that nothing reads."""
        unread = torch.zeros(self.batch, 1, 1, dtype=self.dtype).expand(self.batch, length, self.width)
        return self.kind(last_hidden_state=unread, **dict(self.named_buffers()))


class _IsFilled(dict[Any, bool]):
    """Whether keys and values of the source are there: of all layers or of none, so that no layer's number is read."""

    def __init__(self, layers: int, is_filled: bool):
        super().__init__(dict.fromkeys(range(layers), is_filled))
        self._is_filled = is_filled

    def get(self, layer: Any, default: Any = None) -> bool:
        """See the class."""
        return self._is_filled

    def __setitem__(self, layer: Any, is_filled: bool) -> None:
        """Nothing: a layer asks once."""


def _both(target: CacheView, source: CacheView, is_filled: bool) -> EncoderDecoderCache:
    cache = EncoderDecoderCache(target, source)
    cache.is_updated = _IsFilled(len(source), is_filled)
    return cache


def _first_logits(
    model: nn.Module,
    inputs: Mapping[str, torch.Tensor],
    input_ids: torch.Tensor,
    cache: CacheBuffers,
    source: CacheBuffers,
    fields: EncodedFields | None = None,
) -> torch.Tensor:
    encoded = _encoded(model, inputs)
    if fields is not None:
        fields.keep(encoded)
    rows, length = len(input_ids), encoded.last_hidden_state.shape[1]
    views = _both(CacheView(cache, 0, 1, rows), CacheView(source, 0, length, rows), False)
    return _logits(model, encoded, inputs.get("attention_mask"), input_ids, torch.arange(1), views)


def _encoded(model: nn.Module, inputs: Mapping[str, torch.Tensor]) -> Any:
    """What the encoder gives, as transformers' `generate` calls it."""
    encoder = model.get_encoder()
    taken = inspect.signature(encoder.forward).parameters
    with attending_as_before():
        return encoder(**{name: given for name, given in inputs.items() if name in taken}, return_dict=True)


def _logits(
    model: nn.Module,
    encoded: Any,
    source_mask: torch.Tensor | None,
    input_ids: torch.Tensor,
    slots: torch.Tensor,
    cache: EncoderDecoderCache | None,
) -> torch.Tensor:
    seen = torch.ones(len(input_ids), 1, 1, slots.shape[0], dtype=torch.bool)
    results = called(
        model,
        encoder_outputs=encoded,
        attention_mask=source_mask,
        decoder_input_ids=input_ids,
        decoder_attention_mask=mask_of(model, seen),
        past_key_values=cache,
        use_cache=True,
    )
    return results.logits[:, -1].float()


def compile_encoder_decoder(
    model: nn.Module,
    max_length: int,
    max_source_length: int | None,
    batch: int,
    kv_cache: str,
    given: Any,
    options: dict[str, Any],
) -> tuple[Executable, Executable]:
    """The executables of a source's entry and `TargetEntry`, which share weights, what they prepare, and the cache.

    Args:
        max_source_length: None for as many as `max_length`.
        given: an example of what the encoder reads of one row if that is no text.

    Raises:
        CaptureError: the model keeps other things than keys and values, or makes something else of its entries.
        OptionError: the model has fewer positions than it is to have, reads something else, or there is no such cache.
    """
    chosen = options_of_entries(options, model)
    inputs = _source_example(model, given)
    of_text = inputs is None
    if not of_text and max_source_length is not None:
        raise OptionError("max_source_length: the model reads no tokens, and sources are as long as the example")
    max_source_length = max_source_length or max_length
    _check_lengths(model, max_length, max_source_length if of_text else None)
    example = _Example.of(model, _text(2, 1) if inputs is None else inputs)
    if not example.is_known or not of_text:
        example.check()
    cache = CacheBuffers(example.own, batch, aligned_slots(model, max_length, _OWN_POSITIONS), is_quantized(kv_cache))
    length, fields = example.length, EncodedFields(example.encoded, batch)
    slots = aligned_slots(model, max_source_length, _SOURCE_POSITIONS) if length is None else length
    source = CacheBuffers(example.read, batch, slots, is_quantized(kv_cache))
    first, preparation = torch.ones(batch, 1, dtype=torch.int64), Preparation()

    def compiled(entry: nn.Module, args: tuple[Any, ...], dynamic_shapes: Any, missed: str = "") -> Executable:
        return compiled_entry(entry, args, dynamic_shapes, chosen, preparation, missed)

    several: dict[int, Any] | None = None
    if inputs is None:
        several = {1: torch.export.Dim.AUTO(min=2, max=source.slots)}
        whole, texts = _text(min(5, slots), batch), SourceTextEntry(model, cache, source)
        try:
            prefill = of_any_length(compiled(texts, (*whole.values(), first), (several, several, None)))
        except CaptureError as error:
            whole, several = _text(slots, batch), None
            missed = f"sources are as long as the longest, {slots} tokens, with padding behind: {error}"
            prefill = compiled(texts, (*whole.values(), first), None, missed)
    else:
        whole = of_rows(inputs, batch)
        prefill = compiled(SourceEntry(model, cache, source, fields), (whole, first), None)
    mask = (whole["attention_mask"],) if "attention_mask" in whole else ()
    filled = {0: torch.export.Dim.AUTO(min=2, max=cache.slots)}
    step = TargetEntry(model, cache, source, fields, length)
    steps = torch.arange(min(7, cache.slots))
    return prefill, compiled(step, (first, steps, *mask), (None, filled, *(several for _ in mask)))


def adds_decoder_start(model: nn.Module) -> bool:
    """See `Settings`."""
    encoder = getattr(model.config, "encoder", None)
    kinds = (type(model).__name__, model.config.model_type, getattr(encoder, "model_type", ""))
    return not any(name in kind.lower() for kind in kinds for name in ("whisper", "donut"))


def _source_example(model: nn.Module, given: Any) -> dict[str, torch.Tensor] | None:
    """An example of what an encoder reads; None where that is tokens, of which there is one always."""
    main = model.main_input_name
    if given is None and main != "input_ids":
        raise OptionError(
            f"inputs: the encoder of {type(model).__name__} reads {main}: give an example of one row, "
            f"inputs={{{main!r}: ..}}, as a processor of transformers gives it"
        )
    found = None if given is None else example_inputs(given)
    if found is not None and {"input_ids", "decoder_input_ids"} & found.keys():
        raise OptionError("inputs: sources of tokens have any length, of which no example is needed: leave it out")
    return found


def _text(length: int, rows: int) -> dict[str, torch.Tensor]:
    ids = torch.ones(rows, length, dtype=torch.int64)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def _check_lengths(model: nn.Module, max_length: int, max_source_length: int | None) -> None:
    lengths = {"max_length": (max_length, _OWN_POSITIONS), "max_source_length": (max_source_length, _SOURCE_POSITIONS)}
    for name, (length, attributes) in lengths.items():
        positions = positions_of(model, attributes)
        if positions is not None and length is not None and length > positions:
            raise OptionError(f"{name}: the model has {positions} positions, {length} are too many")


@dataclass(frozen=True)
class _Example:
    """One source, and what a model makes of it.

    Attributes:
        own, read: what the decoder's layers keep of its own tokens, and of the source.
        encoded: what the encoder gives for the source.
        is_known: whether its attention is one of transformers' attention functions.
    """

    model: nn.Module
    inputs: Mapping[str, torch.Tensor]
    own: list[LayerShape]
    read: list[LayerShape]
    encoded: Any
    is_known: bool

    @property
    def length(self) -> int | None:
        """How many vectors the encoder gives; None for as many as there are tokens."""
        return None if "input_ids" in self.inputs else int(self.encoded.last_hidden_state.shape[1])

    @classmethod
    def of(cls, model: nn.Module, inputs: Mapping[str, torch.Tensor]) -> _Example:
        """Runs the model."""
        try:
            with torch.no_grad(), attending_to_buffers(model), _counted() as calls:
                encoded = _encoded(model, inputs)
                results = called(
                    model,
                    encoder_outputs=encoded,
                    attention_mask=inputs.get("attention_mask"),
                    decoder_input_ids=torch.ones(1, 1, dtype=torch.int64),
                    use_cache=True,
                )
        except Exception as error:  # whatever a model does with what it does not expect
            names = ", ".join(inputs)
            raise CaptureError(f"{type(model).__name__}: does not run on {names}: {one_line(error)}") from error
        cache = results.past_key_values
        if not isinstance(cache, EncoderDecoderCache):
            raise CaptureError(f"{type(model).__name__}: keeps other things than keys and values of both texts")
        own, read = layer_shapes(lambda: cache.self_attention_cache), layer_shapes(lambda: cache.cross_attention_cache)
        return cls(model, inputs, own, read, encoded, len(calls) >= len(own) + len(read))

    def check(self) -> None:
        """Raises `CaptureError` if the model makes something else of entries than of a text without a cache."""
        why = ""
        try:
            agree = self._agrees(self.inputs) and self._agrees(_half_hidden(self.inputs))
        except Exception as error:  # whatever a model does with what it does not expect
            agree, why = False, f" ({one_line(error)})"
        if not agree:
            raise CaptureError(
                f"{type(self.model).__name__}: its attention is its own, none of transformers' attention functions, or "
                f"makes something else of masks{why}, so that it cannot be given this cache; compile it with "
                "pipeline.compile"
            )

    def _agrees(self, inputs: Mapping[str, torch.Tensor]) -> bool:
        """Whether the logits after the second token are those of the model that has no cache."""
        model, mask = self.model, inputs.get("attention_mask")
        pad = model.config.get_text_config(decoder=True).pad_token_id
        ids = torch.tensor([[token for token in range(3) if token != pad][:2]])
        slots = self.encoded.last_hidden_state.shape[1]
        cache, source = CacheBuffers(self.own, 1, 2), CacheBuffers(self.read, 1, slots)
        fields = EncodedFields(self.encoded, 1)
        with torch.no_grad():
            wanted = called(model, **inputs, decoder_input_ids=ids, use_cache=False).logits[:, -1]
            with attending_to_buffers(model):
                _first_logits(model, inputs, ids[:, :1], cache, source, fields)
                step = TargetEntry(model, cache, source, fields, self.length)
                difference = (step(ids[:, 1:], torch.arange(2), mask) - wanted).abs().max()
        return bool(difference <= torch.finfo(model.dtype).eps ** 0.5 * wanted.abs().max())


def _half_hidden(inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The same with the second half as padding, where there is a mask."""
    found = dict(inputs)
    if "attention_mask" in found:
        mask = found["attention_mask"].clone()
        mask[:, (mask.shape[1] + 1) // 2 :] = 0
        found["attention_mask"] = mask
    return found


@contextmanager
def _counted() -> Iterator[list[None]]:
    """Has `cached_attention` leave one element for each call meanwhile."""
    calls: list[None] = []

    def counted(*args: Any, **kwargs: Any) -> tuple[torch.Tensor, None]:
        calls.append(None)
        return cached_attention(*args, **kwargs)

    ALL_ATTENTION_FUNCTIONS.register(ATTENTION, counted)
    try:
        yield calls
    finally:
        ALL_ATTENTION_FUNCTIONS.register(ATTENTION, cached_attention)
