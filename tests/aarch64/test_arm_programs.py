"""Programs on AArch64 against eager PyTorch: recurrent layers, transforms, loops, checks, dtypes."""

from __future__ import annotations

import pytest
import torch
from emulator import Emulator
from function_model import Function
from numerics import differences
from schedules import Program, Several
from torch import nn

import pipeline

CPU = "neoverse-n1"


def programs():
    """Models, each with what it is called with, by name."""
    torch.manual_seed(0)
    x, y = torch.randn(5, 37), torch.rand(5, 37) + 0.01
    whole = torch.randint(-50, 50, (5, 37))
    wide = torch.cat([torch.linspace(-90, 90, 400), torch.tensor([1e5, 3e6, -1e30, 0.0, float("inf"), float("nan")])])

    def functions(x, y):
        small = [torch.sinh, torch.cosh, torch.asinh, torch.atan, torch.erf, torch.expm1, torch.sigmoid]
        found = [function(x) for function in (torch.exp, torch.tanh, torch.sin, torch.cos, torch.tan, *small)]
        return [*found, torch.log(y), torch.log1p(y), torch.log2(y), torch.pow(y, x[:, :1]), torch.atan2(x, y)]

    def many(x):
        return torch.exp(x), torch.sin(x), torch.cos(x), torch.tan(x), torch.tanh(x), torch.erf(x), torch.sigmoid(x)

    def integers(n):
        return n // 7, n % 7, n >> 2, n * n, (n.to(torch.int8) + 100), n.to(torch.uint8) * 3, n.float().round().int()

    def casts(x):
        return x.to(torch.float16), x.to(torch.bfloat16), x.half().float() + 1, x.bfloat16().float(), x.double().half()

    def narrow(x):
        half, brain = x.half(), x.bfloat16()
        return half @ half.T, brain @ brain.T, torch.softmax(half, -1), torch.exp(brain), half * 3 + half

    def branch(x):
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x - 1, (x,))

    def steps(x):
        def more(number, x):
            return x.abs().sum() < 1000

        return torch.while_loop(more, lambda number, x: (number + 1, x * 1.5), (torch.tensor(0), x))

    def chosen(x):
        return x[x > 0], torch.nonzero(x > 1)

    def spectra(x):
        pairs = torch.fft.fft(x[:, :32]), torch.fft.rfft(x), torch.fft.ifft(torch.complex(x, x[:, :1].expand(x.shape)))
        return [torch.view_as_real(one) for one in pairs]

    return {
        "functions": (Function(functions), (x, y)),
        "functions, far": (Function(many), (wide,)),
        "functions in float64": (Function(functions), (x.double(), y.double())),
        "integers": (Function(integers), (whole,)),
        "casts": (Function(casts), (x * 100,)),
        "narrow floats": (Function(narrow), (x,)),
        "branch": (Function(branch), (x,)),
        "loop": (Function(steps), (x,)),
        "chosen": (Function(chosen), (x,)),
        "spectra": (Function(spectra), (x,)),
        "lstm": (nn.LSTM(37, 24, 2, batch_first=True, bidirectional=True), (torch.randn(2, 5, 37),)),
        "gru": (nn.GRU(37, 24), (torch.randn(5, 2, 37),)),
        "embedding bag": (nn.EmbeddingBag(50, 9), (whole.abs(),)),
        "long sums": (
            Function(lambda a, b: (a @ b, a.sum(-1), a.var(0))),
            (torch.randn(9, 1000), torch.randn(1000, 13)),
        ),
    }


def test_programs(tmp_path):
    """All of them are compiled as one."""
    made = programs()
    model = Several([Program(*one) for one in made.values()]).eval().requires_grad_(False)
    inputs = tuple(x for _, args in made.values() for x in args)
    executable = pipeline.compile(model, inputs, cpu=CPU, linked=True)
    wanted = model(*inputs)
    emulator = Emulator(tmp_path, CPU, is_shared=True)
    emulator.add(executable, inputs, wanted, threads=2)
    (got,) = emulator.run()
    problems = [(name, *differences(*pair)) for name, *pair in zip(made, got, wanted, strict=True)]
    assert [problem for problem in problems if len(problem) > 1] == []


QUANTIZED = [
    {"weights": "int8"},
    {"weights": "int4"},
    {"weights": "int8", "activations": "int8", "group": 32},
    {"weights": "int4", "activations": "int8", "group": 32},
    {"weights": "int4", "activations": "int8"},
    {"weights": "int4", "activations": "int8", "group": 32, "zero_points": True},
]


@pytest.mark.parametrize("options", QUANTIZED, ids=str)
def test_quantized_weights(tmp_path, options):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(256, 96), nn.GELU(), nn.Linear(96, 40)).requires_grad_(False)
    x = torch.randn(7, 256)
    emulator = Emulator(tmp_path, CPU)
    emulator.add(pipeline.compile(net, (x,), cpu=CPU, linked=True, **options), (x,), net(x))
    wanted = pipeline.compile(net, (x,), **options)(x)
    bound = 2e-2 if "activations" in options else 2e-5  # a byte halfway between two may become the other one
    torch.testing.assert_close(emulator.run(), [wanted], rtol=bound, atol=bound)


def test_a_check_that_fails(tmp_path):
    table = nn.Embedding(10, 3).requires_grad_(False)
    emulator = Emulator(tmp_path, CPU)
    indices = torch.tensor([1, 10])
    emulator.add(pipeline.compile(table, (indices,), cpu=CPU, linked=True), (indices,), table(indices - 1))
    with pytest.raises(AssertionError, match="index"):
        emulator.run()
