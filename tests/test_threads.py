"""Several models in one process, several threads, and many calls."""

from __future__ import annotations

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.export import Dim

import pipeline

CALLS = 10_000


class Scores(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, 8)
        self.second = nn.Linear(8, 8)

    def forward(self, x):
        return torch.softmax(self.second(torch.relu(self.first(x))), -1)


def scores(width):
    return Scores(width).eval().requires_grad_(False)


def test_two_models_in_one_process():
    """Their functions have the same names."""
    models = [scores(4), scores(6)]
    inputs = [torch.randn(2, 4), torch.randn(2, 6)]
    executables = [pipeline.compile(model, (x,)) for model, x in zip(models, inputs, strict=True)]
    for _ in range(2):
        for exe, model, x in zip(executables, models, inputs, strict=True):
            torch.testing.assert_close(exe(x), model(x))


def test_an_executable_outlives_others():
    model, x = scores(4), torch.randn(2, 4)
    exe = pipeline.compile(model, (x,))
    other = pipeline.compile(scores(6), (torch.randn(2, 6),))
    del other
    gc.collect()
    torch.testing.assert_close(exe(x), model(x))


def test_results_outlive_the_executable():
    model, x = scores(4), torch.randn(5, 4)
    exe = pipeline.compile(model, (x,), dynamic_shapes=({0: Dim("n", max=64)},))
    result = exe(x)
    del exe
    gc.collect()
    torch.testing.assert_close(result, model(x))


def test_compile_in_two_threads_at_once():
    start = threading.Barrier(2)

    def work(width):
        model, x = scores(width), torch.randn(2, width)
        start.wait()
        exe = pipeline.compile(model, (x,))
        torch.testing.assert_close(exe(x), model(x))
        return {remark.reason for remark in exe.remarks}

    with ThreadPoolExecutor(2) as pool:
        remarks = list(pool.map(work, (4, 40)))
    assert remarks[0] != remarks[1]


def test_load_in_two_threads_at_once(tmp_path):
    model, x = scores(4), torch.randn(2, 4)
    pipeline.compile(model, (x,)).save(tmp_path / "scores")
    with ThreadPoolExecutor(4) as pool:
        loaded = list(pool.map(lambda _: pipeline.load(tmp_path / "scores"), range(8)))
    for exe in loaded:
        torch.testing.assert_close(exe(x), model(x))


@pytest.mark.parametrize("sizes", [None, ({0: Dim("n", max=64)},)], ids=["static", "dynamic"])
def test_call_from_several_threads(sizes):
    model = scores(4)
    exe = pipeline.compile(model, (torch.randn(3, 4),), dynamic_shapes=sizes)

    def work(seed):
        rows = 3 if sizes is None else 2 + seed
        x = torch.randn(rows, 4, generator=torch.Generator().manual_seed(seed))
        expected = model(x)
        for _ in range(300):
            torch.testing.assert_close(exe(x), expected)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_refresh_while_others_call():
    """A call sees the weights of before or after a refresh, never a mixture that was freed."""
    model = scores(4)
    x = torch.randn(3, 4)
    exe = pipeline.compile(model, (x,))
    expected = model(x)
    done = threading.Event()

    def refresh():
        while not done.is_set():
            exe.refresh()

    with ThreadPoolExecutor(1) as pool:
        refreshing = pool.submit(refresh)
        try:
            for _ in range(1000):
                torch.testing.assert_close(exe(x), expected)
        finally:
            done.set()
        refreshing.result()


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("sizes", [None, ({0: Dim("n", max=64)},)], ids=["static", "dynamic"])
@pytest.mark.parametrize("kind", ["torch", "numpy"])
def test_memory_does_not_grow(sizes, kind):
    """Ten thousand calls whose results, of 16 kB, would come to 160 MB if they were kept."""
    model = Scores(4).requires_grad_(False)
    x = torch.randn(512 if sizes is None else 64, 4)
    exe = pipeline.compile(Repeat(model) if sizes else model, (x,), dynamic_shapes=sizes)
    argument = x if kind == "torch" else x.numpy()
    for _ in range(CALLS // 10):
        exe(argument)
    gc.collect()
    before = resident_bytes()
    for _ in range(CALLS):
        exe(argument)
    assert resident_bytes() - before < 4 << 20


class Repeat(nn.Module):
    """Results of 16 kB from few rows."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)[:, None].expand(-1, 8, -1) + 1


def test_refused_and_failed_calls_do_not_grow_memory():
    exe = pipeline.compile(
        nn.Embedding(4, 1024).requires_grad_(False), (torch.tensor([0, 1]),), dynamic_shapes=({0: Dim("n", max=64)},)
    )
    right, wrong = torch.tensor([0, 1, 3]), torch.tensor([0, 1, 4])

    def calls(count):
        for _ in range(count):
            exe(right)
            for argument in (wrong, right.int()):
                with pytest.raises(pipeline.PipelineError):
                    exe(argument)

    calls(100)
    before = resident_bytes()
    calls(2000)
    assert resident_bytes() - before < 4 << 20
