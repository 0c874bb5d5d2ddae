"""The entries of a decoder: a prompt, which fills the cache, and one or several tokens after those in it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from pipeline.frontend.generation.cached_attention import CacheBuffers, CacheView, attends_itself
from pipeline.frontend.generation.image_positions import ImagePositions
from pipeline.frontend.generation.size_tensors import SizesKnown, size_tensor


class PromptEntry(nn.Module):
    """Takes a prompt into an empty cache.

    Takes int64[batch, length], and int64[batch] with how many tokens at the start of a row are padding; and, of models
    that read more, `inputs`, which stand in the prompt where it has tokens for them. Returns the logits after the last
    token, f32[batch, vocabulary].
    """

    def __init__(
        self,
        model: nn.Module,
        cache: CacheBuffers,
        positions: ImagePositions | None = None,
        sizes: Mapping[str, list[Any]] | None = None,
    ):
        """Takes sizes of what else is read, by name."""
        super().__init__()
        self.model, self.cache, self.positions, self.sizes = model, cache, positions, dict(sizes or {})

    def forward(
        self, input_ids: torch.Tensor, padding: torch.Tensor, inputs: dict[str, torch.Tensor] | None = None
    ) -> torch.Tensor:
        """See the class."""
        if inputs is None:
            if self.positions is not None:
                self.positions.shift.zero_()
            return _prompt_logits(self.model, input_ids, padding, self.cache, {})
        read = inputs | {name: size_tensor(numbers) for name, numbers in self.sizes.items()}
        positions = None if self.positions is None else self.positions.of_prompt(input_ids, padding)
        with SizesKnown():
            return _prompt_logits(self.model, input_ids, padding, self.cache, read, positions)


class JoiningEntry(nn.Module):
    """Takes a prompt of one row into a cache of one row, from where it may be put into a row of another.

    Takes and returns what `PromptEntry` does for a batch of one.
    """

    def __init__(self, model: nn.Module, staged: CacheBuffers):
        super().__init__()
        self.model, self.staged = model, staged

    def forward(self, input_ids: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        """See the class."""
        return _prompt_logits(self.model, input_ids, padding, self.staged, {})


class StepEntry(nn.Module):
    """Takes one token after those in the cache.

    Takes int64[batch, 1]; padding as of the prompt; and `slots`, int64[filled], the numbers from 0, one for each slot
    that is filled then, that of the new token included. Returns the logits, f32[batch, vocabulary].
    """

    def __init__(self, model: nn.Module, cache: CacheBuffers, positions: ImagePositions | None = None):
        super().__init__()
        self.model, self.cache, self.positions = model, cache, positions

    def forward(self, input_ids: torch.Tensor, padding: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """See the class."""
        filled = slots.shape[0]
        present = slots[None] >= padding[:, None]
        positions = _shifted(filled - 1 - padding[:, None], self.positions)
        cache = CacheView(self.cache, filled - 1, filled, len(input_ids))
        return _logits(self.model, input_ids, _Seen(present, present[:, None, None]), positions, cache)


class ExtendEntry(nn.Module):
    """Takes several tokens after those in the cache.

    Takes int64[batch, length]; padding as of the prompt; `before`, int64[filled], the numbers from 0, one for each slot
    that is filled already; and `kept`, int64[count], after which of the new tokens logits are wanted. Returns these,
    f32[batch, count, vocabulary].
    """

    def __init__(self, model: nn.Module, cache: CacheBuffers, positions: ImagePositions | None = None):
        super().__init__()
        self.model, self.cache, self.positions = model, cache, positions

    def forward(
        self, input_ids: torch.Tensor, padding: torch.Tensor, before: torch.Tensor, kept: torch.Tensor
    ) -> torch.Tensor:
        """See the class."""
        first, length = before.shape[0], input_ids.shape[1]
        own, slots = first + torch.arange(length), torch.arange(first + length)
        positions = _shifted((own[None] - padding[:, None]).clamp(min=0), self.positions)
        cache = CacheView(self.cache, first, first + length, len(input_ids))
        return _kept_logits(self.model, input_ids, _seen(own, slots, padding), positions, cache, kept)


@dataclass
class _Seen:
    """What tokens see of the slots.

    Attributes:
        present: bool[batch, slots], those that are no padding.
        by_tokens: bool[batch, 1, length, slots], of those the ones that do not come later.
    """

    present: torch.Tensor
    by_tokens: torch.Tensor


def _seen(own: torch.Tensor, slots: torch.Tensor, padding: torch.Tensor) -> _Seen:
    present = slots[None] >= padding[:, None]
    return _Seen(present, ((slots[None] <= own[:, None])[None] & present[:, None])[:, None])


def _shifted(positions: torch.Tensor, of_images: ImagePositions | None) -> torch.Tensor:
    """The positions of tokens behind a prompt, which are their slots where no image is in it."""
    return positions if of_images is None else positions + of_images.shift


def _prompt_logits(
    model: nn.Module,
    input_ids: torch.Tensor,
    padding: torch.Tensor,
    cache: CacheBuffers,
    inputs: Mapping[str, torch.Tensor],
    positions: torch.Tensor | None = None,
) -> torch.Tensor:
    length = input_ids.shape[1]
    slots = torch.arange(length)
    positions = (slots[None] - padding[:, None]).clamp(min=0) if positions is None else positions
    view = CacheView(cache, 0, length, len(input_ids))
    return _logits(model, input_ids, _seen(slots, slots, padding), positions, view, inputs)


def _logits(
    model: nn.Module,
    input_ids: torch.Tensor,
    seen: _Seen,
    positions: torch.Tensor,
    cache: CacheView,
    inputs: Mapping[str, torch.Tensor] = MappingProxyType({}),
) -> torch.Tensor:
    last = torch.full([1], input_ids.shape[1] - 1)  # `torch.tensor` would make a number of the length
    return _kept_logits(model, input_ids, seen, positions, cache, last, inputs)[:, -1]


def _kept_logits(
    model: nn.Module,
    input_ids: torch.Tensor,
    seen: _Seen,
    positions: torch.Tensor,
    cache: CacheView,
    kept: torch.Tensor,
    inputs: Mapping[str, torch.Tensor] = MappingProxyType({}),
) -> torch.Tensor:
    results = called(
        model,
        input_ids=input_ids,
        # Models that read more make a mask themselves: images see all of themselves in some.
        attention_mask=seen.present if inputs else _mask(model, seen, cache),
        position_ids=positions,
        past_key_values=cache,
        cache_params=cache,
        use_cache=True,
        logits_to_keep=kept,
        **inputs,
    )
    return results.logits.float() if takes(model, "logits_to_keep") else results.logits[:, kept].float()


def called(model: nn.Module, **arguments: Any) -> Any:
    """What a model makes of those of the arguments that it takes."""
    return model(**{name: value for name, value in arguments.items() if takes(model, name)})


def takes(model: nn.Module, argument: str) -> bool:
    """Whether a model has an argument of this name."""
    return argument in inspect.signature(model.forward).parameters


def _mask(model: nn.Module, seen: _Seen, cache: CacheView) -> torch.Tensor | None:
    """The mask as a model takes it: where layers have states, which tokens are padding, of all or of the new ones."""
    if cache.buffers.has_states:
        is_step = seen.by_tokens.shape[2] == 1
        new = None if is_step else seen.present[:, cache.first :]
        return seen.present if cache.buffers.has_keys else new
    return mask_of(model, seen.by_tokens)


def mask_of(model: nn.Module, seen: torch.Tensor) -> torch.Tensor:
    """What tokens see of the slots, bool[batch, 1, length, slots], as a mask for the model's attention."""
    if not attends_itself(model):
        return seen
    return torch.zeros_like(seen, dtype=model.dtype).masked_fill(~seen, torch.finfo(model.dtype).min)
