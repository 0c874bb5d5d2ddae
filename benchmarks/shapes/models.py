"""Whole models of torchvision, timm and transformers with random weights, at batches of 1, 4 and 16."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
from torch import nn

from shapes.case import Case, Made

ROOT = Path(__file__).resolve().parents[2]

BATCHES = (1, 4, 16)


@dataclass(frozen=True)
class Model:
    """A model by its name in a library.

    Attributes:
        library: torchvision, timm, or the classes of transformers, `Model/Config`.
        name: what it is called.
        size: of its images, or how many tokens.
        options: of its configuration.
        field: of what transformers' models return.
    """

    library: str
    name: str
    size: int
    options: dict[str, Any] | None = None
    field: str = "last_hidden_state"

    def create(self, batch: int) -> Made:
        """The model and a batch."""
        for folder in ("tests", "tests/models"):
            sys.path.append(str(ROOT / folder))
        from random_weights import randomize
        from torchvision_ops import define_missing_operators

        define_missing_operators()  # timm and transformers import torchvision where there is one
        if self.library in _LIBRARIES:
            model = _LIBRARIES[self.library](self.name)
            return randomize(model), (torch.randn(batch, 3, self.size, self.size),)
        return self._of_transformers(randomize, batch)

    def _of_transformers(self, randomize: Callable[[nn.Module], nn.Module], batch: int) -> Made:
        import transformers

        model, config = self.library.split("/")
        net = getattr(transformers, model)(getattr(transformers, config)(**(self.options or {})))
        vision = "image_size" in (self.options or {})
        inputs = torch.randn(batch, 3, self.size, self.size) if vision else torch.randint(3, 1000, (batch, self.size))
        return _Field(randomize(net), self.field), (inputs,)


class _Field(nn.Module):
    """One tensor of what a model of transformers returns."""

    def __init__(self, model: nn.Module, field: str):
        super().__init__()
        self.model, self.field = model, field
        self.options = {"use_cache": False} if getattr(model.config, "use_cache", False) else {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return getattr(self.model(x, **self.options), self.field)


def _torchvision(name: str) -> nn.Module:
    import torchvision

    options = {"aux_logits": False, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
    return torchvision.models.get_model(name, weights=None, **options)


def _timm(name: str) -> nn.Module:
    import timm

    return timm.create_model(name, pretrained=False)


_LIBRARIES = {"torchvision": _torchvision, "timm": _timm}

_TEXT = {"vocab_size": 1000, "hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6}

MODELS = (
    Model("torchvision", "resnet18", 224),
    Model("torchvision", "resnet50", 224),
    Model("torchvision", "mobilenet_v2", 224),
    Model("torchvision", "mobilenet_v3_small", 224),
    Model("torchvision", "efficientnet_b0", 224),
    Model("torchvision", "densenet121", 224),
    Model("torchvision", "squeezenet1_1", 224),
    Model("torchvision", "shufflenet_v2_x1_0", 224),
    Model("torchvision", "regnet_y_400mf", 224),
    Model("torchvision", "googlenet", 224),
    Model("torchvision", "convnext_tiny", 224),
    Model("torchvision", "swin_t", 224),
    Model("torchvision", "vit_b_16", 224),
    Model("timm", "deit_tiny_patch16_224", 224),
    Model("timm", "mixer_s32_224", 224),
    Model("timm", "ghostnet_100", 224),
    Model("timm", "levit_128s", 224),
    Model("timm", "poolformer_s12", 224),
    Model("timm", "resnext50_32x4d", 224),
    Model("timm", "convmixer_768_32", 224),
    Model("BertModel/BertConfig", "bert", 128, {**_TEXT, "intermediate_size": 1536}),
    Model("DistilBertModel/DistilBertConfig", "distilbert", 128, {"vocab_size": 1000, "n_layers": 3}),
    Model("GPT2LMHeadModel/GPT2Config", "gpt2", 64, {"vocab_size": 1000, "n_layer": 4}, "logits"),
    Model(
        "LlamaForCausalLM/LlamaConfig",
        "llama",
        64,
        {**_TEXT, "intermediate_size": 1024, "num_key_value_heads": 2},
        "logits",
    ),
    Model(
        "Qwen2ForCausalLM/Qwen2Config",
        "qwen2",
        64,
        {**_TEXT, "intermediate_size": 1024, "num_key_value_heads": 2},
        "logits",
    ),
    Model("OPTModel/OPTConfig", "opt", 64, {**_TEXT, "ffn_dim": 1536, "word_embed_proj_dim": 384}),
    Model("T5EncoderModel/T5Config", "t5", 128, {"vocab_size": 1000, "num_layers": 4, "d_model": 512}),
    Model("AlbertModel/AlbertConfig", "albert", 128, {**_TEXT, "intermediate_size": 1536}),
    Model("ElectraModel/ElectraConfig", "electra", 128, {**_TEXT, "intermediate_size": 1536}),
    Model("ViTModel/ViTConfig", "vit", 224, {"image_size": 224, "num_hidden_layers": 4}),
)


def cases() -> Iterator[Case]:
    for model in MODELS:
        for batch in BATCHES:

            def create(model: Model = model, batch: int = batch) -> Made:
                return model.create(batch)

            yield Case("model", f"{model.name}_b{batch}", create)
