"""The entries of a language model: a prompt, which fills the cache, and one or several tokens after those in it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from pipeline import compiler, gc_pause, interrupts, progress
from pipeline.errors import CaptureError, OptionError
from pipeline.frontend.generation.cached_attention import (
    CacheBuffers,
    CacheView,
    LayerShape,
    attending_to_buffers,
    attends_itself,
    layer_shapes,
    supports_attention_functions,
)
from pipeline.frontend.generation.entry_source import EntrySource
from pipeline.frontend.recurrent import recurrences_as_loops
from pipeline.generation.settings import KV_CACHES
from pipeline.options import Options
from pipeline.plugins import one_line
from pipeline.runtime.executable import Executable
from pipeline.runtime.weights.preparation import Preparation

#: How many slots are a whole number of the widest vectors.
_ALIGNED_SLOTS = 16

#: What configs call how many positions there are.
_POSITIONS = ("max_position_embeddings",)


class PromptEntry(nn.Module):
    """Takes a prompt into an empty cache.

    Takes int64[batch, length], and int64[batch] with how many tokens at the start of a row are padding; returns the
    logits after the last token, f32[batch, vocabulary].
    """

    def __init__(self, model: nn.Module, cache: CacheBuffers):
        super().__init__()
        self.model, self.cache = model, cache

    def forward(self, input_ids: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        """See the class."""
        return _prompt_logits(self.model, input_ids, padding, self.cache)


class JoiningEntry(nn.Module):
    """Takes a prompt of one row into a cache of one row, from where it may be put into a row of another.

    Takes and returns what `PromptEntry` does for a batch of one.
    """

    def __init__(self, model: nn.Module, staged: CacheBuffers):
        super().__init__()
        self.model, self.staged = model, staged

    def forward(self, input_ids: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        """See the class."""
        return _prompt_logits(self.model, input_ids, padding, self.staged)


class StepEntry(nn.Module):
    """Takes one token after those in the cache.

    Takes int64[batch, 1]; padding as of the prompt; and `slots`, int64[filled], the numbers from 0, one for each slot
    that is filled then, that of the new token included. Returns the logits, f32[batch, vocabulary].
    """

    def __init__(self, model: nn.Module, cache: CacheBuffers):
        super().__init__()
        self.model, self.cache = model, cache

    def forward(self, input_ids: torch.Tensor, padding: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """See the class."""
        filled = slots.shape[0]
        present = slots[None] >= padding[:, None]
        positions = filled - 1 - padding[:, None]
        cache = CacheView(self.cache, filled - 1, filled, len(input_ids))
        return _logits(self.model, input_ids, _Seen(present, present[:, None, None]), positions, cache)


class ExtendEntry(nn.Module):
    """Takes several tokens after those in the cache.

    Takes int64[batch, length]; padding as of the prompt; `before`, int64[filled], the numbers from 0, one for each slot
    that is filled already; and `kept`, int64[count], after which of the new tokens logits are wanted. Returns these,
    f32[batch, count, vocabulary].
    """

    def __init__(self, model: nn.Module, cache: CacheBuffers):
        super().__init__()
        self.model, self.cache = model, cache

    def forward(
        self, input_ids: torch.Tensor, padding: torch.Tensor, before: torch.Tensor, kept: torch.Tensor
    ) -> torch.Tensor:
        """See the class."""
        first, length = before.shape[0], input_ids.shape[1]
        own, slots = first + torch.arange(length), torch.arange(first + length)
        positions = (own[None] - padding[:, None]).clamp(min=0)
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


def _prompt_logits(
    model: nn.Module, input_ids: torch.Tensor, padding: torch.Tensor, cache: CacheBuffers
) -> torch.Tensor:
    length = input_ids.shape[1]
    slots = torch.arange(length)
    positions = (slots[None] - padding[:, None]).clamp(min=0)
    view = CacheView(cache, 0, length, len(input_ids))
    return _logits(model, input_ids, _seen(slots, slots, padding), positions, view)


def _logits(
    model: nn.Module, input_ids: torch.Tensor, seen: _Seen, positions: torch.Tensor, cache: CacheView
) -> torch.Tensor:
    last = torch.full([1], input_ids.shape[1] - 1)  # `torch.tensor` would make a number of the length
    return _kept_logits(model, input_ids, seen, positions, cache, last)[:, -1]


def _kept_logits(
    model: nn.Module,
    input_ids: torch.Tensor,
    seen: _Seen,
    positions: torch.Tensor,
    cache: CacheView,
    kept: torch.Tensor,
) -> torch.Tensor:
    results = called(
        model,
        input_ids=input_ids,
        attention_mask=_mask(model, seen, cache),
        position_ids=positions,
        past_key_values=cache,
        cache_params=cache,
        use_cache=True,
        logits_to_keep=kept,
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


def compile_entries(
    model: nn.Module, max_length: int, batch: int, kv_cache: str, options: dict[str, Any]
) -> tuple[Executable, Executable, Callable[[], Executable] | None, Callable[[], Executable] | None]:
    """The executables of `PromptEntry` and `StepEntry`, and what compiles `ExtendEntry` and `JoiningEntry`.

    They share the model's weights, what they prepare of these, and, but for the last, one cache. A model that goes on
    from its states token by token, as Mamba does, has none that extends. A batch of one has none that joins others.

    Raises:
        CaptureError: the model is none of transformers' that predict the next token, or keeps something else than
            keys and values of an attention and states.
        OptionError: the model has fewer positions than `max_length`, or there is no such cache.
    """
    chosen = options_of_entries(options, model)
    has_bytes = is_quantized(kv_cache)
    _check(model, max_length)
    ids, padding = torch.ones(batch, 2, dtype=torch.int64), torch.zeros(batch, dtype=torch.int64)
    with torch.no_grad():
        shapes = layer_shapes(lambda: _cache_of(model(input_ids=ids[:1], use_cache=True)))
        has_states = any(shape.states for shape in shapes)
        extends = True
        if has_states or not supports_attention_functions(model):
            text = _ExampleText.of(model, shapes)
            _check_entries(text)
            extends = not has_states or _extends(text)
    slots = aligned_slots(model, max_length)
    cache = CacheBuffers(shapes, batch, slots, quantized=has_bytes)
    length = torch.export.Dim.AUTO(min=2, max=slots)
    prompt = ids.new_ones(batch, min(5, slots))
    filled, preparation = torch.arange(min(7, slots)), Preparation()

    def compiled(entry: nn.Module, args: tuple[Any, ...], dynamic_shapes: Any) -> Executable:
        return compiled_entry(entry, args, dynamic_shapes, chosen, preparation)

    def joining() -> Executable:
        staged = CacheBuffers(shapes, 1, slots, quantized=has_bytes)
        return compiled(JoiningEntry(model, staged), (prompt[:1], padding[:1]), ({1: length}, None))

    several = torch.export.Dim.AUTO(min=2, max=slots)
    extending = functools.partial(
        compiled,
        ExtendEntry(model, cache),
        (ids.new_ones(batch, 3), padding, torch.arange(4), torch.arange(2)),
        ({1: several}, None, {0: several}, {0: several}),
    )
    return (
        compiled(PromptEntry(model, cache), (prompt, padding), ({1: length}, None)),
        compiled(StepEntry(model, cache), (ids[:, :1], padding, filled), (None, None, {0: length})),
        extending if extends else None,
        joining if batch > 1 else None,
    )


def is_quantized(kv_cache: str) -> bool:
    """Whether a cache is one of bytes; raises `OptionError` where there is no such cache."""
    if kv_cache not in KV_CACHES:
        raise OptionError(f"kv_cache: expected one of {', '.join(KV_CACHES)}, got {kv_cache!r}")
    return kv_cache == "int8"


def aligned_slots(model: nn.Module, max_length: int, attributes: Sequence[str] = _POSITIONS) -> int:
    """How many tokens the cache has room for: no more than the model has positions."""
    aligned = -(-max_length // _ALIGNED_SLOTS) * _ALIGNED_SLOTS
    positions = positions_of(model, attributes)
    return aligned if positions is None or aligned <= positions else max_length


def positions_of(model: nn.Module, attributes: Sequence[str] = _POSITIONS) -> int | None:
    """How many positions a model has, by the first of the attributes that its config has; None for any number."""
    config = model.config.get_text_config(decoder=True)
    return next((getattr(config, name) for name in attributes if hasattr(config, name)), None)


def options_of_entries(options: dict[str, Any], model: nn.Module) -> Options:
    """The options of a compilation, with names of the model's weights as the entries call them."""
    chosen = Options.create(options)
    chosen = compiler.with_kept_weights(chosen, dict(model.named_parameters(remove_duplicate=False)))
    return replace(chosen, keep=tuple(f"model.{pattern}" for pattern in chosen.keep))


def compiled_entry(
    entry: nn.Module,
    args: tuple[Any, ...],
    dynamic_shapes: Any,
    options: Options,
    preparation: Preparation,
    missed: str = "",
) -> Executable:
    """An entry as an executable; those that share a preparation prepare weights once.

    Args:
        missed: what a remark says about it, if anything.
    """
    with gc_pause.left(), interrupts.kept(), progress.reported(options.verbose):
        source = EntrySource(entry, args, dynamic_shapes, options, preparation, missed)
        return compiler.compile_source(source, options, compiler.target_for(options))


def _check(model: nn.Module, max_length: int) -> None:
    config = getattr(model, "config", None)
    if config is None or not hasattr(model, "generate") or getattr(config, "is_encoder_decoder", False):
        raise CaptureError(
            f"{type(model).__name__}: expected one of transformers' decoders, such as AutoModelForCausalLM gives"
        )
    if "chunked_attention" in (getattr(config.get_text_config(), "layer_types", None) or ()):
        raise CaptureError(
            f"{type(model).__name__}: its attention sees chunks of the text, which generation has not yet; compile it "
            "with pipeline.compile"
        )
    positions = positions_of(model)
    if positions is not None and max_length > positions:
        raise OptionError(f"max_length: the model has {positions} positions, {max_length} are too many")


def _cache_of(results: Any) -> Any:
    """transformers' cache, by either of the names that it has."""
    found = getattr(results, "past_key_values", None)
    return getattr(results, "cache_params", None) if found is None else found


def _check_entries(text: _ExampleText) -> None:
    """Raises `CaptureError` if a model makes something else of what it is given here than of what is usual."""
    why = ""
    try:
        agree = text.agrees(_step_by_step)
    except Exception as error:  # whatever a model does with what it does not expect
        agree, why = False, f" ({one_line(error)})"
    if not agree:
        raise CaptureError(
            f"{type(text.model).__name__}: {_what_is_unknown(text)}{why}, so that it cannot be given this cache; "
            "compile it with pipeline.compile"
        )


def _what_is_unknown(text: _ExampleText) -> str:
    if any(shape.states for shape in text.shapes):
        return "keeps states of a kind that generation has not yet"
    if attends_itself(text.model):
        return (
            "its attention is its own, none of transformers' attention functions, and takes no masks of [batch, 1, "
            "tokens, slots]"
        )
    return "makes something else of masks and positions than models do whose attention is known"


def _extends(text: _ExampleText) -> bool:
    """Whether a model goes on from its states with several tokens at once: transformers' Mamba begins anew."""
    return text.agrees(_at_once)


def _step_by_step(model: nn.Module, ids: torch.Tensor, padding: torch.Tensor, cache: CacheBuffers) -> torch.Tensor:
    """The logits after the last two tokens: of a prompt, and of a step behind it."""
    prompt = PromptEntry(model, cache)(ids[:, :-1], padding)
    return torch.stack([prompt, StepEntry(model, cache)(ids[:, -1:], padding, torch.arange(ids.shape[1]))], 1)


def _at_once(model: nn.Module, ids: torch.Tensor, padding: torch.Tensor, cache: CacheBuffers) -> torch.Tensor:
    """The logits after the last two tokens, which come at once behind a prompt."""
    PromptEntry(model, cache)(ids[:, :-2], padding)
    return ExtendEntry(model, cache)(ids[:, -2:], padding, torch.arange(ids.shape[1] - 2), torch.arange(2))


@dataclass
class _ExampleText:
    """Two rows of tokens, of which one has padding.

    Attributes:
        model, shapes: what is to take them, and what its layers cache.
        ids: int64[2, length].
        padding: int64[2].
        logits: what a model makes of them without a cache, after the last two tokens.
    """

    model: nn.Module
    shapes: Sequence[LayerShape]
    ids: torch.Tensor
    padding: torch.Tensor
    logits: torch.Tensor

    @classmethod
    def of(cls, model: nn.Module, shapes: Sequence[LayerShape]) -> _ExampleText:
        """Runs the model."""
        ids, mask = torch.arange(12).view(2, 6) % model.get_input_embeddings().num_embeddings, torch.ones(2, 6).long()
        mask[1, :2] = 0
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        results = called(model, input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False)
        return cls(model, shapes, ids, (mask == 0).sum(1), results.logits[:, -2:].float())

    def agrees(self, run: Callable[[nn.Module, torch.Tensor, torch.Tensor, CacheBuffers], torch.Tensor]) -> bool:
        """Whether entries that are run on the model, the text and an empty cache give these logits."""
        cache = CacheBuffers(self.shapes, len(self.ids), _ALIGNED_SLOTS)
        with attending_to_buffers(self.model), recurrences_as_loops(self.model):
            difference = (run(self.model, self.ids, self.padding, cache) - self.logits).abs().max()
        return bool(difference <= torch.finfo(self.model.dtype).eps ** 0.5 * self.logits.abs().max())
