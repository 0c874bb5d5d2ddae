"""The memory of large results is used again, and never while anything can see it."""

from __future__ import annotations

import threading
import weakref

import numpy as np
import pytest
import torch

import pipeline
from pipeline.runtime.call.array_libraries import numpy_library, torch_library
from pipeline.runtime.call.result_pool import SMALL, ResultMemory
from pipeline.runtime.interface.entry_point import ALIGNMENT

ROWS = 2 * SMALL // (4 * 256)


class Twice(torch.nn.Module):
    def forward(self, x):
        return x * 2


@pytest.fixture(scope="module")
def exe():
    return pipeline.compile(Twice(), (torch.zeros(ROWS, 256),))


def test_the_memory_of_a_result_that_died_takes_the_next(exe):
    x = torch.randn(ROWS, 256)
    result = exe(x)
    place = result.data_ptr()
    assert place % ALIGNMENT == 0
    del result
    assert exe(x).data_ptr() == place


@pytest.mark.parametrize(
    "part", [lambda y: y[3:, 1:], lambda y: y.numpy(), lambda y: y.untyped_storage(), lambda y: np.from_dlpack(y).T]
)
def test_must_not_fire_while_a_part_of_it_lives(exe, part):
    x = torch.ones(ROWS, 256)
    result = exe(x)
    place, kept = result.data_ptr(), part(result)
    del result
    others = [exe(x * number) for number in range(3)]
    assert place not in [other.data_ptr() for other in others]
    if isinstance(kept, torch.UntypedStorage):
        kept = torch.empty(0).set_(kept)
    assert (torch.as_tensor(np.array(kept)) == 2).all()


def test_an_argument_that_nothing_else_holds_is_no_place_for_the_result(exe):
    x = torch.ones(ROWS, 256)
    y = exe(exe(exe(x)))
    assert (y == 8).all()


def test_a_loop_has_two(exe):
    x, y, places = torch.randn(ROWS, 256), None, set()
    for _ in range(6):
        y = exe(x)
        places.add(y.data_ptr())
    assert len(places) == 2


def test_what_is_kept_is_bounded(exe):
    results = [exe(torch.zeros(ROWS, 256)) for _ in range(5)]
    del results
    assert 0 < exe._result_memory.kept <= exe.memory.results


def test_threads_share_it(exe):
    wrong = []

    def work(number):
        x = torch.full((ROWS, 256), float(number))
        wrong.extend(number for _ in range(20) if not (exe(x) == 2 * number).all())

    workers = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_results_outlive_the_executable():
    exe = pipeline.compile(Twice(), (torch.zeros(ROWS, 256),))
    memory, result = weakref.ref(exe._result_memory), exe(torch.ones(ROWS, 256))
    del exe
    assert (result == 2).all()
    del result
    assert memory() is None


def test_results_are_tensors_like_any_other(exe):
    result = exe(torch.ones(ROWS, 256))
    assert not result._is_view() and result.is_leaf and result.is_contiguous()
    result.requires_grad_()
    (result * 3).sum().backward()
    assert (result.grad == 3).all()
    assert result.untyped_storage().nbytes() == ROWS * 256 * 4


@pytest.mark.parametrize("library", [numpy_library(), torch_library()], ids=["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "float64", "int16"])
def test_libraries_and_dtypes(library, dtype):
    memory = ResultMemory(1 << 30)
    for shape in ((SMALL,), (SMALL // 8, 9), (3,), (0, SMALL), (2, 1, SMALL)):
        tensor = memory.tensor(library, shape, dtype)
        assert library.dtype(tensor) == dtype and library.shape(tensor) == shape and library.is_row_major(tensor)
    del tensor
    assert memory.kept >= SMALL


def test_must_not_fire_for_small_results():
    exe = pipeline.compile(Twice(), (torch.zeros(4),))
    exe(torch.zeros(4))
    assert exe._result_memory.kept == 0
