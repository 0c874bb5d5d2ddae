"""Language models of transformers that go on with a text; they return their caches of keys and values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import transformers as tf

from architectures.architecture import Architecture, text
from architectures.encoders import TEXT

_SPECIAL: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
_LLAMA: dict[str, Any] = {**TEXT, **_SPECIAL, "num_key_value_heads": 1}
_GPT: dict[str, Any] = {"vocab_size": 61, "n_positions": 64, "n_embd": 32, "n_layer": 1, "n_head": 2, **_SPECIAL}


def _decoder(name: str, **options: Any) -> Architecture:
    return Architecture(lambda: getattr(tf, f"{name}ForCausalLM")(getattr(tf, f"{name}Config")(**options)), text)


DECODERS: dict[str, Architecture] = {
    "bloom": _decoder("Bloom", vocab_size=61, hidden_size=32, n_layer=1, n_head=2, **_SPECIAL),
    "codegen": _decoder("CodeGen", **{**_GPT, "n_head": 4}, rotary_dim=4),
    "falcon": _decoder("Falcon", **TEXT, **_SPECIAL),
    "gemma": _decoder("Gemma", **_LLAMA, head_dim=16),
    "gemma2": _decoder("Gemma2", **{**_LLAMA, "num_hidden_layers": 2}, head_dim=16, sliding_window=8),
    "gpt2": Architecture(lambda: tf.GPT2LMHeadModel(tf.GPT2Config(**_GPT)), text),
    "gpt-bigcode": _decoder("GPTBigCode", **_GPT),
    "gpt-neo": _decoder(
        "GPTNeo",
        vocab_size=61,
        hidden_size=32,
        num_layers=2,
        num_heads=2,
        attention_types=[[["global", "local"], 1]],
        window_size=4,
        max_position_embeddings=64,
        **_SPECIAL,
    ),
    "gpt-neox": _decoder("GPTNeoX", **TEXT, **_SPECIAL),
    "gptj": _decoder("GPTJ", **_GPT, rotary_dim=8),
    "llama": _decoder("Llama", **_LLAMA),
    "mamba": replace(  # which halves of its scan are odd depends on the length
        _decoder("Mamba", vocab_size=61, hidden_size=32, state_size=8, num_hidden_layers=1, **_SPECIAL), graphs=3
    ),
    "mistral": _decoder("Mistral", **_LLAMA, sliding_window=8),
    "mixtral": _decoder("Mixtral", **_LLAMA, num_local_experts=4),
    "mpt": _decoder("Mpt", vocab_size=61, d_model=32, n_heads=2, n_layers=1, **_SPECIAL),
    "olmo": _decoder("Olmo", **_LLAMA),
    "opt": _decoder(
        "OPT",
        vocab_size=61,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        ffn_dim=48,
        word_embed_proj_dim=32,
        max_position_embeddings=64,
        **_SPECIAL,
    ),
    "phi": _decoder("Phi", **_LLAMA),
    "phi3": _decoder("Phi3", **_LLAMA),
    "qwen2": _decoder("Qwen2", **_LLAMA),
    "qwen3": _decoder("Qwen3", **_LLAMA, head_dim=16),
    "stablelm": _decoder("StableLm", **_LLAMA),
    "starcoder2": _decoder("Starcoder2", **_LLAMA),
}
