"""What is timed: plain modules of PyTorch with random weights, and their inputs; nothing is downloaded.

`WORKLOADS` has them by name. `make` gives the same weights and inputs in every process. Floating point is f32. Only the
models whose names say so need transformers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

sys.path.append(str(Path(__file__).parents[1] / "examples"))  # scripts, not a package
sys.path.append(str(Path(__file__).parents[1] / "tests" / "models"))

from resnet import ResNet18
from torchvision_ops import define_missing_operators

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]


@dataclass(frozen=True)
class Workload:
    """A module and its inputs.

    Attributes:
        create: makes them, after the random numbers have been seeded.
        in_python: makes the same computation with Python's own control flow, for what runs Python; else `create`.
        flops: floating-point operations of a call; a multiply-add is two, elementwise work is not counted.
        bytes: of inputs, weights and results, each once.
    """

    create: Callable[[], Made]
    in_python: Callable[[], Made] | None = None
    flops: float = 0.0
    bytes: float = 0.0

    def make(self, in_python: bool = False) -> Made:
        """The module, for inference, and its inputs."""
        torch.manual_seed(0)
        model, inputs = (self.in_python or self.create)() if in_python else self.create()
        return model.eval().requires_grad_(False), inputs


# Convolutions, batch norm, ReLU


class ConvNormRelu(nn.Module):
    """A convolution that keeps the size, a batch norm, a ReLU."""

    def __init__(self, channels_in: int, channels: int, kernel: int, groups: int = 1):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels, kernel, padding=kernel // 2, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.norm(self.conv(x)))


def _with_statistics(model: nn.Module) -> nn.Module:
    """The model, its batch norms as if trained: with the initial ones a wrong one would go unnoticed."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor, low, high in ((module.running_var, 0.5, 1.5), (module.weight, 0.5, 1.5)):
                nn.init.uniform_(tensor, low, high)
            for tensor in (module.running_mean, module.bias):
                nn.init.normal_(tensor, 0, 0.1)
    return model


def _conv(channels_in: int, channels: int, kernel: int, size: int, groups: int = 1) -> Workload:
    weights = channels * kernel**2 * channels_in // groups
    return Workload(
        lambda: (
            _with_statistics(ConvNormRelu(channels_in, channels, kernel, groups)),
            (torch.randn(1, channels_in, size, size),),
        ),
        flops=2 * size**2 * weights,
        bytes=4 * ((channels_in + channels) * size**2 + weights),
    )


# Recurrent cells


class RNNCell(nn.Module):
    """tanh(W x + U h + b)."""

    def __init__(self, width: int = 128):
        super().__init__()
        self.ih, self.hh = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.ih(x) + self.hh(h))


class LSTMCell(nn.Module):
    """An LSTM cell written out, its gates in PyTorch's order."""

    def __init__(self, width: int = 128):
        super().__init__()
        self.ih, self.hh = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width)

    def forward(self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        i, f, g, o = (self.ih(x) + self.hh(h)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


def _states(number: int) -> tuple[torch.Tensor, ...]:
    return tuple(torch.randn(1, 128) for _ in range(number))


# Transformers' parts


class FeedForward(nn.Module):
    """Two linear layers and a GELU."""

    def __init__(self, width: int = 768, hidden: int = 3072):
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(self.up(x)))


class Encoder(nn.Module):
    """A pre-norm transformer block with one linear layer for q, k and v."""

    def __init__(self, width: int = 768, heads: int = 12):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed_forward = FeedForward(width, 4 * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, length, width = x.shape
        heads = self.qkv(self.norm1(x)).view(n, length, 3, self.heads, width // self.heads)
        attention = F.scaled_dot_product_attention(*heads.permute(2, 0, 3, 1, 4).unbind(0))
        x = x + self.out(attention.transpose(1, 2).reshape(n, length, width))
        return x + self.feed_forward(self.norm2(x))


# Elementwise chains


class IntChain(nn.Module):
    """Mixed widths of integers."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return ((a.to(torch.int64) + b) * c).to(torch.int32)


class IntChainInPlace(nn.Module):
    """The same, in place on a temporary."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        t = a.to(torch.int64)
        t.add_(b)
        t.mul_(c)
        return t.to(torch.int32)


class FloatChain(nn.Module):
    """A GELU, a gate."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return F.gelu(x * y + z) * torch.sigmoid(x)


class FloatChainInPlace(nn.Module):
    """The same, in place on temporaries."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        t = x * y
        t.add_(z)
        t = F.gelu(t)
        t.mul_(torch.sigmoid(x))
        return t


def _integers(size: int = 4000) -> tuple[torch.Tensor, ...]:
    return tuple(torch.randint(-1000, 1000, (size, size), dtype=t) for t in (torch.int32, torch.int64, torch.int32))


def _floats(size: int = 4000) -> tuple[torch.Tensor, ...]:
    return tuple(torch.randn(size, size) for _ in range(3))


# Models


class Field(nn.Module):
    """One tensor of what a model of transformers returns."""

    def __init__(self, model: nn.Module, field: str, **options: Any):
        super().__init__()
        self.model, self.field, self.options = model, field, options

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return getattr(self.model(x, **self.options), self.field)


def _mobilenet() -> Made:
    define_missing_operators()  # transformers imports torchvision where there is one
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    model = _with_statistics(MobileNetV2ForImageClassification(MobileNetV2Config()))
    return Field(model, "logits"), (torch.randn(1, 3, 224, 224),)


def _bert() -> Made:
    define_missing_operators()  # transformers imports torchvision where there is one
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(), add_pooling_layer=False)
    return Field(model, "last_hidden_state"), (torch.randint(0, 30000, (1, 128)),)


def _gpt2() -> Made:
    define_missing_operators()  # transformers imports torchvision where there is one
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(use_cache=False))
    return Field(model, "logits", use_cache=False), (torch.randint(0, 50000, (1, 64)),)


def _mlp() -> Made:
    layers = (nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return nn.Sequential(*layers), (torch.randn(64, 784),)


def _layer_norm() -> Made:
    model = nn.LayerNorm(1024)
    nn.init.uniform_(model.weight, 0.5, 1.5)
    nn.init.normal_(model.bias)
    return model, (torch.randn(4096, 1024),)


# Control flow


def _hot(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x * 2 + 1) * torch.sigmoid(x)


def _cold(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) - x * 0.5


class Cond(nn.Module):
    """A branch on the data as torch.cond."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, _hot, _cold, (x,))


class CondInPython(nn.Module):
    """The same in Python."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _hot(x) if bool(x.sum() > 0) else _cold(x)


class RNNUnrolled(nn.Module):
    """A recurrent net over 64 steps."""

    def __init__(self, steps: int = 64):
        super().__init__()
        self.cell, self.steps = RNNCell(), steps

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        for step in range(self.steps):
            h = self.cell(x[step], h)
        return h


class RNNWhile(RNNUnrolled):
    """The same as a while_loop: the loop stays one in the graph."""

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        from torch._higher_order_ops.while_loop import while_loop

        steps = self.steps

        def condition(step: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
            return step < steps

        def body(step: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return step + 1, self.cell(torch.index_select(x, 0, step.reshape(1)).squeeze(0), h)

        return while_loop(condition, body, (torch.tensor(0), h))[1]


class Outputs(nn.Module):
    """The outputs of all steps of a recurrent net."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)[0]


def _recurrent(kind: type[nn.RNNBase], width: int, batch: int, layers: int = 1, steps: int = 160) -> Workload:
    """A net as wide as its input, over so many steps."""
    gates = 4 if kind is nn.LSTM else 3
    weights = layers * gates * 2 * width * width
    return Workload(
        lambda: (Outputs(kind(width, width, layers)), (torch.randn(steps, batch, width),)),
        flops=2 * steps * batch * weights,
        bytes=4 * (weights + 2 * steps * batch * width),
    )


class Transform(nn.Module):
    """Fourier transforms of rows of complex numbers, which come and go as pairs."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [rows, n, 2]."""
        return torch.view_as_real(torch.fft.fft(torch.view_as_complex(x)))


class Filter(nn.Module):
    """Rows filtered by what a half spectrum is multiplied with."""

    def __init__(self, n: int):
        super().__init__()
        self.response = nn.Parameter(torch.randn(n // 2 + 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [rows, n]."""
        return torch.fft.irfft(torch.fft.rfft(x) * self.response)


class Spectrogram(nn.Module):
    """The power spectra of windows of 25 ms every 10 ms, as nets for speech take them."""

    def __init__(self, n_fft: int, hop: int):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [signals, samples]."""
        spectra = torch.stft(x, self.n_fft, self.hop, window=self.window, return_complex=True)
        return spectra.real**2 + spectra.imag**2


def _transforms(rows: int, n: int, kind: Callable[[], nn.Module], of_pairs: bool) -> Workload:
    """5 n log2 n operations a transform of complex numbers; `kind` does one of them, or two of half the work."""
    shape = (rows, n, 2) if of_pairs else (rows, n)
    return Workload(lambda: (kind(), (torch.randn(shape),)), flops=5 * rows * n * math.log2(n), bytes=16 * rows * n)


# Quantized weights and data


class QuantizedLinear(nn.Module):
    """A linear layer of weights in bytes, with a scale and a zero point for each group of a column."""

    def __init__(self, length: int, columns: int, group: int | None, of_bytes: bool):
        super().__init__()
        groups = 1 if group is None else length // group
        self.register_buffer("q", torch.randint(-127, 128, (columns, groups, length // groups), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(columns, groups, 1) / length)
        self.register_buffer("zero", None if group is None else torch.randint(-8, 8, (columns, groups, 1)).float())
        self.of_bytes = of_bytes

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [rows, length]; quantized by the largest element of each row, if the layer multiplies bytes."""
        if self.of_bytes:
            step = x.abs().amax(1, keepdim=True) / 127
            x = (x / step).round().clamp(-127, 127).to(torch.int8).float() * step
        weight = self.q.float() if self.zero is None else self.q.float() - self.zero
        return F.linear(x, (weight * self.scale).flatten(1))


def _quantized(rows: int, length: int, hidden: int, group: int | None = None, of_bytes: bool = False) -> Workload:
    """A feed-forward layer of two of those."""

    def make() -> Made:
        layers = [QuantizedLinear(*sizes, group, of_bytes) for sizes in ((length, hidden), (hidden, length))]
        return nn.Sequential(layers[0], nn.SiLU(), layers[1]), (torch.randn(rows, length),)

    return Workload(make, flops=4 * rows * length * hidden, bytes=2 * length * hidden)


def _image_like() -> tuple[torch.Tensor, ...]:
    return (torch.randn(1024, 1024) + 0.1,)


def _sequence() -> tuple[torch.Tensor, ...]:
    return torch.randn(64, 1, 128), torch.randn(1, 128)


_RNN = {"flops": 64 * 4 * 128 * 128, "bytes": 4 * (2 * 128 * 128 + 64 * 128)}
_FEED_FORWARD = 2 * 2 * 128 * 768 * 3072
_ATTENTION = 2 * 128 * 768 * 768 * 4 + 2 * 2 * 128 * 128 * 768
_LAYER = 12 * 768 * 768  # weights of a layer of BERT-base or GPT-2
_MLP = 784 * 512 + 512 * 512 + 512 * 10
_ROWS = 4096 * 1024 * 8

WORKLOADS = {
    "W1_weenet": _conv(64, 64, 3, 128, 64),
    "W2a_conv1x1": _conv(128, 256, 1, 28),
    "W2b_dwconv": _conv(512, 512, 3, 14, 512),
    "W2c_rnncell": Workload(lambda: (RNNCell(), _states(2)), flops=4 * 128 * 128, bytes=8 * 128 * 128),
    "W2d_lstmcell": Workload(lambda: (LSTMCell(), _states(3)), flops=16 * 128 * 128, bytes=32 * 128 * 128),
    "W3_conv3x3": _conv(64, 64, 3, 56),
    "W4_ffn": Workload(
        lambda: (FeedForward(), (torch.randn(128, 768),)),
        flops=_FEED_FORWARD,
        bytes=4 * (2 * 768 * 3072 + 2 * 128 * 768),
    ),
    "W5_encoder": Workload(
        lambda: (Encoder(), (torch.randn(1, 128, 768),)),
        flops=_FEED_FORWARD + _ATTENTION,
        bytes=4 * (_LAYER + 2 * 128 * 768),
    ),
    "W6a_int": Workload(lambda: (IntChain(), _integers()), bytes=4000**2 * 20),
    "W6b_int_inplace": Workload(lambda: (IntChainInPlace(), _integers()), bytes=4000**2 * 20),
    "W6c_float": Workload(lambda: (FloatChain(), _floats()), bytes=4000**2 * 16),
    "W6d_float_inplace": Workload(lambda: (FloatChainInPlace(), _floats()), bytes=4000**2 * 16),
    "W7a_softmax": Workload(lambda: (nn.Softmax(-1), (torch.randn(4096, 1024),)), bytes=_ROWS),
    "W7b_layernorm": Workload(_layer_norm, bytes=_ROWS),
    "W8a_resnet18": Workload(
        lambda: (_with_statistics(ResNet18()), (torch.randn(1, 3, 224, 224),)), flops=3.63e9, bytes=4 * 11.7e6
    ),
    "W8b_mobilenetv2": Workload(_mobilenet, flops=0.60e9, bytes=4 * 3.5e6),
    "W8c_bert": Workload(_bert, flops=12 * (2 * 128 * _LAYER + 4 * 128 * 128 * 768), bytes=4 * 12 * _LAYER),
    "W8d_gpt2": Workload(
        _gpt2,
        flops=12 * (2 * 64 * _LAYER + 4 * 64 * 64 * 768) + 2 * 64 * 768 * 50257,
        bytes=4 * (12 * _LAYER + 768 * 50257),
    ),
    "W8e_mlp": Workload(_mlp, flops=2 * 64 * _MLP, bytes=4 * _MLP),
    "W9a_cond": Workload(
        lambda: (Cond(), _image_like()), lambda: (CondInPython(), _image_like()), bytes=1024 * 1024 * 8
    ),
    "W9b_rnn64_unrolled": Workload(lambda: (RNNUnrolled(), _sequence()), **_RNN),
    "W9c_rnn64_while": Workload(lambda: (RNNWhile(), _sequence()), lambda: (RNNUnrolled(), _sequence()), **_RNN),
    "W10a_lstm128": _recurrent(nn.LSTM, 128, 1),
    "W10b_lstm128_batch8": _recurrent(nn.LSTM, 128, 8),
    "W10c_lstm512": _recurrent(nn.LSTM, 512, 1),
    "W10d_lstm1024": _recurrent(nn.LSTM, 1024, 1),
    "W10e_lstm1024_batch8": _recurrent(nn.LSTM, 1024, 8),
    "W10f_gru256_3layers": _recurrent(nn.GRU, 256, 1, 3),
    "W10g_lstm256": _recurrent(nn.LSTM, 256, 1),
    "W10h_lstm256_batch8": _recurrent(nn.LSTM, 256, 8),
    "W10i_lstm512_batch8": _recurrent(nn.LSTM, 512, 8),
    "W11a_fft1024": _transforms(64, 1024, Transform, of_pairs=True),
    "W11b_filter4096": _transforms(64, 4096, lambda: Filter(4096), of_pairs=False),
    "W11c_spectrogram400": Workload(
        lambda: (Spectrogram(400, 160), (torch.randn(1, 160000),)),
        flops=2.5 * 1001 * 400 * math.log2(400),
        bytes=4 * (160000 + 1001 * 201),
    ),
    "W12a_int8_row": _quantized(1, 2048, 5632),
    "W12b_int8_groups_row": _quantized(1, 2048, 5632, 32),
    "W12c_bytes_row": _quantized(1, 2048, 5632, of_bytes=True),
    "W12d_bytes_512": _quantized(512, 768, 3072, of_bytes=True),
}
