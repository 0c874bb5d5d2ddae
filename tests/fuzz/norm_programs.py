"""Random nets of convolutions, batch norms and what lies between them, in any order, with shared results and branches.

What is folded into weights depends on who reads what: a convolution before a norm, behind one, with two readers, in a
branch, returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from drawing import Draw
from torch import nn

STEPS = 8

_CHANNELS = (1, 3, 4)


@dataclass(frozen=True)
class NormStep:
    """A layer or function on earlier values, by number; `options` are those of the layer."""

    op: str
    operands: tuple[int, ...]
    options: tuple[int, ...] = ()


@dataclass(frozen=True)
class NormProgram:
    """A net on one argument [2, channels, 4, 5], or [3, channels]; weights are drawn from the seed."""

    shape: tuple[int, ...]
    steps: tuple[NormStep, ...]
    results: tuple[int, ...]
    seed: int

    def arguments(self) -> tuple[torch.Tensor, ...]:
        """A fresh argument."""
        return (torch.randn(self.shape, generator=torch.Generator().manual_seed(self.seed)),)

    def model(self) -> nn.Module:
        """The net in eval mode, the same every time."""
        return _Net(self).eval()


class _Net(nn.Module):
    def __init__(self, program: NormProgram):
        super().__init__()
        generator = torch.Generator().manual_seed(program.seed)
        channels = [program.shape[1]]
        self._program = program
        self._layers = nn.ModuleList()
        for step in program.steps:
            of = [channels[number] for number in step.operands]
            layer, made = _LAYERS[step.op](len(program.shape) == 4, of, step.options)
            channels.append(made)
            self._layers.append(layer)
        with torch.no_grad():
            for tensor in self.state_dict().values():
                if tensor.is_floating_point():
                    _draw(tensor, generator)
        for layer in self.modules():
            if isinstance(layer, (nn.BatchNorm1d, nn.BatchNorm2d)) and layer.running_var is not None:
                layer.running_var.abs_().add_(0.5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = [x]
        for step, layer in zip(self._program.steps, self._layers, strict=True):
            values.append(layer(*(values[number] for number in step.operands)))
        return tuple(values[number] for number in self._program.results)


def _draw(tensor: torch.Tensor, generator: torch.Generator) -> None:
    """Small numbers, such that values neither grow nor vanish."""
    fan_in = max(1, tensor[0].numel()) if tensor.dim() > 1 else 1
    tensor.copy_(torch.randn(tensor.shape, generator=generator) / math.sqrt(fan_in))


class _Function(nn.Module):
    def __init__(self, function: Callable[..., torch.Tensor]):
        super().__init__()
        self._function = function

    def forward(self, *operands: torch.Tensor) -> torch.Tensor:
        return self._function(*operands)


class _Branch(nn.Module):
    """A norm in one branch, a convolution with a norm in the other."""

    def __init__(self, one: nn.Module, other: nn.Module):
        super().__init__()
        self._one, self._other = one, other

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: self._one(x) + 1, lambda x: self._other(x) * 2, (x,))


def _product(is_image: bool, of: list[int], options: tuple[int, ...]) -> tuple[nn.Module, int]:
    made, kernel, has_bias = options
    if not is_image:
        return nn.Linear(of[0], made, bias=bool(has_bias)), made
    return nn.Conv2d(of[0], made, kernel, padding=kernel // 2, bias=bool(has_bias)), made


def _depthwise(is_image: bool, of: list[int], options: tuple[int, ...]) -> tuple[nn.Module, int]:
    made, kernel, has_bias = options
    if not is_image:
        return _product(is_image, of, options)
    return nn.Conv2d(of[0], of[0], kernel, padding=kernel // 2, groups=of[0], bias=bool(has_bias)), of[0]


def _norm(is_image: bool, of: list[int], options: tuple[int, ...]) -> tuple[nn.Module, int]:
    kind = nn.BatchNorm2d if is_image else nn.BatchNorm1d
    return kind(of[0], affine=bool(options[-1])), of[0]


def _branch(is_image: bool, of: list[int], options: tuple[int, ...]) -> tuple[nn.Module, int]:
    norms = [_norm(is_image, of, options)[0] for _ in range(2)]
    product, _ = _product(is_image, of, (of[0], *options[1:]))
    return _Branch(norms[0], nn.Sequential(product, norms[1])), of[0]


def _function(function: Callable[..., torch.Tensor]) -> Callable[..., tuple[nn.Module, int]]:
    return lambda is_image, of, options: (_Function(function), of[0])


_LAYERS: dict[str, Callable[..., tuple[nn.Module, int]]] = {
    "product": _product,
    "depthwise": _depthwise,
    "norm": _norm,
    "branch": _branch,
    "relu": _function(torch.relu),
    "scaled": _function(lambda x: x * 0.5 + 1),
    "sum": _function(lambda x, y: x + y),
    "cat": lambda is_image, of, options: (_Function(lambda x, y: torch.cat([x, y], 1)), sum(of)),
}

#: Products and norms come more often than the rest.
_DRAWN = ("product", "product", "depthwise", "norm", "norm", "norm", "branch", "relu", "scaled", "sum", "cat")


def norm_program(draw: Draw) -> NormProgram:
    """A net of up to `STEPS` layers."""
    first = draw.choice(_CHANNELS)
    shape = (2, first, 4, 5) if draw.boolean() else (3, first)
    channels, steps = [first], list[NormStep]()
    for _ in range(draw.integer(2, STEPS)):
        op = draw.choice(_DRAWN)
        last = len(channels) - 1
        one = draw.choice([last, last, draw.integer(0, last)])
        partners = [number for number, count in enumerate(channels) if op == "cat" or count == channels[one]]
        operands = (one, draw.choice(partners)) if op in ("sum", "cat") else (one,)
        step = NormStep(op, operands, (draw.choice(_CHANNELS), draw.choice((1, 3)), draw.integer(0, 1)))
        steps.append(step)
        channels.append(_LAYERS[op](len(shape) == 4, [channels[number] for number in operands], step.options)[1])
    last = len(channels) - 1
    return NormProgram(
        shape, tuple(steps), (last, *draw.several(lambda: draw.integer(1, last), 2)), draw.integer(0, 99)
    )
