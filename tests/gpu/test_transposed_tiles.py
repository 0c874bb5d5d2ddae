"""Elementwise ops that transpose an operand, by tiles in shared memory: on the simulator, against eager."""

from __future__ import annotations

import pytest
import torch
from gpu_models import Function

import pipeline
from pipeline.passes.gpu.thread import transposed_tiles

pytestmark = pytest.mark.usefixtures("simulator")


@pytest.fixture(autouse=True)
def emitted(monkeypatch):
    """The tiles of the kernels of this kind that are written."""
    found = []
    emit = transposed_tiles.TransposedTilesEmitter.emit
    monkeypatch.setattr(
        transposed_tiles.TransposedTilesEmitter, "emit", lambda self: (found.append(self.tile), emit(self))
    )
    return found


def _values(*shape, seed=0, dtype=torch.float32):
    drawn = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=drawn).to(dtype)
    return torch.randint(-100, 100, shape, generator=drawn).to(dtype)


def _check(function, *args, target="cuda:sm_80"):
    executable = pipeline.compile(Function(function), args, target=target)
    for seed in (10, 20):
        fresh = tuple(_values(*arg.shape, seed=seed + n, dtype=arg.dtype) for n, arg in enumerate(args))
        torch.testing.assert_close(executable(*fresh), function(*fresh))
    return executable


@pytest.mark.parametrize("shape", [(32, 32), (64, 96), (33, 70), (16, 200), (100, 17)])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int8, torch.int32, torch.int64]
)
def test_types_and_sizes(shape, dtype, emitted):
    _check(lambda x: (x.t() + 1).contiguous(), _values(*shape, dtype=dtype))
    (tile,) = emitted
    assert tile.side == (64 if dtype.itemsize < 4 else 32)


@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((2, 17, 5, 40), (0, 2, 3, 1)),
        ((2, 5, 40, 17), (0, 3, 1, 2)),
        ((3, 20, 33), (0, 2, 1)),
        ((20, 3, 33), (2, 1, 0)),
        ((1, 40, 1, 50), (3, 2, 1, 0)),
    ],
)
def test_permutations(shape, order, emitted):
    _check(lambda x: (x.permute(order) * 2).contiguous(), _values(*shape))
    assert len(emitted) == 1


def test_several_operands(emitted):
    """Some transposed, some not, some along one dim alone; a cast; what is behind the op; two results."""
    x, y, row, column = _values(40, 50), _values(50, 40, seed=1), _values(40, seed=2), _values(50, 1, seed=3)
    _check(lambda x, y, row, column: x.t() * y + row - column, x, y, row, column)
    _check(lambda x, y: torch.relu(x.t() - y.t()).bfloat16().contiguous(), x, _values(40, 50, seed=4))
    _check(lambda x, y: (x.t() * y, x.t() - y), x, y)
    _check(lambda x, y: x.t() * 2.0 + y, x.bfloat16(), y)
    assert len(emitted) == 4


def test_batches_that_stay_outside(emitted):
    _check(lambda x: x.transpose(1, 2).contiguous(), _values(2, 40, 3, 64))
    assert not emitted, "neighbours stay neighbours"
    _check(lambda x: x.transpose(2, 3).contiguous(), _values(2, 3, 40, 64))
    assert len(emitted) == 1


def test_slices(emitted):
    _check(lambda x: (x[3:43, 5:69].t() + 1).contiguous(), _values(50, 70))


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: (x.t() + 1).contiguous(), (8, 100)),
        (lambda x: (x.t() + 1).contiguous(), (100, 8)),
        (lambda x: x + 1, (64, 64)),
        (lambda x: x[:, :1].t() + x[:1], (64, 64)),
        (lambda x: x.t().sum(-1), (64, 64)),
        (lambda x: x.diagonal() + x.t(), (1, 1)),
    ],
)
def test_other_ops(function, shape, emitted):
    """Must not fire: sides too short for a tile, nothing transposed, what does not move across, sums."""
    _check(function, _values(*shape))
    assert not emitted


def test_infinities_and_nan():
    x = _values(40, 50)
    x[3, 7], x[39, 49], x[0, 0] = float("nan"), float("inf"), float("-inf")
    executable = pipeline.compile(Function(lambda x: (x.t() * 1.5).contiguous()), (x,), target="cuda:sm_80")
    torch.testing.assert_close(executable(x), x.t() * 1.5, equal_nan=True)


def test_sizes_that_calls_say(emitted):
    """Must not fire; and right."""
    function = Function(lambda x: x.t() + 1)
    rows = torch.export.Dim("rows", min=2, max=200)
    executable = pipeline.compile(function, (_values(40, 50),), target="cuda:sm_80", dynamic_shapes=[({0: rows},)])
    for count in (40, 77):
        x = _values(count, 50)
        torch.testing.assert_close(executable(x), x.t() + 1)
    assert not emitted
