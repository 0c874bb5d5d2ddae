"""Products of a few rows with a matrix: on the simulator, against float64, and what the PTX reads at a time."""

from __future__ import annotations

import copy

import pytest
import torch
from gpu_models import Function
from torch import nn
from torch.nn import functional as F

import pipeline
from pipeline.passes.gpu.matmul import few_rows_matmul

pytestmark = pytest.mark.usefixtures("simulator")


@pytest.fixture(autouse=True)
def emitted(monkeypatch):
    """How often a kernel of this kind is written."""
    found = []
    emit = few_rows_matmul.FewRowsEmitter.emit
    monkeypatch.setattr(few_rows_matmul.FewRowsEmitter, "emit", lambda self: (found.append(self.strips), emit(self)))
    return found


def _randn(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def _check(function, *args, tolerance=1e-5):
    model = function if isinstance(function, nn.Module) else Function(function)
    executable = pipeline.compile(model, args, target="cuda:sm_80")
    exact = copy.deepcopy(function).double() if isinstance(function, nn.Module) else function
    wanted = exact(*(arg.double() if arg.is_floating_point() else arg for arg in args))
    got = executable(*args)
    torch.testing.assert_close(
        got.double(), wanted.double(), rtol=tolerance, atol=tolerance * float(wanted.abs().max())
    )
    return executable.ir("ptx")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(1, 64, 32), (1, 300, 520), (3, 129, 72), (8, 70, 45), (2, 64, 1000)]
)
def test_products(rows, inner, columns, dtype, emitted):
    """Sizes that fill strips, that do not, and that no access divides."""
    text = _check(
        lambda a, b: a @ b,
        _randn(rows, inner, dtype=dtype),
        _randn(inner, columns, seed=1, dtype=dtype),
        tolerance=1e-5 if dtype in (torch.float32, torch.float64) else 1e-2,
    )
    assert len(emitted) == 1
    wide = columns % (16 // dtype.itemsize) == 0
    assert ("ld.global.v4.b32" in text or "ld.global.v2.b64" in text or "ld.global.nc.v" in text) == wide, text


def test_a_vector():
    _check(lambda x, w: x @ w, _randn(200), _randn(200, 64, seed=1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_linear_layer_with_what_is_behind_it(dtype, emitted):
    torch.manual_seed(0)
    layer = nn.Sequential(nn.Linear(96, 160), nn.GELU()).to(dtype)
    _check(layer, _randn(2, 1, 96, dtype=dtype), tolerance=1e-5 if dtype == torch.float32 else 2e-2)
    assert len(emitted) == 1


def test_dims_of_one_element(emitted):
    """As a step of decoding has them: a row of a token of a batch of one."""
    torch.manual_seed(0)
    layer = nn.Linear(96, 72, bias=False).bfloat16()
    _check(layer, _randn(1, 1, 96, dtype=torch.bfloat16), tolerance=1e-2)
    _check(lambda a, b: a @ b, _randn(1, 1, 70), _randn(1, 70, 48, seed=1))
    assert len(emitted) == 2


def test_batches(emitted):
    _check(lambda a, b: a @ b, _randn(3, 2, 100), _randn(3, 100, 48, seed=1))
    _check(lambda a, b: a @ b, _randn(2, 3, 1, 70), _randn(2, 3, 70, 40, seed=1))
    assert len(emitted) == 2


@pytest.mark.parametrize("columns", [40, 4096, 33000])
def test_strips_are_narrow_where_a_row_has_few(columns, emitted):
    _check(lambda a, b: a @ b, _randn(1, 64), _randn(64, columns, seed=1))
    (strips,) = emitted
    assert strips.count * strips.columns >= columns
    assert strips.count >= few_rows_matmul._ENOUGH_BLOCKS or strips.columns * 4 == few_rows_matmul._SECTOR


def test_infinities_and_nan():
    """Stay in their columns, those that are read twice at the end of a line, too."""
    a, b = _randn(2, 64), _randn(64, 44, seed=1)
    b[3, 43], b[5, 7], a[1, 9] = float("inf"), float("nan"), float("-inf")
    executable = pipeline.compile(Function(lambda a, b: a @ b), (a, b), target="cuda:sm_80")
    torch.testing.assert_close(executable(a, b), a @ b, equal_nan=True)


def test_sums_that_go_on(emitted):
    """In the memory of the result, and of whole numbers."""
    _check(lambda a, b, c: torch.addmm(c, a, b), _randn(2, 80), _randn(80, 64, seed=1), _randn(2, 64, seed=2))
    a, b = torch.randint(-50, 50, (3, 90)), torch.randint(-50, 50, (90, 64))
    executable = pipeline.compile(Function(torch.matmul), (a, b), target="cuda:sm_80")
    assert torch.equal(executable(a, b), a @ b)
    assert len(emitted) == 2


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda a, b: a @ b, ((9, 64), (64, 64))),
        (lambda a, b: a @ b.t(), ((2, 64), (64, 64))),
        (lambda a, b: a @ b, ((2, 20), (20, 64))),
        (lambda a, b: a @ b, ((2, 64), (64, 8))),
        (lambda a, b: F.conv2d(a, b), ((1, 8, 9, 9), (4, 8, 3, 3))),
    ],
)
def test_other_products(function, shapes, emitted):
    """Must not fire: more rows, sums along lines of the matrix, short sums, few columns, windows."""
    a, b = (_randn(*shape, seed=number) for number, shape in enumerate(shapes))
    _check(function, a, b)
    assert not emitted


@pytest.mark.parametrize("rows", [9, 16, 31])
def test_more_rows_share_tiles(rows):
    text = _check(
        lambda a, b: a @ b,
        _randn(rows, 96, dtype=torch.bfloat16),
        _randn(96, 72, seed=1, dtype=torch.bfloat16),
        tolerance=1e-2,
    )
    assert "mma.sync" in text
