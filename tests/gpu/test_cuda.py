"""The target cuda: whole models on the simulator, PTX by its text, machine code by what ptxas says of it."""

from __future__ import annotations

import math
import re

import pytest
import torch
from agreement_with_eager import check, compare
from gpu_models import MODELS, SHOWN, Function
from torch import nn

import pipeline
from pipeline.errors import CompileError, PipelineError
from pipeline.targets.cuda import ptx

pytestmark = pytest.mark.usefixtures("simulator")


@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_eager(name):
    executable = check(MODELS[name](), "cuda:sm_80")
    _check_ptx(executable.ir("ptx"))


def _check_ptx(text):
    """Nothing left to be linked, no memory of a thread's own."""
    assert not re.search(r"^\s*call|\.extern|\.local", text, re.M)


@pytest.mark.parametrize("architecture", [70, 75, 80, 86, 89, 90, "90a", 100])
def test_every_architecture(architecture):
    x = torch.randn(5, 33)
    executable = pipeline.compile(nn.Sequential(nn.LayerNorm(33), nn.GELU()), (x,), target=f"cuda:sm_{architecture}")
    assert f".target sm_{architecture}" in executable.ir("ptx")
    _check_ptx(executable.ir("ptx"))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bit_floats_round_after_each_op(dtype):
    a, b = (torch.randn(7, 9, generator=torch.Generator().manual_seed(seed)).to(dtype) for seed in (1, 2))

    def function(a, b):
        return a * b + a, a / b, a.float() + b, a > b, (a * 100).to(torch.int32)

    executable = pipeline.compile(Function(function), (a, b), target="cuda:sm_80")
    compare(executable(a, b), function(a, b), 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_remainders_are_exact(dtype):
    x = torch.tensor([7.0, -7.5, 1e4, 3e-7, 0.0, 5.0, math.inf, 2.0, math.nan, 6e4, 0.3, 2.0**60], dtype=dtype)
    y = torch.tensor([0.3, 2.0, -0.7, 2e-7, 1.0, math.inf, 2.0, 0.0, 1.0, 0.1, 0.3, 2.0**58], dtype=dtype)

    def function(x, y):
        return x.fmod(y), x.remainder(y), (x * 2**14).fmod(0.3), x // y

    executable = pipeline.compile(Function(function), (x, y), target="cuda:sm_80")
    compare(executable(x, y), function(x, y), 0)
    assert "rem.u" in executable.ir("ptx")


def test_elementwise_kernel():
    executable = pipeline.compile(
        Function(lambda x, y: x * y + 2), (torch.randn(32), torch.randn(32)), target="cuda:sm_90"
    )
    text = executable.ir("ptx")
    assert text.count(".entry") == 1
    assert text.count("ld.global.v4") == 2 and text.count("st.global.v4") == 1
    assert "mul.rn.f32" in text and "add.rn.f32" in text, "a model's x * y + z rounds twice"


@pytest.mark.parametrize("model", [nn.Softmax(-1), nn.LayerNorm(1024, elementwise_affine=False)])
def test_rows_are_read_once(model):
    """One launch that loads each element once, 16 bytes at a time; numbers of a row go from warp to warp."""
    executable = pipeline.compile(model, (torch.randn(64, 1024),), target="cuda:sm_90")
    text = executable.ir("ptx")
    assert text.count(".entry") == 1 and ".maxntid 128" in text
    assert text.count("ld.global") == text.count("ld.global.v4") == 2, "128 threads, 8 elements each"
    assert text.count("st.global") == text.count("st.global.v4") == 2
    assert text.count("shfl.sync.bfly") == 10 and text.count("bar.sync") == 2
    _check_ptx(text)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64])
def test_absolute_values_of_integers(dtype):
    x = torch.arange(-5, 6).to(dtype)
    compare(pipeline.compile(Function(torch.abs), (x,), target="cuda:sm_80")(x), x.abs(), 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_numbers_that_the_host_computes_are_rounded(dtype):
    """A GELU's square root of 2 is a number of the model's dtype."""
    x = torch.randn(40, generator=torch.Generator().manual_seed(0)).to(dtype)
    compare(pipeline.compile(nn.GELU(), (x,), target="cuda:sm_80")(x), nn.GELU()(x), 1e-2)


def test_without_libdevice(monkeypatch):
    from pipeline.targets.cuda import target

    monkeypatch.setattr(target, "libdevice", lambda: None)
    monkeypatch.setattr(ptx, "libdevice", lambda: None)
    x = torch.randn(40)

    def function(x):
        return x.exp(), x.tanh(), torch.erf(x), x.abs().log(), torch.pow(x.abs(), 1.7)

    executable = pipeline.compile(Function(function), (x,), target="cuda:sm_80")
    assert "__nv_exp" not in executable.ir("llvm")
    _check_ptx(executable.ir("ptx"))
    compare(executable(x), function(x), 1e-6)
    with pytest.raises(CompileError, match="nvidia-nvvm"):
        pipeline.compile(Function(torch.sin), (x,), target="cuda:sm_80")


def test_without_ptxas(monkeypatch):
    monkeypatch.setattr(ptx, "ptxas", lambda: None)
    executable = pipeline.compile(nn.ReLU(), (torch.randn(3),), target="cuda:sm_80")
    assert len(executable._code.code) == 1, "PTX for the driver to translate"
    with pytest.raises(CompileError, match="pip install nvidia-cuda-nvcc"):
        ptx.assemble(executable.ir("ptx"), 80)


def test_unknown_architecture():
    with pytest.raises(CompileError, match="expected one of sm_70"):
        pipeline.compile(nn.ReLU(), (torch.randn(3),), target="cuda:sm_12")


@pytest.mark.parametrize("name", [*SHOWN, "scans", "sort", "float64"])
def test_ptxas_takes_it(name):
    """For sm_80 and sm_90: no spills, registers and shared memory for a full block; where there is an assembler."""
    case = MODELS[name]()
    for architecture in (80, 90):
        executable = pipeline.compile(case.model, case.args, target=f"cuda:sm_{architecture}")
        if not ptx.can_assemble(architecture):
            assert len(executable._code.code) == 1
            continue
        _, said = ptx.assemble(executable.ir("ptx"), architecture)
        kernels = len(executable._code.launches)
        assert len(re.findall(r"Used \d+ registers", said)) == kernels
        assert len(re.findall(r"\b0 bytes spill stores, 0 bytes spill loads", said)) == kernels
        assert all(int(count) <= 48 * 1024 for count in re.findall(r"(\d+) bytes smem", said))
        used = re.findall(r"Compiling entry function '(\w+)'[\s\S]*?Used (\d+) registers", said)
        blocks = {launch.name: launch.block for launch in executable._code.launches}
        assert all(int(count) <= 128 and int(count) * blocks[kernel] <= 65536 for kernel, count in used)
        assert len(used) == kernels


def test_loops_are_not_merged_into_one_thread():
    """A canonicalization between tiling and mapping would do that."""
    executable = pipeline.compile(MODELS["resnet18"]().model, MODELS["resnet18"]().args, target="cuda:sm_80")
    large = [one for one in executable._code.launches if "conv" in one.name or "matmul" in one.name]
    assert large and all(one.threads >= 256 and one.block > 1 for one in large)


def test_no_memory_is_asked_for_at_a_launch():
    """Shared memory is of known size: what is asked for at a launch would have to be external in PTX."""
    for name in ("softmax", "products", "transformer block"):
        executable = pipeline.compile(MODELS[name]().model, MODELS[name]().args, target="cuda:sm_80")
        assert all(one.shared == 0 for one in executable._code.launches) and ".extern" not in executable.ir("ptx")


def test_artifact_keeps_everything(tmp_path):
    model, x = nn.Sequential(nn.Linear(4, 4), nn.Softmax(-1)), torch.randn(3, 4)
    executable = pipeline.compile(model, (x,), target="cuda:sm_80")
    executable.save(tmp_path / "model.pipeline")
    loaded = pipeline.load(tmp_path / "model.pipeline")
    assert loaded._code.launches == executable._code.launches
    assert loaded._code.main == executable._code.main
    assert loaded._code.code == executable._code.code


def test_no_driver_is_one_error(monkeypatch):
    monkeypatch.undo()
    executable = pipeline.compile(nn.ReLU(), (torch.randn(3),), target="cuda:sm_80")
    with pytest.raises(PipelineError, match=r"cuda-bindings|CUDA"):
        executable(torch.randn(3))


def test_a_product_shares_tiles_and_fuses_its_own_sum():
    executable = pipeline.compile(
        Function(lambda x, y: x @ y), (torch.randn(64, 64), torch.randn(64, 64)), target="cuda:sm_90"
    )
    text = executable.ir("ptx")
    assert "bar.sync" in text and "ld.shared" in text and "fma.rn.f32" in text


def test_a_row_is_reduced_by_shuffles():
    executable = pipeline.compile(Function(lambda x: x.sum(1)), (torch.randn(4, 256),), target="cuda:sm_90")
    assert executable.ir("ptx").count("shfl.sync.bfly") == 5


def test_bf16_is_rounded_by_the_hardware():
    """As eager rounds: ties, what is too large, subnormal numbers, infinities, NaN; before sm_80 by whole numbers."""
    x = torch.tensor(
        [1.0, 1 + 2**-8, 1 + 3 * 2**-8, 3.3895e38, -3.4e38, 1e-40, -1e-41, 0.0, -0.0, float("inf"), float("-inf")]
    )
    x = torch.cat([x, torch.randn(500) * 100, torch.tensor([float("nan")])])
    for target, has in (("cuda:sm_80", True), ("cuda:sm_75", False)):
        executable = pipeline.compile(Function(lambda x: x.bfloat16()), (x,), target=target)
        torch.testing.assert_close(executable(x), x.bfloat16(), rtol=0, atol=0, equal_nan=True)
        assert ("cvt.rn.bf16.f32" in executable.ir("ptx")) == has
