"""A decoder compiled: the executables of its entries, which share weights and a cache."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from pipeline.errors import CaptureError, OptionError
from pipeline.frontend.generation.cached_attention import (
    CacheBuffers,
    cache_of,
    layer_shapes,
    supports_attention_functions,
)
from pipeline.frontend.generation.compiled_entry import (
    aligned_slots,
    compiled_entry,
    is_quantized,
    of_any_length,
    options_of_entries,
    positions_of,
)
from pipeline.frontend.generation.entries import ExtendEntry, JoiningEntry, PromptEntry, StepEntry
from pipeline.frontend.generation.example_text import ExampleText
from pipeline.frontend.generation.image_positions import ImagePositions
from pipeline.frontend.generation.inputs import ExampleInputs
from pipeline.plugins import one_line
from pipeline.runtime.executable import Executable
from pipeline.runtime.weights.preparation import Preparation


@dataclass(frozen=True)
class DecoderEntries:
    """The executables of a decoder, and what compiles those that may not be needed; None for those there are not.

    Attributes:
        prefill, decode: of `PromptEntry` and `StepEntry`.
        extend: of `ExtendEntry`; there is none for a model that goes on from its states token by token, as Mamba does.
        join: of `JoiningEntry`; there is none for a batch of one.
        text: of `PromptEntry` for prompts without what `prefill` takes besides, if it takes more.
    """

    prefill: Executable
    decode: Executable
    extend: Callable[[], Executable] | None
    join: Callable[[], Executable] | None
    text: Callable[[], Executable] | None


def compile_decoder(
    model: nn.Module,
    max_length: int,
    batch: int,
    kv_cache: str,
    example: ExampleInputs | None,
    options: dict[str, Any],
) -> DecoderEntries:
    """The entries of a decoder, which share its weights, what they prepare of these, and, but for `join`, one cache.

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
        shapes = layer_shapes(lambda: _cached(model, example))
        has_states = any(shape.states for shape in shapes)
        extends, positions = True, None
        if has_states or not supports_attention_functions(model):
            text = ExampleText.of(model, shapes, None)
            text.check_steps()
            extends = not has_states or text.extends
        if example is not None:
            ExampleText.of(model, shapes, example).check_steps()
            positions = ImagePositions.of(model, example)
    slots = aligned_slots(model, max_length)
    cache = CacheBuffers(shapes, batch, slots, quantized=has_bytes)
    length = torch.export.Dim.AUTO(min=2, max=slots)
    prompt = ids.new_ones(batch, min(5, slots))
    filled, preparation = torch.arange(min(7, slots)), Preparation()

    def compiled(entry: nn.Module, args: tuple[Any, ...], dynamic_shapes: Any) -> Executable:
        return compiled_entry(entry, args, dynamic_shapes, chosen, preparation)

    def texts() -> Executable:
        entry = PromptEntry(model, cache, positions)
        return of_any_length(compiled(entry, (prompt, padding), ({1: length}, None)))

    def joining() -> Executable:
        staged = CacheBuffers(shapes, 1, slots, quantized=has_bytes)
        return of_any_length(compiled(JoiningEntry(model, staged), (prompt[:1], padding[:1]), ({1: length}, None)))

    several = torch.export.Dim.AUTO(min=2, max=slots)
    extending = functools.partial(
        compiled,
        ExtendEntry(model, cache, positions),
        (ids.new_ones(batch, 3), padding, torch.arange(4), torch.arange(2)),
        ({1: several}, None, {0: several}, {0: several}),
    )
    if example is None:
        prefill = texts()
    else:
        whole, by_token = example.of_texts(example.ids.repeat(batch, 1), [0] * batch), example.by_token()
        shapes_of_inputs = {name: {1: length} if name in by_token else None for name in whole}
        entry = PromptEntry(model, cache, positions, example.numbers(batch))
        args = (example.ids.repeat(batch, 1), padding, whole)
        prefill = of_any_length(compiled(entry, args, ({1: length}, None, shapes_of_inputs)))
    return DecoderEntries(
        prefill,
        compiled(StepEntry(model, cache, positions), (ids[:, :1], padding, filled), (None, None, {0: length})),
        extending if extends else None,
        joining if batch > 1 and example is None else None,
        None if example is None else texts,
    )


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


def _cached(model: nn.Module, example: ExampleInputs | None) -> Any:
    """The cache of a text of one row; a model that always reads more is given the example."""
    try:
        return cache_of(model(input_ids=torch.ones(1, 2, dtype=torch.int64), use_cache=True))
    except Exception as error:  # whatever a model does with what it does not expect
        if example is None:
            raise CaptureError(
                f"{type(model).__name__}: does not take input_ids alone ({one_line(error)}); give an example of what "
                "it reads, inputs=.., as a processor of transformers gives it"
            ) from error
        return cache_of(model(input_ids=example.ids, **example.inputs, use_cache=True))
