"""`zero_points=True`: products of weights that are rounded between their smallest and largest value."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import pipeline
from pipeline.errors import OptionError


def rounded(weight: torch.Tensor, bits: int, group: int | None) -> torch.Tensor:
    """What the weights of a layer become, in float64."""
    groups = weight.detach().unflatten(1, (-1, group or weight.shape[1]))
    least, most = groups.amin(2, keepdim=True).clamp(max=0), groups.amax(2, keepdim=True).clamp(min=0)
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    scale = ((most - least) / (2**bits - 1)).clamp(min=2.0**-126)
    if bits == 4:
        scale = (scale * (1 + 2.0**-8)).bfloat16().float()
    zero = (low - least / scale).round().clamp(low, high)
    q = ((groups / scale).round() + zero).clamp(low, high)
    return ((q.double() - zero.double()) * scale.double()).flatten(1)


#: (inputs, outputs): whole panels and others; sums of whole words and others.
SIZES = [(512, 256), (320, 33), (64, 250), (192, 1030), (96, 64)]


class Layers(nn.Module):
    """Products with layers of all sizes, of weights around 0, above it, below it, and of one value."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(*sizes, bias=number % 2 == 0) for number, sizes in enumerate(SIZES))
        with torch.no_grad():
            for number, layer in enumerate(self.layers):
                layer.weight.mul_(0 if number == 4 else 1).add_((0, 0.3, -2, 0.02, 0.7)[number])
            self.layers[0].weight[5] = 0
            self.layers[0].weight[7] *= 1e20

    def forward(self, *data: torch.Tensor) -> list[torch.Tensor]:
        return [layer(x) for layer, x in zip(self.layers, data, strict=True)]


@pytest.mark.parametrize(("bits", "group"), list(itertools.product((4, 8), (None, 32))), ids=str)
def test_results_are_those_of_the_rounded_weights(bits: int, group: int | None) -> None:
    torch.manual_seed(0)
    model, exact = Layers().eval(), Layers().double()
    with torch.no_grad():
        for layer, wide in zip(model.layers, exact.layers, strict=True):
            wide.weight.copy_(rounded(layer.weight, bits, group))
            if layer.bias is not None:
                wide.bias.copy_(layer.bias)
    for (rows, cpu), activations in itertools.product(
        ((1, "native"), (19, "native"), (2, "x86-64-v3")), ("f32", "int8")
    ):
        data = tuple(torch.randn(rows, length) for length, _ in SIZES)
        options: dict[str, Any] = {"weights": f"int{bits}", "group": group, "activations": activations}
        executable = pipeline.compile(model, data, zero_points=True, cpu=cpu, num_threads=1, **options)
        steps = [(x.abs().amax(1, keepdim=True) / 127) for x in data]
        read = (
            data if activations == "f32" else [(x / step).round() * step for x, step in zip(data, steps, strict=True)]
        )
        with torch.no_grad():
            wanted = exact(*(x.double() for x in read))
            for layer, got, expected, x in zip(exact.layers, executable(*data), wanted, read, strict=True):
                size = x.double().abs() @ layer.weight.abs().T + 1e-30
                assert ((got.double() - expected).abs() <= 2e-6 * size + 1e-6).all(), (rows, cpu, options)


def test_errors_of_skewed_weights_are_smaller() -> None:
    torch.manual_seed(0)
    layer, x = nn.Linear(256, 128, bias=False).requires_grad_(False), torch.eye(256)
    layer.weight.copy_(torch.randn(128, 256).exp())
    exact = x @ layer.weight.T
    for kind, group in itertools.product(("int8", "int4"), (None, 32)):
        errors = [
            (pipeline.compile(layer, (x,), weights=kind, group=group, zero_points=points)(x) - exact).norm()
            for points in (False, True)
        ]
        assert errors[1] < 0.56 * errors[0], (kind, group)


@pytest.mark.parametrize(("group", "bits"), [(32, 4.75), (64, 4.375), (128, 4.1875)])
def test_bytes_in_memory_and_in_files(tmp_path: Path, group: int, bits: float) -> None:
    """A number of four bits, its part of a scale of 16 and of a zero point of 8, and nothing else."""
    model, x = nn.Linear(1024, 1024, bias=False), torch.randn(1, 1024)
    executable = pipeline.compile(model, (x,), num_threads=1, weights="int4", group=group, zero_points=True)
    result = executable(x)
    assert executable.memory.prepared == model.weight.numel() * bits / 8
    executable.save(tmp_path / "net", prepacked=True)
    assert torch.equal(torch.as_tensor(pipeline.load(tmp_path / "net")(x)), result)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"zero_points": True}, "zero_points=True: is for weights='int8' and weights='int4'"),
        ({"zero_points": 1, "weights": "int8"}, "zero_points: expected True or False, got 1"),
    ],
)
def test_what_it_is_not_for(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        pipeline.compile(nn.Linear(64, 64), (torch.zeros(1, 64),), **options)
