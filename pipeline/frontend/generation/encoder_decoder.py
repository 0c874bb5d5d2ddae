"""The entries of a model with an encoder: a source with the first token of what follows, and one token more.

The encoder runs once for a source. What the decoder reads of it, keys and values of each of its layers, is computed
once, too, and kept in buffers beside those of its own tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from transformers.cache_utils import Cache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from pipeline.errors import CaptureError, OptionError
from pipeline.frontend.generation.cached_attention import (
    ATTENTION,
    CacheBuffers,
    CacheView,
    LayerShape,
    attending_to_buffers,
    cached_attention,
    layer_shapes,
)
from pipeline.frontend.generation.entries import (
    aligned_slots,
    compiled_entry,
    is_quantized,
    options_of_entries,
    positions_of,
)
from pipeline.runtime.executable import Executable
from pipeline.runtime.weights.preparation import Preparation


class SourceEntry(nn.Module):
    """Takes a source through the encoder, and the token that texts begin with into an empty cache.

    Takes int64[batch, length], the source; int64[batch, length], 0 where it is padding; int64[batch, 1], the first
    token. Returns the logits after that, f32[batch, vocabulary].
    """

    def __init__(self, model: nn.Module, cache: CacheBuffers, source: CacheBuffers):
        super().__init__()
        self.model, self.cache, self.source = model, cache, source

    def forward(self, source_ids: torch.Tensor, source_mask: torch.Tensor, input_ids: torch.Tensor) -> torch.Tensor:
        """See the class."""
        cache = EncoderDecoderCache(
            CacheView(self.cache, 0, 1, len(input_ids)),
            CacheView(self.source, 0, source_ids.shape[1], len(input_ids)),
        )
        encoded = {"input_ids": source_ids}
        return _logits(self.model, encoded, source_mask, input_ids, torch.arange(1), cache)


class TargetEntry(nn.Module):
    """Takes one token after those in the cache.

    Takes int64[batch, 1]; `slots`, int64[filled], the numbers from 0, one for each slot that is filled then, that of
    the new token included; and which of the source's tokens are none of padding, int64[batch, length], as before.
    Returns the logits, f32[batch, vocabulary].
    """

    def __init__(self, model: nn.Module, cache: CacheBuffers, source: CacheBuffers):
        super().__init__()
        self.model, self.cache, self.source = model, cache, source

    def forward(self, input_ids: torch.Tensor, slots: torch.Tensor, source_mask: torch.Tensor) -> torch.Tensor:
        """See the class."""
        filled, rows = slots.shape[0], len(input_ids)
        cache = EncoderDecoderCache(
            CacheView(self.cache, filled - 1, filled, rows),
            CacheView(self.source, 0, source_mask.shape[1], rows, is_filled=True),
        )
        cache.is_updated = dict.fromkeys(range(len(self.source.layers)), True)
        unread = torch.zeros(rows, 1, 1, dtype=self.model.dtype)  # of what the encoder gives, the cache has all
        encoded = {"encoder_outputs": BaseModelOutput(last_hidden_state=unread)}
        return _logits(self.model, encoded, source_mask, input_ids, slots, cache)


def _logits(
    model: nn.Module,
    encoded: dict[str, Any],
    source_mask: torch.Tensor,
    input_ids: torch.Tensor,
    slots: torch.Tensor,
    cache: Cache,
) -> torch.Tensor:
    seen = torch.ones(len(input_ids), 1, 1, slots.shape[0], dtype=torch.bool)
    results = model(
        **encoded,
        attention_mask=(source_mask != 0)[:, None, None],
        decoder_input_ids=input_ids,
        decoder_attention_mask=seen,
        past_key_values=cache,
        use_cache=True,
    )
    return results.logits[:, -1].float()


def compile_encoder_decoder(
    model: nn.Module, max_length: int, max_source_length: int, batch: int, kv_cache: str, options: dict[str, Any]
) -> tuple[Executable, Executable]:
    """The executables of `SourceEntry` and `TargetEntry`, which share weights, what they prepare, and the cache.

    Raises:
        CaptureError: the attention of the model is none of transformers' attention functions.
        OptionError: the model has fewer positions than it is to have, or there is no such cache.
    """
    chosen = options_of_entries(options, model)
    positions = positions_of(model)
    for name, length in (("max_length", max_length), ("max_source_length", max_source_length)):
        if positions is not None and length > positions:
            raise OptionError(f"{name}: the model has {positions} positions, {length} are too many")
    own, read = _layer_shapes(model)
    cache = CacheBuffers(own, batch, aligned_slots(model, max_length), is_quantized(kv_cache))
    source = CacheBuffers(read, batch, aligned_slots(model, max_source_length), is_quantized(kv_cache))
    ids, mask = torch.ones(batch, 5, dtype=torch.int64), torch.ones(batch, 5, dtype=torch.int64)
    length = torch.export.Dim.AUTO(min=2, max=source.slots)
    filled = torch.export.Dim.AUTO(min=2, max=cache.slots)
    preparation = Preparation()
    return (
        compiled_entry(
            SourceEntry(model, cache, source),
            (ids, mask, ids[:, :1]),
            ({1: length}, {1: length}, None),
            chosen,
            preparation,
        ),
        compiled_entry(
            TargetEntry(model, cache, source),
            (ids[:, :1], torch.arange(7), mask),
            (None, {0: filled}, {1: length}),
            chosen,
            preparation,
        ),
    )


def _layer_shapes(model: nn.Module) -> tuple[list[LayerShape], list[LayerShape]]:
    """What the decoder's layers keep of its own tokens, and of the source."""
    ids = torch.ones(1, 2, dtype=torch.int64)
    with torch.no_grad(), attending_to_buffers(model), _counted() as calls:
        seen = torch.ones(1, 1, 1, 2, dtype=torch.bool)
        cache = model(
            input_ids=ids,
            attention_mask=seen,
            decoder_input_ids=ids[:, :1],
            decoder_attention_mask=seen[..., :1],
            use_cache=True,
        ).past_key_values
    if not isinstance(cache, EncoderDecoderCache):
        raise CaptureError(f"{type(model).__name__}: keeps other things than keys and values of both texts")
    shapes = layer_shapes(lambda: cache.self_attention_cache), layer_shapes(lambda: cache.cross_attention_cache)
    if len(calls) < len(shapes[0]) + len(shapes[1]):
        raise CaptureError(
            f"{type(model).__name__}: its attention is its own, none of transformers' attention functions, so that it "
            "cannot be given this cache; compile it with pipeline.compile"
        )
    return shapes


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
