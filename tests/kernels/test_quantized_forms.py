"""Products of quantized factors in the forms that people write them in: right, whatever is read as bytes."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from host import DOTS, runs
from torch import nn

import pipeline

K, N = 96, 40

#: What reads bytes, in remarks.
FUSED, BYTES = "fuse-dequantization", "contract-in-int8"


def int8(*shape: int) -> torch.Tensor:
    return torch.randint(-128, 128, shape, dtype=torch.int8)


def uint8(*shape: int) -> torch.Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8)


def scale(*shape: int) -> torch.Tensor:
    return torch.rand(*shape) / 50 + 1e-3


def quantized(x: torch.Tensor, zero: int = 3, dtype: torch.dtype = torch.uint8) -> torch.Tensor:
    low, high = (0, 255) if dtype == torch.uint8 else (-128, 127)
    return ((x / 0.03).round() + zero).clamp(low, high).to(dtype)


def data(x: torch.Tensor, zero: int = 3, dtype: torch.dtype = torch.uint8) -> torch.Tensor:
    """Quantized and dequantized."""
    return (quantized(x, zero, dtype).float() - zero) * 0.03


def by_rows(x: torch.Tensor) -> torch.Tensor:
    """Quantized by the largest element of each row, and dequantized."""
    step = x.abs().amax(1, keepdim=True) / 127
    return (x / step).round().clamp(-128, 127).to(torch.int8).float() * step


def nibbles(q: torch.Tensor) -> torch.Tensor:
    """Two numbers of four bits of each byte, by rows."""
    return torch.stack([q & 15, q >> 4], 1).flatten(0, 1).float() - 8


#: name: (the function of the data and of buffers, these, the pass that has products read bytes, if one has)
Form = tuple[Callable[..., torch.Tensor], dict[str, torch.Tensor], str | None]
FORMS: dict[str, Form] = {
    "x @ w": (lambda x, q, s: x @ (q.float() * s), {"q": int8(K, N), "s": scale(N)}, FUSED),
    "w @ x": (lambda x, q, s: (q.float() * s) @ x.T, {"q": int8(N, K), "s": scale(N, 1)}, FUSED),
    "einsum": (
        lambda x, q, s: torch.einsum("bi,oi->bo", x, s * q.float()),
        {"q": int8(N, K), "s": scale(N, 1)},
        FUSED,
    ),
    "einsum, transposed": (
        lambda x, q, s: torch.einsum("bi,oi->ob", x, q.float() * s),
        {"q": int8(N, K), "s": scale(N, 1)},
        FUSED,
    ),
    "scale along the sum": (lambda x, q, s: x @ (q.float() * s), {"q": int8(K, N), "s": scale(K, 1)}, FUSED),
    "two scales": (
        lambda x, q, s, t: x @ (q.float() * s * t),
        {"q": int8(K, N), "s": scale(K, 1), "t": scale(N)},
        FUSED,
    ),
    "zero that is added": (
        lambda x, q, s, z: x @ ((q.float() + z) * s),
        {"q": uint8(K, N), "s": scale(N), "z": torch.randn(N)},
        FUSED,
    ),
    "groups of rows": (
        lambda x, q, s, z: x @ ((q.float().view(3, 32, N) - z.float()) * s).view(K, N),
        {"q": int8(K, N), "s": scale(3, 1, N), "z": int8(3, 1, N)},
        FUSED,
    ),
    "groups of rows and columns": (
        lambda x, q, s: x @ ((q.float().view(3, 32, 5, 8) * s).reshape(K, N)),
        {"q": int8(K, N), "s": scale(3, 1, 5, 1)},
        FUSED,
    ),
    "groups that are dims": (
        lambda x, q, s: x @ (q.float() * s).flatten(1).T,
        {"q": int8(N, 3, 32), "s": scale(N, 3, 1)},
        FUSED,
    ),
    "one weight of two products": (
        lambda x, q, s: (x @ (q.float() * s)).relu() @ (q.float() * s).T,
        {"q": int8(K, N), "s": scale(N)},
        FUSED,
    ),
    "batches": (
        lambda x, q, s: torch.bmm(x.view(1, -1, K).expand(3, -1, -1), q.float() * s),
        {"q": int8(3, K, N), "s": scale(3, 1, N)},
        FUSED,
    ),
    "bias": (
        lambda x, q, s, b: torch.addmm(b, x, q.float() * s),
        {"q": int8(K, N), "s": scale(N), "b": torch.randn(1, N)},
        FUSED,
    ),
    "function of the weight": (
        lambda x, q, s: x @ (q.float().tanh() * s),
        {"q": int8(K, N), "s": scale(N)},
        FUSED,
    ),
    "sum of the weight": (lambda x, q, s: x.sum() + (q.float() * s).sum(0), {"q": int8(K, N), "s": scale(N)}, FUSED),
    "float64": (lambda x, q, s: x.double() @ (q.double() * s.double()), {"q": int8(K, N), "s": scale(N)}, None),
    "int16": (lambda x, q, s: x @ (q.float() * s), {"q": int8(K, N).to(torch.int16) * 9, "s": scale(N)}, None),
    "nibbles": (lambda x, q, s: x @ (nibbles(q) * s), {"q": uint8(K // 2, N), "s": scale(N)}, FUSED),
    "convolution": (
        lambda x, q, s: nn.functional.conv1d(x[:, None], q.float() * s),
        {"q": int8(16, 1, 9), "s": scale(16, 1, 1)},
        None,
    ),
    "embedding": (lambda x, q, s: (q.float() * s)[x[:, 0].abs().long()], {"q": int8(K, N), "s": scale(N)}, None),
    "bytes": (lambda x, q, s: data(x) @ (q.float() * s), {"q": int8(K, N), "s": scale(N)}, BYTES),
    "bytes, w @ x": (
        lambda x, q, s: (q.float() * s) @ data(x, 0, torch.int8).T,
        {"q": int8(N, K), "s": scale(N, 1)},
        BYTES,
    ),
    "bytes, einsum": (
        lambda x, q, s: torch.einsum("bi,oi->ob", data(x), q.float() * s),
        {"q": int8(N, K), "s": scale(N, 1)},
        BYTES,
    ),
    "bytes by rows": (lambda x, q, s: by_rows(x) @ (q.float() * s), {"q": int8(K, N), "s": scale(N)}, BYTES),
    "bytes of data alone": (lambda x: data(x) @ data(x * 2).T, {}, BYTES),
    "bytes, negative scale": (lambda x, q, s: data(x) @ (q.float() * -s), {"q": int8(K, N), "s": scale(N)}, BYTES),
    "bytes, zeros along the sum": (
        lambda x, q, s, z: data(x) @ ((q.float() - z) * s),
        {"q": int8(K, N), "s": scale(N), "z": int8(K, 1).float()},
        FUSED,
    ),
    "bytes, zeros that are not whole": (
        lambda x, q, s: ((quantized(x).float() - 2.5) * 0.03) @ (q.float() * s),
        {"q": int8(K, N), "s": scale(N)},
        FUSED,
    ),
    "bytes that wrap": (
        lambda x, q, s, z: data(x) @ ((q - z).float() * s),
        {"q": int8(K, N), "s": scale(N), "z": int8(N)},
        BYTES,
    ),
    "bytes less integers of 16 bits": (
        lambda x, q, s, z: data(x) @ ((q - z).float() * s),
        {"q": int8(K, N), "s": scale(N), "z": torch.randint(-32768, 32767, (N,), dtype=torch.int16)},
        FUSED,
    ),
    "bytes, zeros of floats": (
        lambda x, q, s, z: data(x) @ ((q.float() - z) * s),
        {"q": int8(K, N), "s": scale(N), "z": torch.randn(N)},
        FUSED,
    ),
    "bytes, zeros out of their range": (
        lambda x, q, s, z: data(x) @ ((q.long() - z).float() * s),
        {"q": int8(K, N), "s": scale(N), "z": torch.randint(-(2**22), 2**22, (N,))},
        BYTES,
    ),
    "sums that wrap": (lambda x, q: quantized(x).to(torch.int16) @ q.to(torch.int16), {"q": int8(K, N)}, BYTES),
    "integers": (lambda x, q: quantized(x).int() @ q.int(), {"q": int8(K, N)}, BYTES),
}


class Model(nn.Module):
    def __init__(self, function: Callable[..., torch.Tensor], buffers: dict[str, torch.Tensor]):
        super().__init__()
        self.function, self.names = function, list(buffers)
        for name, tensor in buffers.items():
            self.register_buffer(name, tensor)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x, *(getattr(self, name) for name in self.names))


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str) -> None:
    function, buffers, reader = FORMS[name]
    model = Model(function, buffers)
    torch.manual_seed(0)
    for rows, cpu in ((1, "native"), (7, "x86-64-v4"), (7, "x86-64-v3")):
        x = torch.randn(rows, K)
        executable = pipeline.compile(model, (x,), fallback="error", cpu=cpu)
        if cpu != "native" and not runs(cpu):
            continue
        expected = model(x)
        limit = 3e-5 * expected.abs().max()
        assert (executable(x).double() - expected.double()).abs().max() <= limit
        if rows == 1 and (DOTS or reader != BYTES):
            passed = {remark.pass_name for remark in executable.remarks if remark.kind == "passed"}
            assert reader in passed if reader is not None else not passed & {FUSED, BYTES}


#: name: a product of the quantized data of a model, rows x K, with a buffer K x N of bytes
TINY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "weights": lambda x, q: x @ (q.float() * 0.02),
    "weights at the left": lambda x, q: (q.float().T * 0.02) @ x.T,
    "bytes": lambda x, q: data(x) @ (q.float() * 0.02),
    "bytes of data alone": lambda x, q: data(x) @ data(x.T * 2),
    "bytes as they are": lambda x, q: quantized(x).float() @ quantized(x).float().T,
    "integers": lambda x, q: quantized(x).int() @ q.int(),
    "sums of weights": lambda x, q: torch.cat([(q.float() * 0.02).sum(0), (q.float() * 0.02).sum(1), q.sum()[None]]),
}


@pytest.mark.parametrize("name", TINY)
def test_sizes_of_none_one_and_two(name: str) -> None:
    """A dim of one element is read at 0, wherever a loop is."""
    sizes = list(itertools.product((0, 1, 2), repeat=3))
    rows = [torch.randn(m, k) for m, k, _ in sizes]
    weights = {f"q{number}": int8(k, n) for number, (_, k, n) in enumerate(sizes)}

    class Products(Model):
        def forward(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
            return [TINY[name](x, getattr(self, q)) for x, q in zip(tensors, self.names, strict=True)]

    model = Products(TINY[name], weights)
    executable = pipeline.compile(model, tuple(rows), fallback="error")
    for result, expected in zip(executable(*rows), model(*rows), strict=True):
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)


def test_functions_of_many_ops_are_read_in_time() -> None:
    """An element that each of 40 ops uses twice is 2^40 reads."""

    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        for _ in range(40):
            x = x * x.sin()
        return x @ w

    model, x = Model(function, {"w": torch.randn(K, N)}), torch.randn(3, K)
    executable = pipeline.compile(model, (x,))
    torch.testing.assert_close(executable(x), model(x), rtol=1e-4, atol=1e-5)
