"""`weights="int4"`: the products of what the weights are rounded to, from two of them in a byte."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import pipeline


def rounded(weight: torch.Tensor, group: int | None) -> torch.Tensor:
    """What the weights of a layer become, in float64."""
    groups = weight.detach().unflatten(1, (-1, group or weight.shape[1]))
    largest = (groups.abs().amax(2, keepdim=True) / 7.5).clamp(min=2.0**-126)
    scale = (largest * (1 + 2.0**-8)).bfloat16().float()
    return ((groups / scale).round().clamp(-8, 7).double() * scale.double()).flatten(1)


def remarks(executable: pipeline.Executable, name: str) -> list[str]:
    return [remark.reason for remark in executable.remarks if remark.pass_name == name]


#: (inputs, outputs): whole panels of whole words, columns and sums that fill none, sums of bytes that are no words, and
#: one that has half a byte.
SIZES = [(512, 256), (320, 33), (64, 250), (192, 1030), (100, 64), (260, 96), (65, 80)]


class Layers(nn.Module):
    """Products of rows with layers of all sizes, with a bias and an activation behind some."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(*sizes, bias=number % 2 == 0) for number, sizes in enumerate(SIZES))

    def forward(self, *data: torch.Tensor) -> list[torch.Tensor]:
        results = [layer(x) for layer, x in zip(self.layers, data, strict=True)]
        return [nn.functional.gelu(y) if number % 3 == 0 else y for number, y in enumerate(results)]


@pytest.mark.parametrize(
    ("batch", "group", "cpu"),
    [
        ((1,), None, "native"),
        ((1,), 32, "native"),
        ((2, 3), 64, "native"),
        ((19,), 32, "native"),
        ((0,), 32, "native"),
        ((1,), None, "x86-64-v3"),
        ((19,), 64, "x86-64-v3"),
    ],
    ids=str,
)
def test_results_are_those_of_the_rounded_weights(batch: tuple[int, ...], group: int | None, cpu: str) -> None:
    torch.manual_seed(0)
    model = Layers().eval()
    data = [torch.randn(*batch, length) for length, _ in SIZES]
    executable = pipeline.compile(model, tuple(data), weights="int4", group=group, cpu=cpu)
    whole = [group is None or length % group == 0 for length, _ in SIZES]
    exact = Layers().double()
    with torch.no_grad():
        for layer, wide, known in zip(model.layers, exact.layers, whole, strict=True):
            wide.weight.copy_(rounded(layer.weight, group) if known else layer.weight)
            if layer.bias is not None:
                wide.bias.copy_(layer.bias)
        for got, expected in zip(executable(*data), exact(*(x.double() for x in data)), strict=True):
            torch.testing.assert_close(got.double(), expected, rtol=1e-5, atol=2e-5)
    said = remarks(executable, "pack-nibbles")
    packed = sum(known and length % 2 == 0 for known, (length, _) in zip(whole, SIZES, strict=True))
    assert 0 in batch or said.count("reads its weight of 4 bits two to a byte") == packed
    odd = "its weight of 4 bits stays in bytes: the length of its sum, 65, is not even"
    assert 0 in batch or (odd in said) == (group is None)


def test_rows_of_any_number_and_weights_that_change() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 256), nn.SiLU(), nn.Linear(256, 128)).eval()
    rows = torch.export.Dim("rows", min=1, max=64)
    example = torch.randn(4, 128)
    executable = pipeline.compile(model, (example,), dynamic_shapes=({0: rows},), weights="int4", group=32)
    for count in (1, 5, 40):
        with torch.no_grad():
            model[0].weight.mul_(-1.5)
            x = torch.randn(count, 128)
            hidden = nn.functional.silu(x.double() @ rounded(model[0].weight, 32).T + model[0].bias.double())
            exact = hidden @ rounded(model[2].weight, 32).T + model[2].bias.double()
            torch.testing.assert_close(executable(x).double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("group", "bits"), [(32, 4.5), (64, 4.25), (128, 4.125)])
def test_bytes_in_memory_and_in_files(tmp_path: Path, group: int, bits: float) -> None:
    """A number of four bits and its part of a scale of 16, and nothing else, in memory and in artifacts."""
    model, x = nn.Linear(1024, 1024, bias=False), torch.randn(1, 1024)
    executable = pipeline.compile(model, (x,), num_threads=1, weights="int4", group=group)
    result = executable(x)
    assert executable.memory.prepared == model.weight.numel() * bits / 8
    executable.save(tmp_path / "net", prepacked=True)
    assert (tmp_path / "net").stat().st_size <= model.weight.numel() * bits / 8 + 40_000
    loaded = pipeline.load(tmp_path / "net")
    assert torch.equal(torch.as_tensor(loaded(x)), result)
    assert {weight.type.dtype for weight in loaded.signature.weights} == {"int8", "bfloat16"}


def test_columns_of_zeros_and_large_weights() -> None:
    model, x = nn.Linear(128, 64, bias=False), torch.randn(2, 128)
    with torch.no_grad():
        model.weight[3] = 0
        model.weight[5] *= 1e30
    got = pipeline.compile(model, (x,), weights="int4", group=32)(x)
    exact = x.double() @ rounded(model.weight, 32).T
    assert (got[:, 3] == 0).all()
    torch.testing.assert_close(got.double(), exact, rtol=1e-5, atol=1e-5)


class Masked(nn.Module):
    """A product with numbers of four bits without a sign, and a zero point for each group of a column."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("q", torch.randint(0, 256, (256, 16, 32), dtype=torch.uint8))
        self.register_buffer("scale", torch.rand(256, 16, 1) / 50)
        self.register_buffer("zero", torch.randint(0, 16, (256, 16, 1)).float())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ (((self.q & 15).to(x.dtype) - self.zero) * self.scale).flatten(1).T


@pytest.mark.parametrize("rows", [1, 9])
def test_zero_points_of_groups(rows: int) -> None:
    """Of one row, data is summed up for them; of many, they are taken away from weights that come from the table."""
    torch.manual_seed(0)
    model, x = Masked(), torch.randn(rows, 512)
    executable = pipeline.compile(model, (x,))
    torch.testing.assert_close(executable(x).double(), model.double()(x.double()), rtol=1e-5, atol=2e-5)
    assert remarks(executable, "pack-nibbles") == ["reads its weight of 4 bits two to a byte"]
    for cpu, panels in (("sapphirerapids", "32 columns of quads"), ("znver3", "16 columns")):
        said = remarks(pipeline.compile(Masked(), (x,), cpu=cpu), "pack-weights")
        assert f"reads its weight in panels of {panels}, its scales, too" in said


class PackedByTorch(nn.Module):
    """A product with weights as torch packs them on this machine."""

    def __init__(self, columns: int, dtype: torch.dtype) -> None:
        super().__init__()
        numbers = torch.randint(0, 16, (columns, 512), dtype=torch.int32)
        self.register_buffer("packed", torch.ops.aten._convert_weight_to_int4pack_for_cpu(numbers, 1))
        self.register_buffer("scales_and_zeros", (torch.rand(16, columns, 2) / 50).to(dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result = torch.ops.aten._weight_int4pack_mm_for_cpu(x, self.packed, 32, self.scales_and_zeros)
        return torch.relu(result)


@pytest.mark.parametrize("columns", [256, 80])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_weights_that_torch_has_packed(dtype: torch.dtype, columns: int) -> None:
    """They are packed anew where torch's order is known; else torch runs the op."""
    torch.manual_seed(0)
    model = PackedByTorch(columns, dtype)
    for rows in (1, 5):
        x = torch.randn(rows, 512, dtype=dtype)
        executable = pipeline.compile(model, (x,))
        bound = 1e-5 if dtype == torch.float32 else 2e-2
        torch.testing.assert_close(executable(x), model(x), rtol=bound, atol=bound)
        if torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2"):
            assert remarks(executable, "pack-nibbles") == ["reads its weight of 4 bits two to a byte"]
            assert executable.memory.prepared <= 512 * columns // 2 + 4 * 2 * 16 * columns


def test_torch_compile_takes_the_option() -> None:
    model, x = nn.Linear(256, 256).eval(), torch.randn(3, 256)
    compiled = torch.compile(model, backend="pipeline", options={"weights": "int4", "group": 32})
    with torch.no_grad():
        exact = x.double() @ rounded(model.weight, 32).T + model.bias.double()
        torch.testing.assert_close(compiled(x).double(), exact, rtol=1e-5, atol=1e-5)
