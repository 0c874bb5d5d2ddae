"""Whole models that gpu_check.py runs and times: made where they are built and where they run, so no weights travel."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "models"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "gpu"))

from gpu_models import ResNet18, TransformerBlock
from torchvision_ops import define_missing_operators

_HALF = torch.bfloat16


@dataclass(frozen=True)
class Whole:
    """A model that is timed on a GPU, against eager.

    Attributes:
        make: the model and its arguments, on torch's default device.
        dtype: of the model and of its arguments that are floats.
        tolerance: against the model in float32, relative to the greatest result.
        target: features of the target, such as `+tf32`.
    """

    make: Callable[[], tuple[nn.Module, tuple[torch.Tensor, ...]]]
    dtype: torch.dtype = torch.float32
    tolerance: float = 1e-3
    target: str = ""

    def made(self, device: str = "cpu") -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
        """The model and its arguments, on a device."""
        define_missing_operators()  # transformers imports torchvision where there is one
        torch.manual_seed(0)
        with torch.device(device):
            model, args = self.make()
        cast = tuple(arg.to(self.dtype) if arg.is_floating_point() else arg for arg in args)
        return model.eval().requires_grad_(False).to(device, self.dtype), cast


class First(nn.Module):
    """The first result of a model of transformers."""

    def __init__(self, model: nn.Module, **options: Any):
        super().__init__()
        self.model, self.options = model, options

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Takes [rows, tokens]."""
        return self.model(tokens, return_dict=False, **self.options)[0]


def _resnet(images: int) -> Callable[[], Any]:
    def make() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
        from torchvision.models import resnet50

        return resnet50(), (torch.randn(images, 3, 224, 224),)

    return make


def _vit(images: int) -> Callable[[], Any]:
    def make() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
        from torchvision.models import vit_b_16

        model = vit_b_16()
        nn.init.normal_(model.heads.head.weight, std=0.02)  # zero as it is made
        return model, (torch.randn(images, 3, 224, 224),)

    return make


def _bert(rows: int, tokens: int) -> Callable[[], Any]:
    def make() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
        from transformers import BertConfig, BertModel

        model = BertModel(BertConfig(), add_pooling_layer=False)
        return First(model), (torch.randint(0, 30000, (rows, tokens)),)

    return make


def _gpt2(rows: int, tokens: int) -> Callable[[], Any]:
    def make() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
        from transformers import GPT2Config, GPT2LMHeadModel

        return First(GPT2LMHeadModel(GPT2Config()), use_cache=False), (torch.randint(0, 50000, (rows, tokens)),)

    return make


class _DecoderLayer(nn.Module):
    """Llama's, for one new token: 32 heads of 64, 8 of keys and values, whose older ones come along."""

    def __init__(self, width: int = 2048, hidden: int = 8192):
        super().__init__()
        self.norms = nn.ModuleList([nn.RMSNorm(width), nn.RMSNorm(width)])
        self.queries, self.keys, self.values = (nn.Linear(width, size, bias=False) for size in (2048, 512, 512))
        self.out = nn.Linear(2048, width, bias=False)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        y = self.norms[0](x)
        heads = [linear(y).unflatten(-1, (-1, 64)).transpose(1, 2) for linear in (self.queries, self.keys, self.values)]
        keys, values = torch.cat((keys, heads[1]), 2), torch.cat((values, heads[2]), 2)
        y = F.scaled_dot_product_attention(heads[0], keys, values, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class _Decoder(nn.Module):
    """As wide as Llama 3.2 with 1.2 billion weights; all layers see the same older keys and values."""

    def __init__(self, layers: int = 16, tokens: int = 128256):
        super().__init__()
        self.layers = nn.ModuleList([_DecoderLayer() for _ in range(layers)])
        self.norm, self.head = nn.RMSNorm(2048), nn.Linear(2048, tokens, bias=False)

    def forward(self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, keys, values)
        return self.head(self.norm(x))


def _decode(rows: int, filled: int) -> Callable[[], Any]:
    def make() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
        old = (rows, 8, filled, 64)
        return _Decoder(), (torch.randn(rows, 1, 2048), torch.randn(old), torch.randn(old))

    return make


def _small_resnet() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return ResNet18(16), (torch.randn(4, 3, 128, 128),)


def _transformer() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return nn.Sequential(*(TransformerBlock(512, 8) for _ in range(2))), (torch.randn(2, 512, 512),)


def _mlp() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024)), (torch.randn(512, 1024),)


WHOLE: dict[str, Whole] = {
    "ResNet-18 of a quarter of the width, 4 images": Whole(_small_resnet),
    "2 transformer layers of width 512, bfloat16": Whole(_transformer, _HALF, 5e-2),
    "MLP of width 1024": Whole(_mlp, tolerance=1e-4),
    "ResNet-50, 1 image, tf32": Whole(_resnet(1), tolerance=2e-2, target="+tf32"),
    "ResNet-50, 32 images, bfloat16": Whole(_resnet(32), _HALF, 5e-2),
    "ViT-B/16, 1 image, bfloat16": Whole(_vit(1), _HALF, 5e-2),
    "ViT-B/16, 32 images, bfloat16": Whole(_vit(32), _HALF, 5e-2),
    "BERT-base, 1 x 128, bfloat16": Whole(_bert(1, 128), _HALF, 5e-2),
    "BERT-base, 32 x 128, bfloat16": Whole(_bert(32, 128), _HALF, 5e-2),
    "GPT-2, 1 x 128, bfloat16": Whole(_gpt2(1, 128), _HALF, 5e-2),
    "GPT-2, 32 x 128, bfloat16": Whole(_gpt2(32, 128), _HALF, 5e-2),
    "a step of Llama of 1.2 B, 1 row over 1024 tokens, bfloat16": Whole(_decode(1, 1024), _HALF, 5e-2),
    "a step of Llama of 1.2 B, 32 rows over 1024 tokens, bfloat16": Whole(_decode(32, 1024), _HALF, 5e-2),
}
