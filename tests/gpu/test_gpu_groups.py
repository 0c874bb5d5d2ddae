"""Groups of several ops as one launch: rows of softmax and norms, attention, products with what is behind them."""

from __future__ import annotations

from typing import Any

import cuda_simulator
import pytest
import torch
from agreement_with_eager import compare
from cuda_simulator import SimulatedExecutable
from gpu_models import Function
from torch import nn
from torch.nn import functional as F

import pipeline
from pipeline.passes.gpu.block import block_loops
from pipeline.runtime import device_executable

TARGETS = ("vulkan", "cuda:sm_80")


@pytest.fixture(autouse=True)
def simulator(monkeypatch):
    from pipeline.runtime.device.device import create_device

    class Executable(SimulatedExecutable):
        def make_device(self):
            return super().make_device() if self._code.target != "vulkan" else create_device(self._code)

    monkeypatch.setattr(device_executable, "DeviceExecutable", Executable)


def _randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _run(function: Any, *args: torch.Tensor, target: str, tolerance: float = 1e-5, dynamic: Any = None) -> Any:
    model = function if isinstance(function, nn.Module) else Function(function)
    executable = pipeline.compile(model.eval(), args, target=target, dynamic_shapes=dynamic)
    compare(executable(*args), model(*args), tolerance)
    return executable


def _launches(executable: Any) -> list[str]:
    kernels = executable._code.launches
    return [kernels[step[1]].name for step in executable._code.main.steps if step[0] == "launch"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("length", [2, 33, 64, 1000, 1024, 1026])
def test_softmax_is_one_launch(length, target):
    """Rows that fill registers, that do so in part, and that lie in shared memory."""
    executable = _run(nn.Softmax(-1), _randn(3, length), target=target)
    assert len(_launches(executable)) == 1


@pytest.mark.parametrize("target", TARGETS)
def test_norms_are_one_launch(target):
    for model, x in (
        (nn.LayerNorm(96), _randn(2, 3, 96)),
        (nn.LayerNorm([5, 7]), _randn(4, 5, 7)),
        (nn.RMSNorm(40), _randn(6, 40)),
        (nn.GroupNorm(2, 6), _randn(3, 6, 5)),
    ):
        executable = _run(model, x, target=target)
        kernels = [name for name in _launches(executable) if not name.startswith("main")]  # copies of results
        assert len(kernels) == 1, type(model)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("target", TARGETS)
def test_other_dtypes(dtype, target):
    x = _randn(4, 48).to(dtype)
    tolerance = 1e-12 if dtype == torch.float64 else 2e-2
    for function in (lambda x: torch.softmax(x, -1), lambda x: F.layer_norm(x, (48,)), lambda x: x - x.amax(-1, True)):
        assert len(_launches(_run(function, x, target=target, tolerance=tolerance))) == 1


@pytest.mark.parametrize("target", TARGETS)
def test_more_rows_than_blocks(target, monkeypatch):
    """A block does several rows; on the simulator there are few blocks, for they take long there."""
    monkeypatch.setattr(cuda_simulator, "MOST_BLOCKS", 4)
    monkeypatch.setattr(block_loops, "_MOST_BLOCKS", 4 if target != "vulkan" else 65535)
    x = _randn(65539, 2) if target == "vulkan" else _randn(11, 70)
    assert len(_launches(_run(nn.Softmax(-1), x, target=target))) == 1
    _run(lambda q: torch.softmax(q @ q.transpose(1, 2), -1) @ q, _randn(7, 5, 3), target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_number_of_rows_known_at_run_time(target):
    model, batch = nn.LayerNorm(33), torch.export.Dim("batch", min=2)
    executable = pipeline.compile(model, (_randn(5, 33),), target=target, dynamic_shapes=({0: batch},))
    assert len(_launches(executable)) == 1
    for rows in (2, 5, 70):
        compare(executable(_randn(rows, 33)), model(_randn(rows, 33)), 1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_with_special_values(target):
    x = _randn(4, 70)
    x[0, 3], x[1, 5], x[2] = float("inf"), float("nan"), -float("inf")
    _run(lambda x: torch.softmax(x, -1), x, target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_numbers_of_a_row_are_results_too(target):
    _run(lambda x: torch.var_mean(x, -1), _randn(5, 70), target=target)
    _run(lambda x: (x.argmax(-1), x - x.amax(-1, True)), _randn(5, 70), target=target)
    _run(lambda x: (x * 2 > x.mean(-1, True)).sum(-1), _randn(5, 70), target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_that_are_put_together(target):
    """Parts of a row are written by ops of their own, and read by other threads."""
    x, y = _randn(5, 33), _randn(5, 40, seed=1)
    executable = _run(lambda x, y: torch.softmax(torch.cat([x.exp(), y * 2], 1), 1), x, y, target=target)
    assert len(executable.kernels) == 1
    _run(lambda x, y: F.layer_norm(torch.cat([x, y.sin(), x + 1], 1), (106,)), x, y, target=target)
    _run(lambda x: torch.softmax(x.flip(-1) + x.roll(3, -1), -1), x, target=target)


class Attention(nn.Module):
    def __init__(self, **options: Any):
        super().__init__()
        self.options = options

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *mask: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, *mask, **self.options)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("queries", "keys"), [(33, 33), (16, 40), (7, 130), (2, 3)])
def test_attention_is_one_launch(queries, keys, target):
    """No buffer of queries x keys; one kernel for all but a transpose of the keys, whose lines a few queries read."""
    q, k, v = _randn(2, 3, queries, 16), _randn(2, 3, keys, 16, seed=1), _randn(2, 3, keys, 16, seed=2)
    executable = _run(Attention(), q, k, v, target=target)
    names = _launches(executable)
    transposed = queries > 4
    assert [name.startswith("transpose") for name in names] == [True, False][not transposed :]
    room = k.numel() * 4 if transposed else 0
    assert executable._code.main.arena <= room + 256, "room for the transposed keys, none for the scores"


@pytest.mark.parametrize("target", TARGETS)
def test_masked_attention(target):
    q, k, v = _randn(1, 2, 33, 16), _randn(1, 2, 33, 16, seed=1), _randn(1, 2, 33, 16, seed=2)
    mask = _randn(33, 33, seed=3) > -1
    mask[0] = True
    for model, args in ((Attention(is_causal=True), ()), (Attention(), (mask,)), (Attention(), (_randn(33, 33),))):
        assert len(_launches(_run(model, q, k, v, *args, target=target))) <= 3


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_behind_a_product_runs_on_its_registers(target):
    """Large products in tiles, and small ones: bias, activation and a sum with something else, all in one launch."""
    for rows, inner, columns in ((70, 40, 65), (5, 3, 2), (33, 17, 130)):
        args = (_randn(rows, inner), _randn(inner, columns, seed=1), _randn(columns, seed=2), _randn(rows, columns))
        executable = _run(lambda a, b, c, d: F.gelu(a @ b + c) + d, *args, target=target, tolerance=1e-4)
        assert len(_launches(executable)) == 1


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_behind_a_convolution(target):
    model = nn.Sequential(nn.Conv2d(7, 40, 3, padding=1, stride=2), nn.BatchNorm2d(40), nn.ReLU())
    executable = _run(model, _randn(2, 7, 17, 19), target=target, tolerance=1e-4)
    assert len([name for name in _launches(executable) if "conv" in name]) == 1


@pytest.mark.parametrize("target", TARGETS)
def test_rows_that_do_not_fit_are_several_launches(target):
    """Must not fire: a row of 60000 numbers is more than a block can share. A remark says so."""
    executable = _run(nn.Softmax(-1), _randn(2, 60000), target=target)
    assert len(_launches(executable)) > 1
    assert any(one.pass_name == "tile-groups-to-blocks" and "does not fit" in one.reason for one in executable.remarks)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_unknown_length_are_several_launches(target):
    """Must not fire: how much a block shares has to be known."""
    length = torch.export.Dim("length", min=2)
    model = nn.Softmax(-1)
    executable = pipeline.compile(model, (_randn(3, 50),), target=target, dynamic_shapes=({1: length},))
    assert any("is not known" in one.reason for one in executable.remarks if one.pass_name == "tile-groups-to-blocks")
    for size in (2, 50, 300):
        compare(executable(_randn(3, size)), model(_randn(3, size)), 1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_elementwise_ops_with_results_of_their_own(target):
    """What is in registers is not read again; 16 bytes at a time, where all ops allow it."""

    def function(x, y):
        z = x.exp() + y
        return z, z * 2, (z * y).to(torch.int64), z > 0

    for size in (64, 33):
        executable = _run(function, _randn(size), _randn(size, seed=1), target=target, tolerance=1e-4)
        assert len(_launches(executable)) == 1
