"""Weights that are taken out of wide integers by shifts and masks, as layers of GPTQ and AWQ do: read in few bits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from test_int8_products import said
from torch import nn

import pipeline

K, N, GROUP = 256, 320, 64

#: The order in which AWQ has the eight numbers of an integer.
REVERSED = [0, 4, 1, 5, 2, 6, 3, 7]


def words(*shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    """Integers of all bits."""
    limits = torch.iinfo(dtype)
    return torch.randint(limits.min, limits.max, shape, dtype=dtype)


class Packed(nn.Module):
    """A linear layer of weights packed along rows: [K * bits / 32, N], with zeros packed along columns."""

    def __init__(self, bits: int = 4, dtype: torch.dtype = torch.int32):
        super().__init__()
        self.bits, self.each = bits, torch.iinfo(dtype).bits // bits
        self.register_buffer("qweight", words(K // self.each, N, dtype=dtype))
        self.register_buffer("qzeros", words(K // GROUP, N // self.each, dtype=dtype))
        self.register_buffer("scales", torch.rand(K // GROUP, N) / 100)
        self.register_buffer("shifts", torch.arange(0, bits * self.each, bits, dtype=dtype).unsqueeze(0))

    def unpacked(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The numbers of the weight and of the zero points."""
        mask = 2**self.bits - 1
        zeros = (self.qzeros.unsqueeze(2) >> self.shifts.unsqueeze(0)) & mask
        weight = (self.qweight.unsqueeze(1) >> self.shifts.unsqueeze(-1)) & mask
        return weight.reshape(-1, N), zeros.reshape(-1, N)

    def weight(self, kind: torch.dtype) -> torch.Tensor:
        """The weight that the layer stands for."""
        weight, zeros = self.unpacked()
        groups = weight.reshape(K // GROUP, GROUP, N) - (zeros.unsqueeze(1) + 1)
        return (self.scales.to(kind).unsqueeze(1) * groups.to(kind)).reshape(K, N)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight(x.dtype)


class ByIndex(Packed):
    """The same as AutoGPTQ's layers in PyTorch compute it: the group of each row is an index."""

    def __init__(self, in_order: bool):
        super().__init__()
        groups = torch.arange(K, dtype=torch.int32) // GROUP
        self.register_buffer("g_idx", groups if in_order else groups[torch.randperm(K)])

    def weight(self, kind: torch.dtype) -> torch.Tensor:
        weight, zeros = (tensor.to(torch.int8) for tensor in self.unpacked())
        rows = self.g_idx.long()
        return self.scales[rows].to(kind) * (weight - (zeros + 1)[rows]).to(kind)


class Reversed(nn.Module):
    """A linear layer of weights packed along columns, as AWQ's layers: [K, N / 8], not in the order of bits."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("qweight", words(K, N // 8))
        self.register_buffer("qzeros", words(K // GROUP, N // 8))
        self.register_buffer("scales", torch.rand(K // GROUP, N) / 100)

    def weight(self, kind: torch.dtype) -> torch.Tensor:
        """The weight that the layer stands for."""
        shifts = torch.arange(0, 32, 4)
        both = [(q[:, :, None] >> shifts).to(torch.int8).view(q.shape[0], -1) for q in (self.qweight, self.qzeros)]
        order = torch.arange(N, dtype=torch.int32).view(-1, 8)[:, REVERSED].view(-1)
        weight, zeros = (q[:, order] & 15 for q in both)
        groups = zeros.repeat_interleave(GROUP, dim=0)
        return (weight - groups).to(kind) * self.scales.to(kind).repeat_interleave(GROUP, dim=0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight(x.dtype)


#: name: (a layer, the bits that a number is kept in)
LAYERS: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "four bits of 32": (Packed, 4),
    "two bits of 32": (lambda: Packed(2), 4),
    "eight bits of 32": (lambda: Packed(8), 8),
    "four bits of 64": (lambda: Packed(4, torch.int64), 4),
    "four bits of 16": (lambda: Packed(4, torch.int16), 4),
    "in another order": (Reversed, 4),
}


@pytest.mark.parametrize("name", LAYERS)
def test_numbers_are_kept_in_few_bits(name: str) -> None:
    torch.manual_seed(0)
    make, bits = LAYERS[name]
    model = make()
    for rows, cpu in ((1, "native"), (3, "native"), (19, "native"), (1, "x86-64-v3"), (5, "x86-64")):
        x = torch.randn(rows, K)
        executable = pipeline.compile(model, (x,), cpu=cpu, fallback="error", num_threads=1)
        assert said(executable, "narrow-unpacked-weights")
        assert len(said(executable, "pack-nibbles")) == (bits == 4)
        exact = x.double() @ model.weight(torch.float64)
        assert (executable(x).double() - exact).abs().max() < 2e-6 * exact.abs().max()
        scales_and_zeros = (K // GROUP) * N * (4 + 4)
        assert executable.memory.prepared <= K * N * bits / 8 + scales_and_zeros + 1024


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("make", [Packed, lambda: ByIndex(in_order=False), Reversed], ids=["packed", "by index", "awq"])
def test_layers_in_16_bits(make: Callable[[], nn.Module], dtype: torch.dtype) -> None:
    """As checkpoints have them: weights are rounded to 16 bits as eager rounds them, and kept in four."""
    torch.manual_seed(0)
    model = make()
    model.scales = model.scales.to(dtype)
    for rows in (1, 5):
        x = torch.randn(rows, K).to(dtype)
        executable = pipeline.compile(model, (x,), fallback="error", num_threads=1)
        assert len(said(executable, "pack-nibbles")) == 1
        exact = x.double() @ model.weight(dtype).double()
        assert ((executable(x) - exact).abs() <= torch.finfo(dtype).eps * exact.abs() + 2e-6 * exact.abs().max()).all()
        assert executable.memory.prepared <= K * N // 2 + (K // GROUP) * N * 4 + 4 * K + 1024


@pytest.mark.parametrize("in_order", [True, False])
def test_groups_that_an_index_tells(in_order: bool) -> None:
    """Rows are put into the order of groups once; data is in each call."""
    torch.manual_seed(0)
    model = ByIndex(in_order)
    rows = torch.export.Dim("rows", max=64)
    executable = pipeline.compile(model, (torch.randn(3, K),), fallback="error", dynamic_shapes=({0: rows},))
    assert said(executable, "order-weight-groups") and said(executable, "pack-nibbles")
    for count in (0, 1, 2, 19):
        x = torch.randn(count, K)
        exact = x.double() @ model.weight(torch.float64)
        assert count == 0 or (executable(x).double() - exact).abs().max() < 2e-6 * exact.abs().max()
        model.g_idx.copy_(model.g_idx[torch.randperm(K)])
    assert executable.memory.prepared <= K * N // 2 + (K // GROUP) * N * 8 + 4 * K + 1024


def test_groups_that_are_not_of_one_size() -> None:
    """Each call gathers scales; of an index that has become so since, it is an error of the call."""
    torch.manual_seed(0)
    model, x = ByIndex(in_order=False), torch.randn(2, K)
    executable = pipeline.compile(model, (x,), fallback="error")
    model.g_idx[0] = (model.g_idx[0] + 1) % (K // GROUP)
    with pytest.raises(pipeline.PipelineError, match="not the same number of rows each; disable order-weight-groups"):
        executable(x)
    other = pipeline.compile(model, (x,), fallback="error")
    missed = [remark for remark in other.remarks if remark.pass_name == "order-weight-groups"]
    assert [remark.kind for remark in missed] == ["missed"] and "not the same number of rows" in missed[0].reason
    exact = x.double() @ model.weight(torch.float64)
    assert (other(x).double() - exact).abs().max() < 2e-6 * exact.abs().max()
    model.g_idx[0] = K
    for each in (executable, other):
        with pytest.raises(pipeline.PipelineError, match="index out of range|the same number of rows"):
            each(x)


class OtherIndices(nn.Module):
    """Scales by index of weights in floats, of groups that do not divide the rows, and of batches and columns first."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("w", torch.randn(60, 32))
        self.register_buffer("q", torch.randint(-128, 128, (60, 32), dtype=torch.int8))
        self.register_buffer("few", torch.rand(7, 32))
        self.register_buffer("index", torch.arange(60) % 7)
        self.register_buffer("even", torch.rand(6, 32))
        self.register_buffer("order", torch.randperm(60) // 10)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        weight = self.q.to(x.dtype) * self.even[self.order]
        return [
            x @ (self.w * self.even[self.order]),
            x @ (self.q.to(x.dtype) * self.few[self.index]),
            weight.T @ x[0].T,
            x @ (weight * self.even[self.order - 6]),
            torch.einsum("bmk,kn->bnm", x, weight),
        ]


def test_other_indices() -> None:
    torch.manual_seed(0)
    model, x = OtherIndices(), torch.randn(2, 5, 60)
    executable = pipeline.compile(model, (x,), fallback="error")
    assert len(said(executable, "order-weight-groups")) >= 2
    missed = [remark.reason for remark in executable.remarks if remark.pass_name == "order-weight-groups"]
    assert any("7 groups do not divide its 60 rows" in reason for reason in missed)
    assert any("none of its factors are bytes" in reason for reason in missed)
    for got, expected in zip(executable(x), model.double()(x.double()), strict=True):
        torch.testing.assert_close(got.double(), expected, rtol=1e-5, atol=1e-3)


def test_weights_that_change_and_data_in_bytes() -> None:
    torch.manual_seed(0)

    class Layers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Packed(), Reversed()

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            step = x.abs().amax(1, keepdim=True) / 127
            rounded = (x / step).round().clamp(-127, 127).to(torch.int8).to(x.dtype) * step
            return self.first(rounded), self.second(x)

    model, x = Layers(), torch.randn(2, K)
    executable = pipeline.compile(model, (x,), fallback="error")
    for _ in range(2):
        for got, expected in zip(executable(x), model.double()(x.double()), strict=True):
            assert (got.double() - expected).abs().max() < 1e-5 * expected.abs().max()
        model.float()
        model.first.qweight.copy_(words(*model.first.qweight.shape))
        model.second.qzeros.copy_(words(*model.second.qzeros.shape))


def test_integers_that_are_used_otherwise() -> None:
    """What is returned, summed up or indexed with is what it was."""

    class Uses(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("q", words(16, 24))

        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            low, high = self.q & 15, (self.q >> 24) & 255
            signed = (self.q << 28) >> 28
            return [
                low,
                high + x.int(),
                signed,
                low.sum(0) + x.int()[0],
                x[0][low.long()],
                (high << 24) * 3,
                signed * x,
            ]

    model, x = Uses(), torch.randn(16, 24) * 100
    for got, expected in zip(pipeline.compile(model, (x,), fallback="error")(x), model(x), strict=True):
        assert got.dtype == expected.dtype
        assert torch.equal(got, expected)
