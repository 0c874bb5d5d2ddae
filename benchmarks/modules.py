"""The modules that are timed and that no library brings: plain PyTorch, as users write it."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

# Convolutions, batch norm, ReLU


class ConvNormRelu(nn.Module):
    """A convolution that keeps the size, a batch norm, a ReLU."""

    def __init__(self, channels_in: int, channels: int, kernel: int, groups: int = 1):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels, kernel, padding=kernel // 2, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.norm(self.conv(x)))


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


# Models


class Field(nn.Module):
    """One tensor of what a model of transformers returns."""

    def __init__(self, model: nn.Module, field: str, **options: Any):
        super().__init__()
        self.model, self.field, self.options = model, field, options

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return getattr(self.model(x, **self.options), self.field)


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


# Quantized weights and data


class InDtype(nn.Module):
    """Layers in a type of floats, between data and results in float32; all in float64 where that is asked for."""

    def __init__(self, layers: nn.Sequential, dtype: torch.dtype):
        super().__init__()
        self.layers = layers.to(dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: of any shape that the layers take."""
        return self.layers(x.to(self.layers[0].scale.dtype)).to(x.dtype)


class QuantizedLinear(nn.Module):
    """A linear layer of weights in bytes, with a scale for each group of a column, and with data in f32 a zero point.

    Those of four bits are held in bytes, too, as torchao does, and masked.
    """

    def __init__(self, length: int, columns: int, group: int | None, of_bytes: bool, bits: int = 8):
        super().__init__()
        groups = 1 if group is None else length // group
        self.least, self.most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        shape = (columns, groups, length // groups)
        self.register_buffer("q", torch.randint(self.least + 1, self.most + 1, shape, dtype=torch.int8))
        self.register_buffer("scale", torch.rand(columns, groups, 1) / length)
        self.register_buffer(
            "zero", None if group is None or of_bytes else torch.randint(-8, 8, (columns, groups, 1)).float()
        )
        self.of_bytes = of_bytes

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [rows, length]; quantized by the largest element of each row, if the layer multiplies bytes."""
        if self.of_bytes:
            step = x.abs().amax(1, keepdim=True) / 127
            x = (x / step).round().clamp(-127, 127).to(torch.int8).to(x.dtype) * step
        q = (self.q if self.most > 7 else ((self.q - self.least) & 15) + self.least).to(x.dtype)
        weight = q if self.zero is None else q - self.zero
        return F.linear(x, (weight * self.scale).flatten(1))


class PackedLinear(nn.Module):
    """A linear layer whose weights of four bits, and zero points of groups, are kept eight to an i32, as GPTQ does."""

    def __init__(self, length: int, columns: int, group: int):
        super().__init__()
        groups = length // group
        for name, shape in (("q", (length // 8, columns)), ("zero", (groups, columns // 8))):
            self.register_buffer(name, torch.randint(-(2**31), 2**31, shape, dtype=torch.int64).to(torch.int32))
        self.register_buffer("scale", torch.rand(groups, columns) / length)
        self.register_buffer("shifts", torch.arange(0, 32, 4, dtype=torch.int32))
        self.group = group

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [rows, length]."""
        q = ((self.q.unsqueeze(1) >> self.shifts.unsqueeze(1)) & 15).reshape(-1, self.group, self.scale.shape[1])
        zero = ((self.zero.unsqueeze(2) >> self.shifts) & 15).reshape(-1, 1, self.scale.shape[1])
        return x @ ((q - zero) * self.scale.unsqueeze(1)).reshape(x.shape[1], -1)


class QuantizedConv(nn.Module):
    """A convolution of bytes with a scale for each filter, whose result is bytes again; as PT2E writes it."""

    def __init__(self, channels: int, filters: int, kernel: int, groups: int):
        super().__init__()
        shape = (filters, channels // groups, kernel, kernel)
        self.register_buffer("q", torch.randint(-127, 128, shape, dtype=torch.int8))
        self.register_buffer("scale", torch.rand(filters, 1, 1, 1) / 1000)
        self.register_buffer("bias", torch.randn(filters))
        self.padding, self.groups = kernel // 2, groups

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: uint8, [N, H, W, channels]; channels stay innermost, as between the layers of a network."""
        dtype = self.bias.dtype
        weight, data = self.q.to(dtype) * self.scale, (x.permute(0, 3, 1, 2).to(dtype) - 7) * 0.02
        y = F.relu(F.conv2d(data, weight, self.bias, 1, self.padding, 1, self.groups)).permute(0, 2, 3, 1)
        return (y * 20.0).round().clamp(0, 255).to(torch.uint8)
