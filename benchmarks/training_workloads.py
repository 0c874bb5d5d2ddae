"""What is trained: models with random weights, each with its loss, and an optimizer alone.

`TRAINING` has them by name. Dropout is off, so that all contestants compute the same; floating point is f32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from workloads import Made, Workload, define_missing_operators

_TEXT = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
_NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


class WithLoss(nn.Module):
    """A model and the cross-entropy of its logits, the classes of which come last, or second in those of images."""

    def __init__(self, model: nn.Module, autocast: bool = False):
        super().__init__()
        self.model, self.autocast = model, autocast

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            result = self.model(x)
        logits = result if isinstance(result, Tensor) else result.logits
        logits = logits.movedim(1, -1) if logits.dim() == 4 else logits
        return F.cross_entropy(logits.flatten(0, -2).float(), labels.flatten())


class Parameters(nn.Module):
    """Parameters with gradients, for an optimizer without a model: its step alone is timed."""

    def __init__(self, count: int, size: int):
        super().__init__()
        self.tensors = nn.ParameterList(torch.randn(size) for _ in range(count))
        for tensor in self.tensors:
            tensor.grad = torch.randn(size)


class Cells(nn.Module):
    """An LSTM cell over [N, T, features], then a linear layer on the last state."""

    def __init__(self, features: int, width: int):
        super().__init__()
        self.cell, self.head = nn.LSTMCell(features, width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        state = None
        for step in x.unbind(1):
            state = self.cell(step, state)
        return self.head(state[0])


class UNet(nn.Module):
    """Three levels of two convolutions with norms, [N, 3, H, W] → [N, 10, H, W]."""

    def __init__(self, width: int = 32):
        super().__init__()
        widths = [3, width, 2 * width, 4 * width]
        self.down = nn.ModuleList(self._block(before, after) for before, after in zip(widths, widths[1:], strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * each, each, 2, 2) for each in (2 * width, width))
        self.joined = nn.ModuleList(self._block(2 * each, each) for each in (2 * width, width))
        self.head = nn.Conv2d(width, 10, 1)

    @staticmethod
    def _block(before: int, after: int) -> nn.Module:
        layers = [(nn.Conv2d(each, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()) for each in (before, after)]
        return nn.Sequential(*(layer for part in layers for layer in part))

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for level, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if level else x)
            kept.append(x)
        for up, block, beside in zip(self.up, self.joined, reversed(kept[:-1]), strict=True):
            x = block(torch.cat((beside, up(x)), 1))
        return self.head(x)


@dataclass(frozen=True)
class TrainingWorkload(Workload):
    """A model that returns its loss, and a batch; or `Parameters`."""

    def make(self, in_python: bool = False) -> Made:
        """The module, for training, and the arguments of a step."""
        define_missing_operators()  # transformers and torchvision
        torch.manual_seed(0)
        model, inputs = self.create()
        return model.train(), inputs

    def expected(self) -> tuple[Tensor, ...]:
        """The loss of the first step, and the norm of all gradients, in float64."""
        model, inputs = self.make()
        if isinstance(model, Parameters):
            return outcome(model, torch.zeros(()))
        loss = model.double()(*(one.double() if one.is_floating_point() else one for one in inputs))
        loss.backward()
        return outcome(model, loss)


def outcome(model: nn.Module, loss: Tensor) -> tuple[Tensor, ...]:
    """What a step is judged by."""
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return loss.detach(), nn.utils.get_total_norm(gradients)


def _texts(rows: int, length: int, classes: int) -> tuple[Tensor, ...]:
    ids = torch.randint(0, classes, (rows, length + 1))
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


def _images(rows: int, side: int) -> tuple[Tensor, ...]:
    return torch.randn(rows, 3, side, side), torch.randint(0, 10, (rows,))


def _of_transformers(model: str, config: str, **options: Any) -> nn.Module:
    import transformers

    return getattr(transformers, model)(getattr(transformers, config)(**options))


def _bert(autocast: bool = False) -> Made:
    model = _of_transformers("BertForMaskedLM", "BertConfig", **_TEXT, **_NO_DROPOUT)
    return WithLoss(model, autocast), _texts(4, 128, 30522)


def _gpt2() -> Made:
    idle = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    return WithLoss(_of_transformers("GPT2LMHeadModel", "GPT2Config", **idle, use_cache=False)), _texts(4, 128, 50257)


def _llama() -> Made:
    sizes = {**_TEXT, "intermediate_size": 2048, "num_key_value_heads": 4, "vocab_size": 32000}
    return WithLoss(_of_transformers("LlamaForCausalLM", "LlamaConfig", **sizes, use_cache=False)), _texts(
        4, 128, 32000
    )


def _vit() -> Made:
    sizes = {"hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6, "intermediate_size": 1536}
    model = _of_transformers("ViTForImageClassification", "ViTConfig", **sizes, **_NO_DROPOUT, num_labels=10)
    return WithLoss(model), _images(4, 224)


def _convnext() -> Made:
    model = _of_transformers("ConvNextForImageClassification", "ConvNextConfig", num_labels=10)
    return WithLoss(model), _images(4, 64)


def _of_torchvision(name: str, side: int, rows: int = 8) -> Callable[[], Made]:
    def create() -> Made:
        import torchvision

        return WithLoss(getattr(torchvision.models, name)(num_classes=10)), _images(rows, side)

    return create


def _mobilenet() -> Made:
    import torchvision

    return WithLoss(torchvision.models.mobilenet_v2(num_classes=10, dropout=0.0)), _images(8, 64)


def _mlp() -> Made:
    layers = [nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 10)]
    return WithLoss(nn.Sequential(*layers)), (torch.randn(128, 1024), torch.randint(0, 10, (128,)))


def _unet() -> Made:
    return WithLoss(UNet()), (torch.randn(2, 3, 64, 64), torch.randint(0, 10, (2, 64, 64)))


def _lstm() -> Made:
    return WithLoss(Cells(64, 256)), (torch.randn(16, 64, 64), torch.randint(0, 10, (16,)))


TRAINING: dict[str, Workload] = {
    "T1_bert": TrainingWorkload(_bert),
    "T2_gpt2": TrainingWorkload(_gpt2),
    "T3_llama": TrainingWorkload(_llama),
    "T4_vit_s": TrainingWorkload(_vit),
    "T5_resnet18_64": TrainingWorkload(_of_torchvision("resnet18", 64)),
    "T5_resnet18_224": TrainingWorkload(_of_torchvision("resnet18", 224)),
    "T6_resnet50_64": TrainingWorkload(_of_torchvision("resnet50", 64)),
    "T6_resnet50_224": TrainingWorkload(_of_torchvision("resnet50", 224, 4)),
    "T7_mobilenetv2": TrainingWorkload(_mobilenet),
    "T8_unet": TrainingWorkload(_unet),
    "T9_convnext": TrainingWorkload(_convnext),
    "T10_lstm64": TrainingWorkload(_lstm),
    "T11_mlp": TrainingWorkload(_mlp),
    "T12_adamw_100m": TrainingWorkload(lambda: (Parameters(100, 1_000_000), ())),
    "T13_bert_bf16": TrainingWorkload(lambda: _bert(autocast=True)),
}
