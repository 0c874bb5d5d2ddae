"""A folder of a checkpoint of transformers, compiled for pipeline-generate."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pipeline import generation
from pipeline.errors import PipelineError
from pipeline.generation.language_model import LanguageModel

#: How many tokens the cache has room for where nobody says, of models that have as many positions.
_MAX_LENGTH = 1024


#: The options of the compiler that the driver has.
_OPTIONS = ("precision", "weights", "zero_points", "activations", "keep")


def compile_checkpoint(arguments: argparse.Namespace) -> LanguageModel:
    """Loads the checkpoint, its tokenizer and generation config, and compiles it; nothing is downloaded.

    Raises:
        PipelineError: it cannot be loaded, or transformers is not there.
    """
    options: dict[str, Any] = {name: getattr(arguments, name) for name in _OPTIONS}
    if arguments.group is not None:
        options["group"] = arguments.group
    model = _loaded(arguments.model)
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None) or _MAX_LENGTH
    length = arguments.max_length or min(_MAX_LENGTH, positions)
    rows = max(arguments.batch, arguments.num_beams or 1)
    lm = generation.compile(model, length, batch=rows, kv_cache=arguments.kv_cache, **options)
    tokenizer = Path(arguments.model) / "tokenizer.json"
    lm.tokenizer = tokenizer.read_bytes() if tokenizer.is_file() else None
    return lm


def _loaded(folder: str) -> Any:
    try:
        from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM
    except ImportError:
        raise PipelineError("a checkpoint needs the package transformers: pip install transformers") from None
    try:
        has_encoder = AutoConfig.from_pretrained(folder, local_files_only=True).is_encoder_decoder
        kind = AutoModelForSeq2SeqLM if has_encoder else AutoModelForCausalLM
        model = kind.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # transformers raises many types
        raise PipelineError(f"{folder}: transformers cannot load it: {error}") from error
    return model.eval().requires_grad_(False)
