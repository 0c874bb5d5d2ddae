"""Functions of NumPy's that dynamo has torch compute: numbers come first in them, and alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

ARITHMETIC = {
    "times": lambda x: (2 * x, x * 2, 1.5 * x, 2 * np.arange(x.shape[0])),
    "plus": lambda x: (2 + x, 2 - x, 1.5 - x, x - 1),
    "quotients": lambda x: (2 / (x + 1), 7 // (x + 1), 7 % (x + 1), x / 2),
    "powers": lambda x: (2**x, x**2),
    "extremes": lambda x: (np.maximum(1, x), np.minimum(x, 2), np.clip(x, 0, 3)),
    "choices": lambda x: (np.where(x > 1, 2, x), np.where(x > 1, 2, 0), x > 2),
    "movement": lambda x: (np.roll(x, 7, 0), np.concatenate([x, 0 * x], 1)),
    "sums": lambda x: (x.sum(), x.mean(0), 1 - np.cumsum(x, 1), x @ x.T),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8])
@pytest.mark.parametrize("name", ARITHMETIC)
def test_they_are_those_of_dynamos_eager_mode(name, dtype):
    x = np.random.default_rng(0).integers(1, 6, (4, 5)).astype(dtype)
    expected = torch.compile(ARITHMETIC[name], backend="eager", fullgraph=True)(x)
    torch.compiler.reset()
    got = torch.compile(ARITHMETIC[name], backend="pipeline", fullgraph=True)(x)
    for one, other in zip(got, expected, strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-6)
