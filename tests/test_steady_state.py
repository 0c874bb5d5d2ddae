"""Calls after the first ones: code for static shapes allocates nothing, and threads do not share temporaries."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.export import Dim

import pipeline


class Mixer(nn.Module):
    """Several kernels whose temporaries come to 1 MB."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 256), nn.Linear(256, 64)

    def forward(self, x):
        hidden = torch.softmax(self.first(x), -1)
        return x + self.second(hidden * hidden.mean(-1, keepdim=True))


@pytest.fixture(scope="module")
def mixer():
    torch.manual_seed(0)
    return Mixer().requires_grad_(False)


@pytest.fixture(scope="module")
def executable(mixer):
    return pipeline.compile(mixer, (torch.randn(512, 64),))


def allocations(executable):
    """How many calls of an allocator the code of main and its kernels has; @prepare runs before, and may allocate."""
    count, place = 0, ""
    for line in executable.ir("llvm").splitlines():
        place = found[1] if (found := re.search(r"llvm\.func .*?@(\w+)\(", line)) else place
        count += place != "prepare" and bool(re.search(r"llvm\.call @(?:aligned_alloc|malloc|calloc)\b", line))
    return count


def test_code_for_static_shapes_calls_no_allocator(executable):
    assert "llvm.call @" in executable.ir("llvm")
    assert allocations(executable) == 0


class Convolutions(nn.Module):
    """Convolutions by Winograd's algorithm, whose kernels need scratch: of 56x56, rows at a time, and of 7x7."""

    def __init__(self):
        super().__init__()
        self.large, self.small = nn.Conv2d(64, 64, 3, padding=1), nn.Conv2d(256, 256, 3, padding=1)

    def forward(self, x, y):
        return torch.relu(self.large(x)), torch.relu(self.small(y))


@pytest.fixture(scope="module")
def convolutions():
    torch.manual_seed(0)
    model, args = Convolutions().requires_grad_(False), (torch.randn(1, 64, 56, 56), torch.randn(1, 256, 7, 7))
    return pipeline.compile(model, args), model, args


def test_scratch_of_kernels_lies_in_the_workspace(convolutions):
    executable, _, _ = convolutions
    assert (
        sum("Winograd" in remark.reason for remark in executable.remarks if remark.pass_name == "winograd-weights") == 2
    )
    assert executable.code.thread_bytes > 0
    assert allocations(executable) == 0


def test_scratch_grows_with_the_threads(convolutions):
    """Results are the same bits whatever the number of threads, whether it is set for the code or for OpenMP."""
    executable, model, args = convolutions
    before = torch.get_num_threads()
    results, sizes = [], []
    try:
        for own, openmp in ((1, 1), (3, 1), (None, 2), (None, 5), (2, 5)):
            executable.num_threads = own
            torch.set_num_threads(openmp)
            results.append(executable(*args))
            sizes.append(executable.memory.workspace - executable.code.workspace)
    finally:
        torch.set_num_threads(before)
    assert sizes == [count * executable.code.thread_bytes for count in (0, 2, 1, 4, 1)]
    for result in results:
        assert all(map(torch.equal, result, results[0]))
    for result, expected in zip(results[0], model(*args), strict=True):
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)


def test_threads_that_call_have_scratch_of_their_own(convolutions):
    executable, _, args = convolutions
    inputs = [tuple(number + arg for arg in args) for number in range(3)]
    executable.num_threads = 2
    alone = [executable(*one) for one in inputs]

    def call_often(number):
        return all(all(map(torch.equal, executable(*inputs[number]), alone[number])) for _ in range(50))

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(call_often, range(3))) == [True] * 3


def test_code_for_dynamic_shapes_does(mixer):
    """The test above looks for what is there when something is allocated."""
    shapes = ({0: Dim("n", max=1024)},)
    assert allocations(pipeline.compile(mixer, (torch.randn(512, 64),), dynamic_shapes=shapes)) > 0


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_calls_do_not_grow_memory(executable):
    """After two calls; 1000 more would take 1 GB if they kept their temporaries, 130 MB if their results."""
    x = torch.randn(512, 64)
    executable(x), executable(x)
    before = resident_bytes()
    for _ in range(1000):
        executable(x)
    assert resident_bytes() - before < 4 << 20


def test_threads_have_temporaries_of_their_own(executable):
    """Results are, bit by bit, those of one thread alone."""
    inputs = [torch.randn(512, 64, generator=torch.Generator().manual_seed(seed)) for seed in range(4)]
    alone = [executable(x) for x in inputs]

    def call_often(number):
        return all(torch.equal(executable(inputs[number]), alone[number]) for _ in range(300))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(call_often, range(4))) == [True] * 4


def test_the_footprint(executable, mixer):
    memory = executable.memory
    assert memory.weights == sum(4 * weight.numel() for weight in mixer.parameters())
    assert memory.results == 512 * 64 * 4
    assert memory.workspace <= 2 * 512 * 256 * 4 + 4096
    assert memory.complete
    assert memory.call == memory.workspace + memory.results < memory.total
    shapes = ({0: Dim("n", max=1024)},)
    dynamic = pipeline.compile(mixer, (torch.randn(512, 64),), dynamic_shapes=shapes).memory
    assert not dynamic.complete and dynamic.results == 0


def peak_bytes(call):
    """By how much the resident memory grows at most during a call."""
    Path("/proc/self/clear_refs").write_text("5")
    before = resident_bytes()
    kept = call()
    peak = int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
    del kept
    return peak - before


class Chain(nn.Module):
    """Temporaries of 4 MB each, of which two are needed at a time."""

    def forward(self, x):
        for _ in range(6):
            x = torch.softmax(x @ x, -1)
        return x


def test_the_footprint_is_what_a_call_takes():
    x = torch.randn(1024, 1024)
    chain = pipeline.compile(Chain(), (x,))
    assert chain.memory.call <= 4 * x.numel() * 4
    assert peak_bytes(lambda: chain(x)) < chain.memory.call + (3 << 20)
