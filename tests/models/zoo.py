"""Real models in small configurations, each with arguments; the ones that tests and docs/models.md run."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import transformers
from random_weights import randomize
from torch import nn
from torch.export import Dim
from torchvision_ops import define_missing_operators

define_missing_operators()  # transformers imports torchvision where there is one

VOCABULARY = 100


@dataclass(frozen=True)
class Entry:
    """A model of the zoo.

    Attributes:
        name: what tests and tables call it.
        build: makes the model, weights drawn from torch's global generator.
        arguments: makes the positional and keyword arguments that it is compiled with.
        dynamic_shapes: the dimensions that may change, as torch.export takes them; None if none.
        more_arguments: for a dynamic model, further arguments of other sizes.
        dimensions: names of the argument's dimensions that may have any size, None for the others; by its rank if it
            is empty, see `symbolic_sizes`.
    """

    name: str
    build: Callable[[], nn.Module]
    arguments: Callable[[], Arguments]
    dynamic_shapes: Any = None
    more_arguments: tuple[Callable[[], Arguments], ...] = ()
    dimensions: tuple[str | None, ...] = ()

    def create(self) -> tuple[nn.Module, tuple[Any, ...], dict[str, Any]]:
        """The model in eval mode and the arguments that it is compiled with, the same ones each time."""
        torch.manual_seed(0)
        model = randomize(self.build()).eval()
        args, kwargs = self.arguments()
        return model, args, kwargs


Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def tokens(batch: int, length: int) -> torch.Tensor:
    """Random token ids [batch, length], without the special ones at the start of the vocabulary."""
    return torch.randint(3, VOCABULARY, (batch, length))


def images(batch: int, height: int, width: int) -> torch.Tensor:
    """Random images [batch, 3, height, width]."""
    return torch.randn(batch, 3, height, width)


def _positional(make: Callable[..., torch.Tensor], *sizes: int) -> Callable[[], Arguments]:
    return lambda: ((make(*sizes),), {})


def _keyword(name: str, make: Callable[..., torch.Tensor], *sizes: int) -> Callable[[], Arguments]:
    return lambda: ((), {name: make(*sizes)})


def _transformers(model: str, config: str, **options: Any) -> Callable[[], nn.Module]:
    return lambda: getattr(transformers, model)(getattr(transformers, config)(**options))


_HIDDEN = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
_TEXT = {"vocab_size": VOCABULARY, "max_position_embeddings": 64}


class Mlp(nn.Module):
    """Linear layers, GELU, LayerNorm, softmax: [batch, 8] -> [batch, 4]."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softmax(dim=-1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Cnn(nn.Module):
    """Convolution, BatchNorm, pooling and a head: [batch, 3, height, width] -> [batch, 5]."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1)
        )
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x).flatten(1))


class Attention(nn.Module):
    """Causal attention of four heads over [batch, length, 32]."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(32, 96)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        query, key, value = self.project(x).view(batch, length, 3, 4, 8).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return mixed.transpose(1, 2).reshape(batch, length, 32)


class Tagger(nn.Module):
    """A recurrent net over [batch, length, 16] with a linear head; also returns its final states."""

    def __init__(self, recurrent: nn.Module, width: int) -> None:
        super().__init__()
        self.recurrent = recurrent
        self.head = nn.Linear(width, 8)

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        states, final = self.recurrent(x)
        return {"tags": self.head(states), "final": final}


class UNet(nn.Module):
    """Two levels down and up again, with skips: [batch, 3, height, width] -> [batch, 2, height, width]."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.down1, self.down2 = self._block(3, width), self._block(width, 2 * width)
        self.bottom = self._block(2 * width, 4 * width)
        self.pool = nn.MaxPool2d(2)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
        self.join2 = self._block(4 * width, 2 * width)
        self.up1 = nn.Upsample(scale_factor=2, mode="bilinear")
        self.join1 = self._block(3 * width, width)
        self.head = nn.Conv2d(width, 2, 1)

    @staticmethod
    def _block(inputs: int, outputs: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=1),
            nn.GroupNorm(2, outputs),
            nn.SiLU(),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        level1 = self.down1(x)
        level2 = self.down2(self.pool(level1))
        bottom = self.bottom(self.pool(level2))
        level2 = self.join2(torch.cat([self.up2(bottom), level2], 1))
        return self.head(self.join1(torch.cat([self.up1(level2), level1], 1)))


class ResidualBlock(nn.Module):
    """ResNet's basic block: two 3x3 convolutions around a skip."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.skip = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.skip = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + self.skip(x))


class ResNet18(nn.Module):
    """ResNet-18: [batch, 3, height, width] -> [batch, classes]; `width` is 64 in the paper."""

    def __init__(self, width: int = 64, classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, padding=3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, padding=1),
        )
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        self.stages = nn.Sequential(
            *(
                nn.Sequential(ResidualBlock(before, after, stride), ResidualBlock(after, after, 1))
                for before, after, stride in zip(widths, widths[1:], (1, 2, 2, 2), strict=False)
            )
        )
        self.head = nn.Linear(8 * width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.stages(self.stem(x)).mean((2, 3)))


def _whisper_encoder() -> nn.Module:
    config = transformers.WhisperConfig(
        vocab_size=VOCABULARY,
        d_model=64,
        encoder_layers=2,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        num_mel_bins=8,
        max_source_positions=50,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    return transformers.WhisperModel(config).encoder


_bert = _transformers("BertModel", "BertConfig", **_TEXT, **_HIDDEN)
_gpt2 = _transformers(
    "GPT2LMHeadModel",
    "GPT2Config",
    vocab_size=VOCABULARY,
    n_positions=64,
    n_embd=64,
    n_layer=2,
    n_head=4,
    bos_token_id=0,
    eos_token_id=0,
    use_cache=False,
)
_llama = _transformers("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2, use_cache=False, **_TEXT, **_HIDDEN)
_t5 = _transformers(
    "T5EncoderModel", "T5Config", vocab_size=VOCABULARY, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4
)
_swin = _transformers(
    "SwinModel",
    "SwinConfig",
    image_size=32,
    patch_size=2,
    embed_dim=16,
    depths=[2, 2],
    num_heads=[2, 2],
    window_size=4,
)
_efficientnet = _transformers(
    "EfficientNetModel",
    "EfficientNetConfig",
    image_size=64,
    width_coefficient=0.25,
    depth_coefficient=0.25,
    hidden_dim=320,
)
_mamba = _transformers(
    "MambaModel",
    "MambaConfig",
    vocab_size=VOCABULARY,
    hidden_size=32,
    state_size=8,
    num_hidden_layers=2,
    use_cache=False,
)

#: Every model, by name.
ZOO = {
    entry.name: entry
    for entry in (
        Entry("bert", _bert, _keyword("input_ids", tokens, 2, 16)),
        Entry("gpt2", _gpt2, _keyword("input_ids", tokens, 1, 16)),
        Entry("gpt2-batch-2", _gpt2, _keyword("input_ids", tokens, 2, 16)),
        Entry("llama", _llama, _keyword("input_ids", tokens, 2, 16)),
        Entry("t5-encoder", _t5, _keyword("input_ids", tokens, 2, 16)),
        Entry(
            "vit",
            _transformers("ViTModel", "ViTConfig", image_size=32, patch_size=8, **_HIDDEN),
            _positional(images, 2, 32, 32),
        ),
        Entry("swin", _swin, _positional(images, 1, 32, 32)),
        Entry(
            "convnext",
            _transformers("ConvNextModel", "ConvNextConfig", hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 1, 1]),
            _positional(images, 1, 64, 64),
        ),
        Entry(
            "mobilenet-v2",
            _transformers("MobileNetV2Model", "MobileNetV2Config", image_size=64, depth_multiplier=0.25),
            _positional(images, 1, 64, 64),
        ),
        Entry("efficientnet", _efficientnet, _positional(images, 1, 64, 64)),
        Entry(
            "whisper-encoder",
            _whisper_encoder,
            _positional(torch.randn, 1, 8, 100),
            dimensions=("batch", None, "length"),
        ),
        Entry(
            "clip-text",
            _transformers("CLIPTextModel", "CLIPTextConfig", eos_token_id=2, **_TEXT, **_HIDDEN),
            _keyword("input_ids", tokens, 2, 16),
        ),
        Entry("mamba", _mamba, _keyword("input_ids", tokens, 1, 8)),
        Entry(
            "lstm",
            lambda: Tagger(nn.LSTM(16, 32, num_layers=2, batch_first=True, bidirectional=True), 64),
            _positional(torch.randn, 2, 6, 16),
        ),
        Entry("gru", lambda: Tagger(nn.GRU(16, 32, batch_first=True), 32), _positional(torch.randn, 2, 6, 16)),
        Entry("unet", UNet, _positional(images, 1, 32, 32)),
        Entry("resnet18", lambda: ResNet18(width=8, classes=10), _positional(images, 2, 64, 64)),
        Entry(
            "mlp-dynamic-batch",
            Mlp,
            _positional(torch.randn, 3, 8),
            ({0: Dim.DYNAMIC},),
            (_positional(torch.randn, 5, 8), _positional(torch.randn, 1, 8)),
        ),
        Entry(
            "cnn-dynamic-batch-height-width",
            Cnn,
            _positional(images, 2, 16, 16),
            ({0: Dim.DYNAMIC, 2: Dim.AUTO, 3: Dim.AUTO},),
            (_positional(images, 3, 20, 24), _positional(images, 1, 18, 16)),
        ),
        Entry(
            "attention-dynamic-batch-length",
            Attention,
            _positional(torch.randn, 2, 6, 32),
            ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},),
            (_positional(torch.randn, 3, 9, 32), _positional(torch.randn, 1, 17, 32)),
        ),
        Entry(
            "bert-dynamic-batch-length",
            _bert,
            _keyword("input_ids", tokens, 2, 16),
            {"input_ids": {0: Dim.AUTO, 1: Dim.AUTO}},
            (_keyword("input_ids", tokens, 3, 9), _keyword("input_ids", tokens, 4, 33)),
        ),
        Entry(
            "llama-dynamic-batch-length",
            _llama,
            _keyword("input_ids", tokens, 2, 16),
            {"input_ids": {0: Dim.AUTO, 1: Dim.AUTO}},
            (_keyword("input_ids", tokens, 3, 9), _keyword("input_ids", tokens, 4, 33)),
        ),
    )
}
