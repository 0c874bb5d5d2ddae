"""What language models are timed by: a step after filled slots, or a prompt, with weights of a kind.

`LANGUAGE` has them by name. The model is a Llama with random weights of 0.29 B parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from workloads import Made, Workload, define_missing_operators

#: Of the Llama.
SIZES = {
    "vocab_size": 32000,
    "hidden_size": 1024,
    "num_hidden_layers": 20,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "intermediate_size": 2816,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
}


@dataclass(frozen=True)
class Numbers:
    """What a contestant may compute with.

    Attributes:
        bits: of the weights of matrix products: 32 and 16 are floats, 16 means bf16; 8 and 4 are integers.
        group: how many weights of a column share a scale at most; None where the contestant may choose.
        quantized_data: whether what weights are multiplied with may be rounded to bytes, too.
    """

    bits: int
    group: int | None = None
    quantized_data: bool = False


class LastLogits(nn.Module):
    """A decoder of transformers without its cache: (int64[1, N] filled, int64[1, M] ids) -> f32[1, vocabulary].

    Attributes:
        decoder: with weights in f32.
        numbers: what a contestant may compute with.
    """

    def __init__(self, decoder: nn.Module, numbers: Numbers):
        super().__init__()
        self.decoder, self.numbers = decoder, numbers

    def forward(self, filled: Tensor, ids: Tensor) -> Tensor:
        return self.decoder(torch.cat((filled, ids), 1), use_cache=False, logits_to_keep=1).logits[:, -1]


@dataclass(frozen=True)
class LanguageWorkload(Workload):
    """A call of a language model; the inputs are the tokens that fill the cache, and those of the call."""

    def measures(self, results: Sequence[Any], wanted: Sequence[Tensor]) -> dict[str, float]:
        """The divergence of the next token's distribution from that of the model in float64, in nats."""
        found, right = (torch.as_tensor(one[0]).double().log_softmax(-1) for one in (results, wanted))
        return {"divergence": (right.exp() * (right - found)).sum().item()}


def workload(filled: int, count: int, numbers: Numbers) -> LanguageWorkload:
    """A call that takes `count` tokens after those that are filled."""

    def create() -> Made:
        define_missing_operators()  # transformers imports torchvision
        from transformers import LlamaConfig, LlamaForCausalLM

        model = LlamaForCausalLM(LlamaConfig(**SIZES))
        ids = torch.randint(0, SIZES["vocab_size"], (1, filled + count))
        return LastLogits(model, numbers), (ids[:, :filled], ids[:, filled:])

    return LanguageWorkload(create)


def _decode(bits: int, group: int | None = None, quantized_data: bool = False, filled: int = 200) -> LanguageWorkload:
    return workload(filled, 1, Numbers(bits, group, quantized_data))


def _prompt(count: int, bits: int, group: int | None = None, quantized_data: bool = False) -> LanguageWorkload:
    return workload(0, count, Numbers(bits, group, quantized_data))


LANGUAGE: dict[str, Workload] = {
    "L1_step_f32": _decode(32),
    "L2_step_bf16": _decode(16),
    "L2_step_bf16_1900": _decode(16, filled=1900),
    "L3_step_int8": _decode(8),
    "L3_step_int8_data": _decode(8, quantized_data=True),
    "L4_step_int4_g32": _decode(4, 32),
    "L4_step_int4_g128_data": _decode(4, 128, quantized_data=True),
    "L5_prompt128_f32": _prompt(128, 32),
    "L5_prompt128_bf16": _prompt(128, 16),
    "L5_prompt128_int8_data": _prompt(128, 8, quantized_data=True),
    "L6_prompt512_bf16": _prompt(512, 16),
    "L6_prompt512_int8_data": _prompt(512, 8, quantized_data=True),
}
