"""Models of transformers with two parts: an encoder and a decoder, or one for text and one for images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers as tf

from architectures.architecture import Architecture, Given, ids, pixels, text
from architectures.encoders import HIDDEN, TEXT

_SPECIAL: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
_BART: dict[str, Any] = {
    "vocab_size": 61,
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    **_SPECIAL,
}


def _both_texts(rows: int, length: int) -> Given:
    return {"input_ids": ids(rows, length), "decoder_input_ids": ids(rows, length - 1)}


def _text_and_pixels(rows: int, length: int) -> Given:
    return {**text(rows, length), **pixels(rows, 32)}


def _speech(rows: int, length: int) -> Given:
    return {"input_features": torch.randn(rows, 8, 40), "decoder_input_ids": ids(rows, length)}


def _pair(model: str, config: str, **options: Any) -> Architecture:
    return Architecture(lambda: getattr(tf, model)(getattr(tf, config)(**options)), _both_texts)


def _two_towers(name: str, **options: Any) -> Callable[[], torch.nn.Module]:
    def build() -> torch.nn.Module:
        config = getattr(tf, f"{name}Config")(
            text_config={**TEXT, "max_position_embeddings": 32, "eos_token_id": 2},
            vision_config={**HIDDEN, "image_size": 32, "patch_size": 8},
            **options,
        )
        return getattr(tf, f"{name}Model")(config)

    return build


def _whisper() -> torch.nn.Module:
    config = tf.WhisperConfig(**_BART, num_mel_bins=8, max_source_positions=20, max_target_positions=32)
    return tf.WhisperModel(config)


PAIRS: dict[str, Architecture] = {
    "bart": _pair("BartModel", "BartConfig", **_BART, max_position_embeddings=64),
    "clip": Architecture(_two_towers("CLIP", projection_dim=16), _text_and_pixels),
    "marian": _pair("MarianModel", "MarianConfig", **_BART, max_position_embeddings=64),
    "pegasus": _pair("PegasusModel", "PegasusConfig", **_BART, max_position_embeddings=64),
    "siglip": Architecture(_two_towers("Siglip"), _text_and_pixels),
    "t5": _pair(
        "T5ForConditionalGeneration", "T5Config", vocab_size=61, d_model=32, d_kv=16, d_ff=48, num_layers=1, num_heads=2
    ),
    "whisper": Architecture(_whisper, _speech),
}
