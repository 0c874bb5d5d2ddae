"""Language models that generate: a prompt and a step compiled once, around one cache in memory of its own.

lm = pipeline.generation.compile(model, max_length=512)  # a decoder of transformers
ids = lm.generate(input_ids, max_new_tokens=100)  # equal to model.generate's

lm.save("model.pipeline", tokenizer="tokenizer.json")
pipeline.generation.load("model.pipeline").generate(ids)  # NumPy arrays in and out; torch is not needed
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.installation import require_compiler

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.generation.language_model import LanguageModel

__all__ = ["compile", "load"]


def compile(model: Any, max_length: int, *, batch: int = 1, kv_cache: str = "model", **options: Any) -> LanguageModel:
    """Compiles one of transformers' decoders to what generates.

    Args:
        model: as `AutoModelForCausalLM` gives it. Its weights are read where they are, as of any executable.
        max_length: how many tokens the cache has room for, those of the prompt included.
        batch: how many rows at most go side by side.
        kv_cache: what keys and values are kept as: `model`, as the model computes them, or `int8` to round them to
            bytes with a scale for each head and token.
        options: see `pipeline.options.Options`.

    Raises:
        CaptureError: the model is none of transformers' decoders, or its attention is none that this knows.
        OptionError: an option is unknown, or a number is out of range.
    """
    require_compiler()
    from pipeline.frontend.generation.entries import compile_entries
    from pipeline.generation.language_model import LanguageModel
    from pipeline.generation.settings import Settings

    prefill, decode, extend = compile_entries(model, max_length, batch, kv_cache, options)
    return LanguageModel(prefill, decode, extend, Settings.of_config(model.generation_config.to_dict()))


def load(path: str | Path) -> LanguageModel:
    """Loads what `LanguageModel.save` wrote; needs neither torch nor MLIR.

    Raises:
        ArtifactError: the file is no language model, is cut short, or is for another version or CPU.
    """
    from pipeline.generation.language_model import LanguageModel

    return LanguageModel.load(path)
