"""Threads that share the work of kernels: the same bits whatever their number, and no more of them than wanted."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

import pipeline
from pipeline.errors import OptionError
from pipeline.runtime.native import openmp_team
from pipeline.tools import compile as compile_driver
from pipeline.tools import run as run_driver


class Calls(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def attention(x):
    q, k, v = (x.view(1, 97, 4, 16).transpose(1, 2) * factor for factor in (1.0, 0.5, 2.0))
    return F.scaled_dot_product_attention(q, k, v)


CASES = {
    "product": (lambda a, b: torch.relu(a @ b), [(201, 133), (133, 187)]),
    "batched product": (lambda a, b: a @ b, [(3, 65, 70), (3, 70, 81)]),
    "convolution": (lambda x, w: F.conv2d(x, w, padding=1).relu(), [(1, 17, 29, 31), (35, 17, 3, 3)]),
    "depthwise": (lambda x, w: F.conv2d(x, w, padding=1, groups=33), [(2, 33, 29, 31), (33, 1, 3, 3)]),
    "elementwise": (lambda x, y: F.gelu(x * y) + y, [(301, 307), (301, 307)]),
    "softmax": (lambda x: torch.softmax(x, -1), [(301, 207)]),
    "softmax of columns": (lambda x: torch.softmax(x, 0), [(301, 207)]),
    "layer norm": (lambda x: F.layer_norm(x, (207,)), [(301, 207)]),
    "sum of all": (lambda x: (x * x).sum(), [(301, 307)]),
    "sums of columns": (lambda x: x.sum(0), [(601, 307)]),
    "pool": (lambda x: F.max_pool2d(x, 3, 2), [(1, 33, 61, 63)]),
    "transpose": (lambda x: x.t().contiguous() + 1, [(501, 307)]),
    "attention": (attention, [(1, 97, 64)]),
    "one row": (lambda a, b: a @ b, [(1, 700), (700, 501)]),
    "one column": (lambda a, b: a @ b, [(700, 501), (501, 1)]),
    "empty": (lambda x: x * 2, [(0, 5)]),
}


def inputs(shapes, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return tuple((torch.randn(shape, generator=generator) * 3).to(dtype) for shape in shapes)


def is_shared(executable):
    return "pipeline_parallel" in executable.ir("llvm")


@pytest.fixture
def eager_to_share(monkeypatch):
    """Loops are shared however small they are."""
    from pipeline.passes.cpu.parallelize_kernels import ParallelizeKernels
    from pipeline.passmanager import pass_pipeline

    monkeypatch.setattr(pass_pipeline, "_parsed", {})  # pipelines that are known have their passes
    original = ParallelizeKernels.__init__
    monkeypatch.setattr(ParallelizeKernels, "__init__", lambda self: original(self, least=1, trips=2))


@pytest.mark.parametrize("name", CASES)
def test_the_same_bits_from_any_number_of_threads(name, eager_to_share):
    function, shapes = CASES[name]
    args = inputs(shapes)
    shared = pipeline.compile(Calls(function), args)
    alone = pipeline.compile(Calls(function), args, num_threads=1)
    assert not is_shared(alone)
    wanted = alone(*args)
    torch.testing.assert_close(wanted, function(*args), rtol=1e-4, atol=1e-4)
    for number in (1, 2, 5):
        shared.num_threads = number
        assert torch.equal(shared(*args), wanted), number


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int32, torch.int8])
def test_dtypes(dtype, eager_to_share):
    def function(a, b):
        return a * b + b

    args = inputs([(123, 257), (123, 257)], dtype)
    shared = pipeline.compile(Calls(function), args, num_threads=3)
    assert torch.equal(shared(*args), pipeline.compile(Calls(function), args, num_threads=1)(*args))


def test_dynamic_sizes(eager_to_share):
    def function(x):
        return torch.softmax(F.gelu(x @ x.transpose(0, 1)), -1)

    shapes = (({0: Dim("n", max=500)},),)
    shared = pipeline.compile(Calls(function), inputs([(77, 55)]), dynamic_shapes=shapes, num_threads=3)
    alone = pipeline.compile(Calls(function), inputs([(77, 55)]), dynamic_shapes=shapes, num_threads=1)
    for size in (1, 2, 3, 64, 131):
        (x,) = inputs([(size, 55)])
        assert torch.equal(shared(x), alone(x)), size
        torch.testing.assert_close(alone(x), function(x), rtol=1e-4, atol=1e-4)


def test_large_kernels_are_shared_and_small_ones_are_not():
    def function(a, b):
        return a @ b

    large, small = inputs([(512, 512), (512, 512)]), inputs([(8, 8), (8, 8)])
    assert is_shared(pipeline.compile(Calls(function), large))
    assert not is_shared(pipeline.compile(Calls(function), small))
    assert not is_shared(pipeline.compile(Calls(function), large, num_threads=1))


def test_several_callers_at_once(eager_to_share):
    from concurrent.futures import ThreadPoolExecutor

    args = inputs([(201, 133), (133, 187)])
    shared = pipeline.compile(Calls(lambda a, b: torch.relu(a @ b)), args, num_threads=2)
    wanted = shared(*args)
    with ThreadPoolExecutor(3) as pool:
        results = pool.map(lambda _: all(torch.equal(shared(*args), wanted) for _ in range(5)), range(3))
        assert list(results) == [True] * 3


def test_how_many_there_are():
    args = inputs([(512, 512), (512, 512)])
    shared = pipeline.compile(Calls(lambda a, b: a @ b), args, num_threads=2)
    assert shared.num_threads == 2
    shared.num_threads = None
    assert shared.num_threads is None
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(OptionError, match="num_threads: expected a number from 1"):
            shared.num_threads = wrong
        with pytest.raises(OptionError, match="num_threads: expected a number from 1"):
            pipeline.compile(Calls(lambda a, b: a @ b), args, num_threads=wrong)


def test_the_environment(monkeypatch):
    monkeypatch.setenv("PIPELINE_NUM_THREADS", "3")
    assert openmp_team.wanted(None) == 3
    assert openmp_team.wanted(2) == 2
    for wrong in ("0", "-1", "two"):
        monkeypatch.setenv("PIPELINE_NUM_THREADS", wrong)
        with pytest.raises(OptionError, match="expected a number from 1"):
            openmp_team.wanted(None)


def test_the_drivers(tmp_path, capsys, monkeypatch):
    (tmp_path / "net.py").write_text(
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x @ x.T)\n"
        "\n\ndef model():\n    return Net(), (torch.randn(512, 64),)\n"
    )
    np.save(tmp_path / "x.npy", np.ones((512, 64), np.float32))
    path = str(tmp_path / "net.pipeline")
    for options, shared in ((["--num-threads=1"], False), ([], True)):
        assert compile_driver.main([str(tmp_path / "net.py"), "-o", path, *options]) == 0
        assert any(openmp_team.SPAWN in one for one in pipeline.load(path).objects) == shared
    assert run_driver.main([path, "--input", str(tmp_path / "x.npy"), "--num-threads=2"]) == 0
    assert "64" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        run_driver.main([path, "--num-threads=0"])


COUNT = """
import ctypes, os, sys
import numpy as np
import pipeline
from pipeline.runtime.native import openmp_team as threads

def running():
    return len(os.listdir("/proc/self/task"))

exe = pipeline.load(sys.argv[1])
x = np.ones((512, 64), np.float32)
before = running()
exe.num_threads = 1
exe(x)
assert running() == before, "one thread"
exe.num_threads = 3
exe(x)
assert running() == before + 2, "three threads"
exe(x)
assert running() == before + 2, "the same three threads"

# Inside of a team of threads that another library made, a kernel stays on the thread that calls it.
work = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
signature = ctypes.CFUNCTYPE(None, work, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
parallel = signature(threads.addresses()[0])
wanted, seen = exe(x), []
parallel(work(lambda _: seen.append(np.array_equal(exe(x), wanted))), None, 2, 0)
assert seen == [True, True]
assert running() <= before + 2, "no threads of threads"  # libgomp ends those that a smaller team leaves over
"""


def test_threads_that_run(tmp_path):
    executable = pipeline.compile(Calls(lambda x: torch.relu(x @ x.T)), inputs([(512, 64)]))
    executable.save(tmp_path / "net")
    subprocess.run(
        [sys.executable, "-c", COUNT, str(tmp_path / "net")],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path), "OPENBLAS_NUM_THREADS": "1"},
        check=True,
        timeout=100,
    )


FORK = """
import os, signal, sys
import numpy as np
import pipeline

exe = pipeline.load(sys.argv[1])
x = np.ones((512, 64), np.float32)
exe.num_threads = 3
wanted = exe(x)
child = os.fork()
if child == 0:
    signal.alarm(60)
    again = pipeline.load(sys.argv[1])
    os._exit(0 if np.array_equal(exe(x), wanted) and np.array_equal(again(x), wanted) else 1)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_process_goes_on_with_one_thread(tmp_path):
    executable = pipeline.compile(Calls(lambda x: torch.relu(x @ x.T)), inputs([(512, 64)]))
    executable.save(tmp_path / "net")
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-c", FORK, str(tmp_path / "net")], env=environment, check=True, timeout=100)


OWN_COPIES = """
import {first}
import {second}
from pipeline.runtime.native import openmp_team

maps = open("/proc/self/maps").read()
assert "scikit_learn.libs/libgomp" in maps and "torch/lib/libgomp" in maps
team = openmp_team.TeamSize(openmp_team.ctypes.c_int32(0))
for number in (1, 3, 2):
    torch.set_num_threads(number)
    assert team.team() == number
"""


@pytest.mark.parametrize(("first", "second"), [("torch", "sklearn.datasets"), ("sklearn.datasets", "torch")])
def test_torch_and_kernels_have_the_same_number(first, second):
    """They are on one libgomp, so that what torch is told holds for both, whatever packages bring one of their own."""
    script = OWN_COPIES.format(first=first, second=second)
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=100)


def test_without_libgomp(monkeypatch, eager_to_share):
    monkeypatch.setattr(openmp_team, "_libgomp", lambda: None)
    openmp_team.addresses.cache_clear()
    try:
        args = inputs([(64, 64), (64, 64)])
        with pytest.warns(RuntimeWarning, match="kernels run on one thread"):
            shared = pipeline.compile(Calls(lambda a, b: a @ b), args, num_threads=2)
        assert is_shared(shared)
        assert torch.equal(shared(*args), pipeline.compile(Calls(lambda a, b: a @ b), args, num_threads=1)(*args))
    finally:
        openmp_team.addresses.cache_clear()
    assert ctypes.CDLL("libgomp.so.1")
