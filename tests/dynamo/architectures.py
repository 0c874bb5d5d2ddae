"""Architectures of transformers made small: `ARCHITECTURES[name]()` gives (model, what makes its inputs)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers as tf

Inputs = Callable[[int, int], dict[str, torch.Tensor]]

_VISION: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 48,
}
_TEXT: dict[str, Any] = {**_VISION, "vocab_size": 61}


def _ids(rows: int, length: int) -> torch.Tensor:
    return torch.randint(3, 60, (rows, length))


def _text(rows: int, length: int) -> dict[str, torch.Tensor]:
    return {"input_ids": _ids(rows, length)}


def _pixels(rows: int, length: int) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(rows, 3, 32, 32)}


def _clip() -> tuple[torch.nn.Module, Inputs]:
    text = {**_TEXT, "max_position_embeddings": 32, "eos_token_id": 2}
    vision = {**_VISION, "image_size": 32, "patch_size": 8}
    config = tf.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    return tf.CLIPModel(config), lambda rows, length: {**_text(rows, length), **_pixels(rows, length)}


def _whisper() -> tuple[torch.nn.Module, Inputs]:
    config = tf.WhisperConfig(
        vocab_size=61,
        num_mel_bins=8,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_source_positions=20,
        max_target_positions=32,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )

    def inputs(rows: int, length: int) -> dict[str, torch.Tensor]:
        return {"input_features": torch.randn(rows, 8, 40), "decoder_input_ids": _ids(rows, length)}

    return tf.WhisperModel(config), inputs


def _t5() -> tuple[torch.nn.Module, Inputs]:
    config = tf.T5Config(vocab_size=61, d_model=32, d_kv=16, d_ff=48, num_layers=1, num_heads=2)
    model = tf.T5ForConditionalGeneration(config)
    return model, lambda rows, length: {"input_ids": _ids(rows, length), "decoder_input_ids": _ids(rows, length - 1)}


ARCHITECTURES: dict[str, Callable[[], tuple[torch.nn.Module, Inputs]]] = {
    "albert": lambda: (tf.AlbertModel(tf.AlbertConfig(**_TEXT, embedding_size=16)), _text),
    "bert": lambda: (tf.BertModel(tf.BertConfig(**_TEXT)), _text),
    "clip": _clip,
    "distilbert": lambda: (
        tf.DistilBertModel(tf.DistilBertConfig(vocab_size=61, dim=32, n_layers=1, n_heads=2, hidden_dim=48)),
        _text,
    ),
    "gpt2": lambda: (
        tf.GPT2LMHeadModel(
            tf.GPT2Config(vocab_size=61, n_positions=64, n_embd=32, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=2)
        ),
        _text,
    ),
    "llama": lambda: (tf.LlamaForCausalLM(tf.LlamaConfig(**_TEXT, num_key_value_heads=1)), _text),
    "mistral": lambda: (
        tf.MistralForCausalLM(tf.MistralConfig(**_TEXT, num_key_value_heads=1, sliding_window=8, use_cache=False)),
        _text,
    ),
    "roberta": lambda: (
        tf.RobertaModel(tf.RobertaConfig(**_TEXT, pad_token_id=1, max_position_embeddings=40)),
        _text,
    ),
    "swin": lambda: (
        tf.SwinModel(
            tf.SwinConfig(image_size=32, patch_size=2, embed_dim=8, depths=[1, 1], num_heads=[1, 2], window_size=4)
        ),
        _pixels,
    ),
    "t5": _t5,
    "vit": lambda: (tf.ViTModel(tf.ViTConfig(**_VISION, image_size=32, patch_size=8)), _pixels),
    "whisper": _whisper,
}
