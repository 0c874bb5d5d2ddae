"""Products that are left to cuBLAS: which ones, how it is called, and what happens without it."""

from __future__ import annotations

import gc
import sys

import pytest
import torch
from agreement_with_eager import compare
from fake_cublas import FakeCublas
from fake_driver import OURS, FakeDriver
from gpu_models import Function
from torch import nn

import pipeline
from pipeline.errors import PipelineError
from pipeline.runtime import device_executable
from pipeline.runtime.device.cuda import CudaDevice
from pipeline.runtime.device_executable import DeviceExecutable

ALWAYS = "cuda:sm_80+cublas-always"


@pytest.fixture
def libraries(monkeypatch):
    found = []

    class Executable(DeviceExecutable):
        def make_device(self):
            driver = FakeDriver(self._code.launches, self.ir("llvm"))
            found.append(FakeCublas(driver))
            return CudaDevice(self._code.code, self._code.launches, self._code.target, driver, found[-1])

    monkeypatch.setattr(device_executable, "DeviceExecutable", Executable)
    return found


def _randn(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def _compile(function, *args, target=ALWAYS):
    model = function if isinstance(function, nn.Module) else Function(function)
    return pipeline.compile(model.eval(), args, target=target)


def _kinds(executable):
    return [step[0] for step in executable._code.main.steps if step[0] in ("launch", "gemm")]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_products_as_they_lie(dtype, libraries):
    a, b = _randn(45, 37, dtype=dtype), _randn(37, 70, seed=1, dtype=dtype)
    tolerance = 1e-4 if dtype == torch.float32 else 2e-2
    for function, x, y in (
        (lambda a, b: a @ b, a, b),
        (lambda a, b: a @ b.t(), a, b.t().contiguous()),
        (lambda a, b: a.t() @ b, a.t().contiguous(), b),
        (lambda a, b: a.t() @ b.t(), a.t().contiguous(), b.t().contiguous()),
    ):
        executable = _compile(function, x, y)
        assert _kinds(executable)[-1] == "gemm"
        compare(executable(x, y), (a.float() @ b.float()).to(dtype), tolerance)
        assert libraries[-1].products == [(1, 70, 45, 37, 68)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_batches(dtype, libraries):
    a, b = _randn(3, 2, 33, 20, dtype=dtype), _randn(3, 2, 20, 40, seed=1, dtype=dtype)
    executable = _compile(lambda a, b: a @ b, a, b)
    assert _kinds(executable) == ["gemm"]
    compare(executable(a, b), (a.float() @ b.float()).to(dtype), 2e-2)
    assert libraries[0].products == [(6, 40, 33, 20, 68)]


def test_what_is_behind_a_product_is_a_launch(libraries):
    """All but a cast to 16 bits, which the library does."""
    a, b, c = (_randn(40, 40, seed=seed, dtype=torch.bfloat16) for seed in range(3))
    executable = _compile(lambda a, b, c: torch.relu(a @ b) + c, a, b, c)
    assert _kinds(executable) == ["gemm", "launch"]
    compare(executable(a, b, c), torch.relu(a @ b) + c, 2e-2)


def test_a_product_in_place_of_a_convolution(libraries):
    model, x = nn.Conv2d(16, 64, 1), _randn(1, 16, 7, 9)
    executable = _compile(model, x)
    assert "gemm" in _kinds(executable)
    compare(executable(x), model(x), 1e-4)


def test_parts_of_buffers(libraries):
    """A product of slices: another first element, rows further apart than they are long."""
    x, y = _randn(2, 50, 90), _randn(3, 40, 80, seed=1)
    executable = _compile(lambda x, y: x[1, :40, 8:48] @ y[2, :, 10:60], x, y)
    assert "gemm" in _kinds(executable)
    compare(executable(x, y), x[1, :40, 8:48] @ y[2, :, 10:60], 1e-4)


def test_only_where_it_pays(libraries):
    """A product of 4096 saves much; one of 64, and float32 with a lot behind it, do not. Remarks say so."""

    def remarks(function, *args):
        executable = _compile(function, *args, target="cuda:sm_90+cublas")
        return _kinds(executable), [one.kind for one in executable.remarks if one.pass_name == "mark-library-gemm"]

    large = [torch.empty(4096, 4096, dtype=torch.bfloat16) for _ in range(2)]
    small = [torch.empty(64, 32), torch.empty(32, 64)]
    flat = [torch.empty(8192, 32, dtype=torch.bfloat16), torch.empty(32, 8192, dtype=torch.bfloat16)]
    assert remarks(lambda a, b: a @ b, *large) == (["gemm"], ["passed"])
    assert remarks(lambda a, b: a @ b, *small) == (["gemm"], ["passed"])
    assert remarks(lambda a, b: torch.relu(a @ b), *small) == (["launch"], ["missed"])
    assert remarks(lambda a, b: torch.relu(a @ b), *flat) == (["launch"], ["missed"])


def test_must_not_fire(libraries):
    """Without the feature; products of integers, of float64, of few rows, of sizes known at run time only."""
    a, b = _randn(40, 40), _randn(40, 40, seed=1)
    assert _kinds(_compile(lambda a, b: a @ b, a, b, target="cuda:sm_80")) == ["launch"]
    assert "gemm" not in _kinds(_compile(lambda a, b: a @ b, a.double(), b.double()))
    assert "gemm" not in _kinds(_compile(lambda a, b: a @ b, a[:4], b))
    rows = torch.export.Dim("rows", min=2)
    model = Function(lambda a, b: a @ b)
    dynamic = pipeline.compile(model, (a, b), target=ALWAYS, dynamic_shapes=(({0: rows}, None),))
    assert "gemm" not in _kinds(dynamic)
    compare(dynamic(a[:7], b), a[:7] @ b, 1e-4)


def test_tf32(libraries):
    a, b = _randn(40, 40), _randn(40, 40, seed=1)
    executable = _compile(lambda a, b: a @ b, a, b, target="cuda:sm_80+tf32+cublas-always")
    executable(a, b)
    assert libraries[0].products[0][-1] == 77


def test_without_the_library(monkeypatch):
    """Kernels of our own multiply, and one remark says what is missing."""

    class Executable(DeviceExecutable):
        def make_device(self):
            driver = FakeDriver(self._code.launches, self.ir("llvm"))
            return CudaDevice(self._code.code, self._code.launches, self._code.target, driver)

    monkeypatch.setattr(device_executable, "DeviceExecutable", Executable)
    monkeypatch.setitem(sys.modules, "nvmath.bindings", None)
    monkeypatch.setitem(sys.modules, "nvmath", None)
    a, b = _randn(40, 40), _randn(40, 40, seed=1)
    executable = _compile(lambda a, b: a @ b, a, b)
    for _ in range(2):
        compare(executable(a, b), a @ b, 1e-4)
    (remark,) = [one for one in executable.remarks if one.op == "cublas"]
    assert "nvmath-python is missing; pip install 'pipeline-mlir[cublas]'" in remark.reason


def test_errors_say_which_product(libraries):
    a, b = _randn(40, 40), _randn(40, 40, seed=1)
    executable = _compile(lambda a, b: a @ b, a, b)
    executable(a, b)
    libraries[0].failing = True
    with pytest.raises(PipelineError, match=r"cuBLAS: product of 1 x 40 x 40 x 40: CUBLAS_STATUS_EXECUTION_FAILED"):
        executable(a, b)


def test_a_product_alone_is_a_graph_too(libraries):
    """The library's calls take the host longer than a graph does."""
    a, b = _randn(36, 40), _randn(40, 44, seed=1)  # of other sizes, so that they get the same memory each time
    executable = _compile(lambda a, b: a @ b, a, b)
    for _ in range(3):
        compare(executable(a, b), a @ b, 1e-4)
    assert libraries[0].driver.graph_launches == 2


def test_products_are_part_of_graphs(libraries):
    a, b, c = _randn(36, 40), _randn(40, 44, seed=1), _randn(44, 50, seed=2)
    executable = _compile(lambda a, b, c: torch.relu(a @ b) @ c, a, b, c)
    assert _kinds(executable) == ["gemm", "launch", "gemm"]
    for number in range(4):
        x = a * (number + 1)
        compare(executable(x, b, c), torch.relu(x @ b) @ c, 1e-3)
    driver = libraries[0].driver
    assert driver.graph_launches == 3 and OURS in libraries[0].streams
    assert len(libraries[0].products) == 4, "two calls of two products; then the graph"


def test_artifacts_keep_products(tmp_path, libraries):
    a, b = _randn(40, 40), _randn(40, 40, seed=1)
    executable = _compile(lambda a, b: a @ b, a, b)
    executable.save(tmp_path / "product.pipeline")
    assert pipeline.load(tmp_path / "product.pipeline")._code.main == executable._code.main


def test_handles_are_given_back(libraries):
    a, b = _randn(40, 40), _randn(40, 40, seed=1)
    executable = _compile(lambda a, b: a @ b, a, b)
    executable(a, b)
    assert libraries[0].handles == 1
    del executable
    gc.collect()
    assert libraries[0].handles == 0
