"""Language models that generate: a prompt and a step compiled once, around one cache in memory of its own.

lm = pipeline.generation.compile(model, max_length=512)  # a decoder of transformers, or a model with an encoder
ids = lm.generate(input_ids, max_new_tokens=100)  # equal to model.generate's

lm.save("model.pipeline", tokenizer="tokenizer.json")
pipeline.generation.load("model.pipeline").generate(ids)  # NumPy arrays in and out; torch is not needed
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.errors import OptionError
from pipeline.installation import require_compiler

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeline.generation.language_model import LanguageModel

__all__ = ["compile", "load"]


def compile(
    model: Any,
    max_length: int,
    *,
    batch: int = 1,
    kv_cache: str = "model",
    max_source_length: int | None = None,
    inputs: Mapping[str, Any] | None = None,
    **options: Any,
) -> LanguageModel:
    """Compiles one of transformers' decoders, or of its models with an encoder, to what generates.

    Args:
        model: as `AutoModelForCausalLM` or `AutoModelForSeq2SeqLM` gives it. Its weights are read where they are, as of
            any executable.
        max_length: how many tokens the cache has room for, those of the prompt included.
        batch: how many rows at most go side by side.
        kv_cache: what keys and values are kept as: `model`, as the model computes them, or `int8` to round them to
            bytes with a scale for each head and token.
        max_source_length: how many tokens the encoder of a model reads at most; None for as many as `max_length`.
        inputs: an example, for one row, of what a model reads besides tokens or instead of them, as a processor of
            transformers gives it: `pixel_values`, `input_features`, and so on. Calls give as much for each row.
        options: see `pipeline.options.Options`.

    Raises:
        CaptureError: the model is none of transformers' that predict tokens, or its attention is none that this knows.
        OptionError: an option is unknown or not for such models, or a number is out of range.
    """
    require_compiler()
    from pipeline.frontend.generation.decoder import compile_decoder
    from pipeline.frontend.generation.inputs import ExampleInputs
    from pipeline.generation.inputs import ExpectedInputs
    from pipeline.generation.language_model import LanguageModel
    from pipeline.generation.settings import Settings

    settings = Settings.of_config(model.generation_config.to_dict()) if hasattr(model, "generation_config") else None
    if settings is not None and getattr(model.config, "is_encoder_decoder", False):
        from pipeline.frontend.generation.encoder_decoder import adds_decoder_start, compile_encoder_decoder
        from pipeline.frontend.generation.speech_tokens import speech_tokens
        from pipeline.generation.encoder_decoder import EncoderDecoderModel
        from pipeline.generation.speech import SpeechModel

        entries = compile_encoder_decoder(model, max_length, max_source_length, batch, kv_cache, inputs, options)
        settings, speech = settings.but(adds_decoder_start=adds_decoder_start(model)), speech_tokens(model)
        return EncoderDecoderModel(*entries, settings) if speech is None else SpeechModel(*entries, settings, speech)
    if max_source_length is not None:
        raise OptionError("max_source_length: the model has no encoder: leave it out")
    example = None if inputs is None else ExampleInputs.of(inputs, model.config)
    made = compile_decoder(model, max_length, batch, kv_cache, example, options)
    assert settings is not None
    expected = None if example is None else ExpectedInputs(example.placeholders, example.numbers(1))
    return LanguageModel(
        made.prefill, made.decode, made.extend, settings, join=made.join, text=made.text, expected=expected
    )


def load(path: str | Path) -> LanguageModel:
    """Loads what `LanguageModel.save` wrote; needs neither torch nor MLIR.

    Raises:
        ArtifactError: the file is no language model, is cut short, or is for another version or CPU.
    """
    from pipeline.generation import files

    return files.load(path)
