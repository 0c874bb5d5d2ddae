"""Every unusual dtype as argument, weight, result and on the way: right, or one clear error, and never a crash."""

from __future__ import annotations

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # as soon as a model is quantized; weights are looked at then
from torch import nn

import pipeline
from pipeline import supervised

DTYPES = {str(value)[6:]: value for value in vars(torch).values() if isinstance(value, torch.dtype)}

#: Of the integers of less than a byte, the others; and what all other tests are about.
_LIKE_OTHERS = {f"{sign}{bits}" for sign in ("int", "uint") for bits in (2, 3, 5, 6, 7)} | {"bits1x8", "bits2x4"}
_USUAL = {"float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"}

#: Tensors of these have no elements in plain memory.
QUANTIZED = [name for name in DTYPES if name.startswith(("qint", "quint"))]


def sample(dtype):
    """[2, 4] of some numbers, or of any memory."""
    try:
        return torch.arange(8).to(dtype).view(2, 4)
    except (NotImplementedError, RuntimeError):
        return torch.arange(8 * dtype.itemsize, dtype=torch.uint8).view(dtype).view(2, 4)


class Model(nn.Module):
    """Takes and keeps tensors of a dtype, hands them on, and converts to and from it where torch does."""

    def __init__(self, dtype, converts):
        super().__init__()
        self.register_buffer("weight", sample(dtype))
        self.dtype, self.converts = dtype, converts

    def forward(self, x, y):
        moved = x, x.reshape(-1), self.weight[1:], (y * 2).tanh()
        if not self.converts:
            return moved
        real = x.to(torch.complex64).real + self.weight.to(torch.complex64).real
        return *moved, real * y, y.to(self.dtype), y.to(self.dtype).to(torch.complex64).real + 1


def memory(tensor):
    plain = tensor.dtype.is_complex or tensor.dtype == torch.bool or tensor.dtype.itemsize > 1
    return tensor if plain else tensor.contiguous().view(torch.uint8)


def check(run, model, x, y):
    """Whether the results are right; what the error is if it is one of the package's."""
    try:
        results = run(x, y)
    except pipeline.PipelineError as error:
        return str(error)
    expected = model(x, y)
    assert [one.dtype for one in results] == [one.dtype for one in expected]
    for mine, theirs in zip(results, expected, strict=True):
        same = memory(mine), memory(theirs)
        if mine.dtype.is_floating_point and mine.dtype.itemsize > 1 or mine.dtype.is_complex:
            torch.testing.assert_close(*same)
        else:
            assert (same[0].view(torch.uint8) == same[1].view(torch.uint8)).all()
    return "right"


def converts(name):
    try:
        Model(DTYPES[name], True)(sample(DTYPES[name]), torch.ones(2, 4))
    except (NotImplementedError, RuntimeError):
        return False
    return True


@pytest.fixture(scope="module", autouse=True)
def everything_is_loaded():
    """Children share what this process has loaded."""
    x, y = sample(torch.float8_e5m2), torch.ones(2, 4)
    pipeline.compile(Model(torch.float8_e5m2, True), (x, y), fallback="torch")


def in_a_child(work):
    return supervised.run(work, supervised.ResourceLimits(seconds=100), lambda told: None)


@pytest.mark.parametrize("name", sorted(DTYPES.keys() - {*QUANTIZED} - _LIKE_OTHERS - _USUAL))
def test_compile(name):
    model, x = Model(DTYPES[name], converts(name)), sample(DTYPES[name])
    y = torch.tensor([[0.0, 1, 2, 3], [1, 1, 0, 2]])

    def compiled(x, y):
        return pipeline.compile(model, (x, y), fallback="torch")(x, y)

    outcome = in_a_child(lambda: check(compiled, model, x, y))
    # where it is on, torch's log of what it traces knows no integers of less than a byte
    assert outcome == "right" or (name in ("int1", "int4", "uint1", "uint4") and "could not functionalize" in outcome)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "uint16", "complex32"])
def test_torch_compile(name):
    model, x, y = Model(DTYPES[name], converts(name)), sample(DTYPES[name]), torch.ones(2, 4)

    def compiled(x, y):
        with torch.no_grad():
            return torch.compile(model, backend="pipeline", options={"fallback": "torch"})(x, y)

    assert in_a_child(lambda: check(compiled, model, x, y)) == "right"


@pytest.mark.parametrize("name", ["qint8", "quint8", "qint32"])
def test_quantized(name):
    x = torch.quantize_per_tensor(torch.ones(2, 4), 0.5, 0, DTYPES[name])
    model = Model(torch.float32, True)

    def compiled(x, y):
        return pipeline.compile(model, (x, y))(x, y)

    assert in_a_child(lambda: check(compiled, model, x, torch.ones(2, 4))) != "right"
