"""Arithmetic on the host's side of a plan gives what PyTorch gives, for special numbers too."""

from __future__ import annotations

import pytest
import torch

from pipeline.runtime.device.host_arithmetic import compute

NUMBERS = [0.0, -0.0, 0.5, -0.5, 1.0, 2.5, -2.5, 3.7, 1e10, float("inf"), float("-inf"), float("nan")]

_NAMES = (
    "sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh exp exp2 expm1 log log2 log10 log1p ceil floor trunc"
)
ONE = {name: getattr(torch, name) for name in [*_NAMES.split(), "sqrt", "rsqrt", "erf"]}
ONE |= {"roundeven": torch.round, "absf": torch.abs, "negf": torch.neg}
TWO = {"addf": torch.add, "subf": torch.sub, "mulf": torch.mul, "divf": torch.div, "powf": torch.pow}
TWO |= {"remf": torch.fmod, "copysign": torch.copysign, "atan2": torch.atan2}
TWO |= {"maximumf": torch.maximum, "minimumf": torch.minimum, "maxnumf": torch.fmax, "minnumf": torch.fmin}


@pytest.mark.parametrize("kind, dtype, tolerance", [("f64", torch.float64, 1e-14), ("f32", torch.float32, 2e-7)])
@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_functions_of_floats(name, kind, dtype, tolerance):
    numbers = [float(torch.tensor(number, dtype=dtype)) for number in NUMBERS]
    rows = [(a,) for a in numbers] if name in ONE else [(a, b) for a in numbers for b in numbers]
    got = [compute(name, row, kind, kind, 0) for row in rows]
    columns = [torch.tensor(column, dtype=torch.float64) for column in zip(*rows, strict=True)]
    wanted = (ONE | TWO)[name](*columns).to(dtype)
    torch.testing.assert_close(torch.tensor(got, dtype=dtype), wanted, rtol=tolerance, atol=1e-300, equal_nan=True)


@pytest.mark.parametrize("bits", [8, 32, 64])
def test_functions_of_bits(bits):
    for value in (0, 1, 2, 6, 96, 127, -1, -2, -128, -(1 << (bits - 1))):
        text = format(value & ((1 << bits) - 1), f"0{bits}b")
        wanted = {
            "ctlz": len(text) - len(text.lstrip("0")),
            "cttz": len(text) - len(text.rstrip("0")),
            "ctpop": text.count("1"),
            "absi": value if value == -(1 << (bits - 1)) else abs(value),
        }
        assert {name: compute(name, [value], f"i{bits}", f"i{bits}", 0) for name in wanted} == wanted
