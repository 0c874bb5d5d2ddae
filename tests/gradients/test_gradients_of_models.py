"""Training steps of real models: losses, all gradients, running statistics, beside eager."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
import torch
import torch.nn.functional as F
import transformers
from random_weights import randomize
from torch import nn
from torchvision_ops import define_missing_operators

import pipeline

define_missing_operators()  # transformers and timm import torchvision where there is one

TEXT = {"vocab_size": 100, "max_position_embeddings": 32}
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


class Cells(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell, self.head = cell, nn.Linear(12, 5)

    def forward(self, x):
        state = None
        for step in x.unbind(1):
            state = self.cell(step, state)
        return self.head(state[0] if isinstance(state, tuple) else state)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.down = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.Conv2d(16, 24, 3, 2, 1)
        self.depthwise, self.point = nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.Conv2d(16, 16, 1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for width in (16, 16, 24))
        self.up, self.head = nn.ConvTranspose2d(24, 8, 2, 2), nn.Linear(8, 5)

    def forward(self, x):
        x = self.norms[0](self.stem(x)).relu()
        x = x + F.hardswish(self.norms[1](self.point(self.depthwise(x))))
        x = F.max_pool2d(F.silu(self.norms[2](self.down(x))), 3, 2, 1)
        return self.head(F.adaptive_avg_pool2d(self.up(x), 1).flatten(1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.top, self.low, self.last = (self._block(*widths) for widths in ((3, 6), (6, 8), (14, 6)))
        self.up, self.head = nn.ConvTranspose2d(8, 8, 2, 2), nn.Conv2d(6, 5, 1)

    @staticmethod
    def _block(before, width):
        return nn.Sequential(nn.Conv2d(before, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())

    def forward(self, x):
        top = self.top(x)
        low = self.low(F.max_pool2d(top, 2))
        larger = self.up(low) + F.interpolate(low, scale_factor=2, mode="bilinear", align_corners=False)
        return self.head(self.last(torch.cat((top, larger), 1))).permute(0, 2, 3, 1)


class Generator(nn.Module):
    """Makes images as those of GANs do; what is trained are the mean colours of their columns."""

    def __init__(self):
        super().__init__()
        widths = ((8, 12, 4, 1, 0), (12, 8, 4, 2, 1), (8, 5, 4, 2, 1))
        first, second, third = (nn.ConvTranspose2d(*width, bias=False) for width in widths)
        norms = (nn.BatchNorm2d(12), nn.BatchNorm2d(8))
        self.net = nn.Sequential(first, norms[0], nn.ReLU(), second, norms[1], nn.ReLU(), third, nn.Tanh())

    def forward(self, x):
        return self.net(x[:, :, None, None]).mean(2)


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag, self.head = nn.EmbeddingBag(100, 8), nn.Linear(8, 5)

    def forward(self, ids):
        return self.head(self.bag(ids))


class Pair(nn.Module):
    """A model with an encoder and a decoder, both of the same text."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(input_ids=ids, decoder_input_ids=ids)


def _mlp():
    return nn.Sequential(nn.Linear(16, 33), nn.GELU(), nn.LayerNorm(33), nn.Linear(33, 7), nn.Tanh(), nn.Linear(7, 5))


def _encoder():
    layer = nn.TransformerEncoderLayer(16, 2, 24, 0.0, batch_first=True, norm_first=True)
    return nn.Sequential(layer, nn.Flatten(), nn.Linear(16 * 9, 5))


def _gpt2():
    sizes = {"vocab_size": 100, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 2}
    idle = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **idle, use_cache=False))


def _llama():
    sizes = {**TEXT, **SMALL, "num_key_value_heads": 1}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, use_cache=False))


def _bert():
    return transformers.BertForMaskedLM(transformers.BertConfig(**TEXT, **SMALL, **NO_DROPOUT))


def _vit():
    config = transformers.ViTConfig(image_size=16, patch_size=4, num_labels=5, **SMALL, **NO_DROPOUT)
    return transformers.ViTForImageClassification(config)


def _swin():
    sizes = {"embed_dim": 8, "depths": [2], "num_heads": [2], "window_size": 4}
    config = transformers.SwinConfig(image_size=16, patch_size=2, num_labels=5, drop_path_rate=0.0, **sizes)
    return transformers.SwinForImageClassification(config)


def _t5():
    sizes = {"vocab_size": 100, "d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 1, "num_heads": 2}
    special = {"pad_token_id": 0, "decoder_start_token_id": 1}
    return Pair(transformers.T5ForConditionalGeneration(transformers.T5Config(**sizes, **special, dropout_rate=0.0)))


def _mamba():
    sizes = {"vocab_size": 100, "hidden_size": 16, "state_size": 4, "num_hidden_layers": 1}
    return transformers.MambaForCausalLM(transformers.MambaConfig(**sizes, use_cache=False))


def _resnet():
    """The blocks of a ResNet-50, narrow."""
    from timm.models.resnet import Bottleneck, ResNet

    return ResNet(Bottleneck, (1, 1, 1, 1), channels=(4, 6, 8, 8), stem_width=8, num_classes=5)


def _mobile_net():
    """The blocks of a MobileNetV2 that differ, narrow."""
    import torchvision

    return torchvision.models.MobileNetV2(5, 0.25, [[1, 16, 1, 1], [6, 24, 2, 2]], dropout=0.0)


def _rows(*shape: int) -> Callable[[], torch.Tensor]:
    return lambda: torch.randn(shape)


def _tokens():
    return torch.randint(3, 100, (2, 11))


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "mlp": (_mlp, _rows(7, 16)),
    "convolutions": (ConvNet, _rows(4, 3, 16, 12)),
    "lstm cells": (lambda: Cells(nn.LSTMCell(6, 12)), _rows(4, 5, 6)),
    "gru cells": (lambda: Cells(nn.GRUCell(6, 12)), _rows(4, 5, 6)),
    "encoder": (_encoder, _rows(3, 9, 16)),
    "bert": (_bert, _tokens),
    "gpt2": (_gpt2, _tokens),
    "llama": (_llama, _tokens),
    "vit": (_vit, _rows(2, 3, 16, 16)),
    "swin": (_swin, _rows(2, 3, 16, 16)),
    "t5": (_t5, _tokens),
    "mamba": (_mamba, _tokens),
    "unet": (UNet, _rows(2, 3, 8, 12)),
    "resnet": (_resnet, _rows(3, 3, 32, 32)),
    "mobilenet": (_mobile_net, _rows(3, 3, 16, 16)),
    "generator": (Generator, _rows(4, 8)),
    "bags": (Bags, _tokens),
}


def _logits(result: Any) -> torch.Tensor:
    return result if isinstance(result, torch.Tensor) else result.logits


@pytest.mark.parametrize("name", MODELS)
def test_five_steps(name, count):
    """In float64, where rounding does not decide what becomes of a ReLU behind a norm; Llama has float32 inside."""
    make_model, make_data = MODELS[name]
    torch.manual_seed(0)
    model = randomize(make_model()).train().double()
    reference = copy.deepcopy(model)
    compiled = torch.compile(model, backend="pipeline")
    steps = [torch.optim.SGD(each.parameters(), 1e-2, momentum=0.9) for each in (model, reference)]
    for _ in range(5):
        x = make_data()
        x = x.double() if x.is_floating_point() else x
        losses = []
        for function, optimizer in zip((compiled, reference), steps, strict=True):
            optimizer.zero_grad()
            logits = _logits(function(x)).flatten(0, -2)
            loss = F.cross_entropy(logits, torch.arange(len(logits)) % logits.size(-1))
            loss.backward()
            losses.append(loss.detach())
        torch.testing.assert_close(*losses, rtol=1e-6, atol=1e-8)
        for ours, theirs in zip(model.parameters(), reference.parameters(), strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-6)
        for optimizer in steps:
            optimizer.step()
    torch.testing.assert_close(model.state_dict(), reference.state_dict(), rtol=1e-4, atol=1e-6)
    assert count["backward in eager"] == 0
    assert len(pipeline.executables(compiled)) == 2 * count["graphs"]
