"""Products of 16-bit floats on tensor cores: on the simulator, and what the PTX has."""

from __future__ import annotations

import re

import pytest
import torch
from agreement_with_eager import compare
from gpu_models import Function
from torch.nn import functional as F

import pipeline
from pipeline.passes.gpu.matmul import tensor_core_matmul
from pipeline.targets.cuda import ptx

pytestmark = pytest.mark.usefixtures("simulator")


def _randn(*shape, seed=0, dtype=torch.bfloat16):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def _compile(function, *args, target="cuda:sm_80"):
    return pipeline.compile(Function(function), args, target=target)


def _check(function, *args, tolerance=2e-2):
    """Against the product in float32, rounded once."""
    executable = _compile(function, *args)
    wide = function(*(one.float() for one in args)).to(args[0].dtype)
    compare(executable(*args), wide, tolerance)
    return executable.ir("ptx")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(64, 32, 64), (128, 64, 72), (33, 16, 32), (70, 37, 45), (32, 40, 200)]
)
def test_products(rows, inner, columns, dtype):
    """Sizes that fill tiles, that do not, and that no chunk of 16 bytes divides."""
    a, b = _randn(rows, inner, dtype=dtype), _randn(inner, columns, seed=1, dtype=dtype)
    text = _check(lambda a, b: a @ b, a, b)
    assert "mma.sync.aligned.m16n8k16" in text and "ldmatrix" in text
    assert ("cp.async" in text) == (inner % 8 == 0 or columns % 8 == 0)


def test_operands_as_they_lie():
    """The sum along rows or columns of either operand; batches."""
    a, b = _randn(64, 48), _randn(48, 72, seed=1)
    _check(lambda a, b: a @ b.t(), a, b.t().contiguous())
    _check(lambda a, b: a.t() @ b, a.t().contiguous(), b)
    _check(lambda a, b: a @ b, torch.stack([a, a * 2, -a]), torch.stack([b, b, b * 2]))


def test_the_large_tile(monkeypatch):
    monkeypatch.setattr(tensor_core_matmul, "_ENOUGH_BLOCKS", 1)
    a, b = _randn(130, 72), _randn(72, 136, seed=1)
    executable = _compile(lambda a, b: a @ b, a, b)
    assert executable._code.launches[-1].block == 256
    compare(executable(a, b), (a.float() @ b.float()).bfloat16(), 2e-2)


def test_what_is_behind_runs_on_the_fragments():
    """Bias, activation and a sum, each rounded as PyTorch rounds it."""
    a, b, c, d = _randn(64, 32), _randn(32, 64, seed=1), _randn(64, seed=2), _randn(64, 64, seed=3)

    def function(a, b, c, d):
        return F.gelu(a @ b + c) + d

    executable = _compile(function, a, b, c, d)
    assert len(executable._code.launches) == 1
    compare(executable(a, b, c, d), function(a, b, c, d), 2e-2)


def test_what_lies_beyond_the_sum_is_not_read():
    """Infinities in the last column must not meet zeros that fill up a step: the result would be NaN."""
    a, b = _randn(40, 17), _randn(17, 40, seed=1)
    a[:, -1] = float("inf")
    b[-1] = b[-1].abs() + 1
    executable = _compile(lambda a, b: a @ b, a, b)
    assert torch.isinf(executable(a, b)).all()


def test_convolution_as_a_product():
    x, w = _randn(2, 16, 9, 11), _randn(40, 16, 3, 3, seed=1)
    text = _check(lambda x, w: F.conv2d(x, w, padding=1, stride=2), x, w, tolerance=5e-2)
    assert "mma.sync" in text


@pytest.mark.parametrize("architecture", [80, 90])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_ptxas_takes_it(architecture, dtype, monkeypatch):
    """With no spills, for both tiles; three or four steps are in shared memory at a time."""
    for blocks in (1, 10**9):
        monkeypatch.setattr(tensor_core_matmul, "_ENOUGH_BLOCKS", blocks)
        args = (_randn(256, 1024, dtype=dtype), _randn(1024, 256, seed=1, dtype=dtype), _randn(256, dtype=dtype))
        executable = _compile(lambda a, b, c: torch.relu(a @ b + c), *args, target=f"cuda:sm_{architecture}")
        text = executable.ir("ptx")
        assert text.count("mma.sync") == (32 if blocks == 1 else 16) and ".local" not in text
        assert text.count("cp.async.cg.shared.global") == 4 * (3 if blocks == 1 else 4)
        assert f"cp.async.wait_group \t{1 if blocks == 1 else 2}" in text
        assert all(alignment == "16" for alignment in re.findall(r"\.shared \.align (\d+)", text))
        if ptx.can_assemble(architecture):
            _, said = ptx.assemble(text, architecture)
            assert "0 bytes spill stores, 0 bytes spill loads" in said
            assert all(int(count) <= 48 * 1024 for count in re.findall(r"(\d+) bytes smem", said))
            assert all(int(count) <= 160 for count in re.findall(r"Used (\d+) registers", said))


def test_before_sm_80_there_are_none():
    """Must not fire."""
    text = _compile(lambda a, b: a @ b, _randn(64, 32), _randn(32, 64), target="cuda:sm_75").ir("ptx")
    assert "mma.sync" not in text and "cp.async" not in text


def test_must_not_fire():
    """Products of float32, and of few rows."""
    for a, b in ((_randn(64, 32).float(), _randn(32, 64).float()), (_randn(8, 32), _randn(32, 64))):
        assert "mma.sync" not in _compile(lambda a, b: a @ b, a, b).ir("ptx")


def _tf32(x):
    """What tensor cores see of float32: 10 bits of mantissa."""
    return (x.view(torch.int32) & -8192).view(torch.float32)


@pytest.mark.parametrize(("rows", "inner", "columns"), [(64, 32, 64), (33, 17, 45), (130, 24, 40)])
def test_tf32(rows, inner, columns):
    """An option; products are those of the cut numbers, sums are float32."""
    a, b = _randn(rows, inner, dtype=torch.float32), _randn(inner, columns, seed=1, dtype=torch.float32)
    for function, x, y in (
        (lambda a, b: a @ b, a, b),
        (lambda a, b: a @ b.t(), a, b.t().contiguous()),
        (lambda a, b: torch.relu(a.t() @ b), a.t().contiguous(), b),
    ):
        executable = _compile(function, x, y, target="cuda:sm_80+tf32")
        assert "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" in executable.ir("ptx")
        compare(executable(x, y), function(_tf32(x), _tf32(y)), 1e-4)


def test_tf32_has_no_spills(monkeypatch):
    monkeypatch.setattr(tensor_core_matmul, "_ENOUGH_BLOCKS", 1)
    args = (torch.randn(256, 1024), torch.randn(1024, 256))
    text = _compile(lambda a, b: a @ b, *args, target="cuda:sm_90+tf32").ir("ptx")
    assert text.count("cp.async.cg.shared.global") == 12 and ".local" not in text
    if ptx.can_assemble(90):
        assert "0 bytes spill stores, 0 bytes spill loads" in ptx.assemble(text, 90)[1]


def test_unknown_features():
    for target, message in (("cuda:sm_90+fp4", "there is tf32"), ("cuda:sm_75+tf32", "from sm_80 on")):
        with pytest.raises(pipeline.PipelineError, match=message):
            _compile(lambda a: a + 1, _randn(3), target=target)


def test_a_wait_that_is_missing_shows(monkeypatch):
    """The simulator brings what is under way as late as it may: a step that is not waited for makes results wrong."""
    wait = tensor_core_matmul.nvgpu.DeviceAsyncWaitOp
    a, b = _randn(64, 256), _randn(256, 64, seed=1)
    model = Function(lambda a, b: a @ b)
    for more in (0, 1):
        monkeypatch.setattr(
            tensor_core_matmul.nvgpu,
            "DeviceAsyncWaitOp",
            lambda token, numGroups, n=more: wait(token, numGroups=numGroups + n),
        )
        executable = pipeline.compile(model, (a, b), target="cuda:sm_80", cache=False)
        close = torch.allclose(executable(a, b).float(), a.float() @ b.float(), rtol=2e-2, atol=5e-2)
        assert close == (more == 0)
