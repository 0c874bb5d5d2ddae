"""Small random language models of transformers, one of each kind, and prompts."""

from __future__ import annotations

import torch
import transformers as tf
from torchvision_ops import define_missing_operators

define_missing_operators()  # transformers imports torchvision where there is one

VOCABULARY = 97

_SIZES = {
    "vocab_size": VOCABULARY,
    "bos_token_id": 1,
    "eos_token_id": None,
    "pad_token_id": 0,
    "tie_word_embeddings": False,  # such a model repeats a token
}
_HIDDEN = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
}
_SHALLOW = {"num_hidden_layers": 1}  # where layers do not differ, a test of one says as much
_EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
_SHARED = _SIZES | _HIDDEN | {"num_key_value_heads": 2}

#: What is cached of a token is little, and each step computes keys and values from it.
_LATENT = {
    "num_key_value_heads": 4,
    "kv_lora_rank": 16,
    "q_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 12,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "moe_intermediate_size": 24,
    "n_group": 1,
    "topk_group": 1,
}


def _decoder(name, **options):
    return lambda: tf.AutoModelForCausalLM.from_config(getattr(tf, f"{name}Config")(**options))


_MODELS = {
    "gpt2": _decoder("GPT2", n_embd=32, n_layer=1, n_head=4, n_positions=256, **_SIZES),
    "llama": _decoder("Llama", **_SHARED),
    "mistral": _decoder("Mistral", **_SHARED | _SHALLOW, sliding_window=9),
    "qwen2": _decoder("Qwen2", **_SHARED, use_sliding_window=True, sliding_window=8, max_window_layers=1),
    "gemma": _decoder("Gemma", **_SHARED | _SHALLOW | {"num_key_value_heads": 1}, head_dim=16),
    "gemma2": _decoder("Gemma2", **_SHARED, head_dim=16, sliding_window=6),
    "phi": _decoder("Phi", **_SIZES | _HIDDEN | _SHALLOW),
    "mixtral": _decoder("Mixtral", **_SHARED | _SHALLOW | _EXPERTS),
    "gpt_oss": _decoder("GptOss", **_SHARED | _EXPERTS, head_dim=16, sliding_window=8),
    "biogpt": _decoder("BioGpt", **_SIZES | _HIDDEN | _SHALLOW),
    "deepseek_v2": _decoder("DeepseekV2", **_SHARED | _LATENT | _EXPERTS),
}

NAMES = tuple(_MODELS)

#: Models whose attention is none of transformers' attention functions.
_ATTENDING = {
    "falcon": _decoder("Falcon", **_SIZES | _SHALLOW, hidden_size=32, num_attention_heads=4),
    "xglm": _decoder(
        "XGLM", **_SIZES, d_model=32, ffn_dim=48, num_layers=1, attention_heads=4, max_position_embeddings=256
    ),
}

ATTENDING_NAMES = tuple(_ATTENDING)


_RECURRENT_FIRST = {"layer_types": ["linear_attention", "full_attention"]}
_DELTA_RULE = {
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "head_dim": 16,
}
_MAMBA_2 = {"mamba_n_heads": 4, "mamba_d_state": 8, "mamba_d_head": 16, "mamba_n_groups": 2, "mamba_chunk_size": 8}

#: Models of which layers keep states: the last tokens of a convolution, what a recurrence has come to, or both.
_WITH_STATES = {
    "lfm2": _decoder("Lfm2", **_SHARED, layer_types=["conv", "full_attention"]),
    "mamba": _decoder("Mamba", **_SIZES | _HIDDEN | _SHALLOW, state_size=8),
    "bamba": _decoder("Bamba", **_SHARED | _MAMBA_2, attn_layer_indices=[1]),
    "qwen3_5": _decoder("Qwen3_5Text", **_SHARED | _DELTA_RULE | _RECURRENT_FIRST),
    "kimi_linear": _decoder("KimiLinear", **_SHARED | _LATENT | {"first_k_dense_replace": 2} | _RECURRENT_FIRST),
}

STATE_NAMES = tuple(_WITH_STATES)


def small_model(name):
    """The model in evaluation; its weights are large enough that tokens do not repeat at once."""
    torch.manual_seed(0)
    return _scaled((_MODELS | _ATTENDING | _WITH_STATES)[name]())


def _scaled(model):
    model.eval().requires_grad_(False)
    for name, parameter in model.named_parameters():
        if parameter.ndim > 1:
            parameter.mul_(6)
        elif name.endswith("sinks"):
            parameter.mul_(100)  # or they are near zero in all heads
    return model


def attending_model(shared_heads, window, dtype):
    """A decoder of one layer: four heads that share keys and values of some, and see all or a window of the text."""
    torch.manual_seed(0)
    sizes = _SHARED | _SHALLOW | {"num_key_value_heads": shared_heads}
    return _scaled(_decoder("Mistral", **sizes, sliding_window=window)()).to(dtype)


def prompt(rows, length, seed=1):
    """Tokens [rows, length], none of which is padding."""
    return torch.randint(2, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(seed))


def eager(model, ids, **settings):
    """What transformers generates in eager mode."""
    mask = settings.pop("attention_mask", torch.ones_like(ids))
    return model.generate(ids, attention_mask=mask, **settings)


def traced_one_by_one(lm):
    """What remarks say of equal layers that were not traced once for all."""
    entries = (lm.prefill, lm.decode)
    return [one.reason for entry in entries for one in entry.remarks if "equal layers" in one.reason]
