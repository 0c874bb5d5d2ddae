"""Executables as objects that are pickled and copied, and inside of torch's contexts, transformations and processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import subprocess
import sys

import pytest
import torch
from function_model import Function
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import pipeline
from pipeline.errors import ArgumentError

X = torch.linspace(-1, 1, 24).view(3, 8)


class Counting(nn.Module):
    """Writes to a buffer in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 5)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return self.linear(x) * self.calls


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda exe: pickle.loads(pickle.dumps(exe))])
def test_copies_have_weights_of_their_own(copied):
    model = Counting().eval()
    exe = pipeline.compile(model, (X,), num_threads=2)
    once = exe(X)
    other = copied(exe)
    assert other.num_threads == 2 and [one.name for one in other.kernels] == [one.name for one in exe.kernels]
    with torch.no_grad():
        model.linear.weight.zero_()
    torch.testing.assert_close(other(X), 2 * once)
    torch.testing.assert_close(copied(other)(X), 3 * once)
    assert model.calls == 1


def test_copies_make_results_of_the_same_library():
    exe = pipeline.compile(Function(lambda: torch.arange(3)), ())
    assert isinstance(copy.deepcopy(exe)(), torch.Tensor)


def test_what_calls_python_cannot_be_pickled():
    becomes = pipeline.fuse_into(["exp"], name="mine", becomes=pipeline.fusions.Callback(lambda x: x))
    exe = pipeline.compile(Function(lambda x: x.exp()), (X,), fusions=[becomes])
    with pytest.raises(pipeline.PipelineError, match="Python"):
        pickle.dumps(exe)


def _serve(exe, x, results):
    results.put(exe(x).tolist())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(method):
    model = nn.Sequential(nn.Linear(8, 300), nn.ReLU(), nn.Linear(300, 5)).eval()
    exe = pipeline.compile(model, (X,))
    wanted = exe(X)
    context = multiprocessing.get_context(method)
    results = context.Queue()
    child = context.Process(target=_serve, args=(exe, X, results))
    child.start()
    torch.testing.assert_close(torch.tensor(results.get(timeout=100)), wanted)
    child.join()
    torch.testing.assert_close(exe(X), wanted)


_FORK = """
import copy, os, sys, torch, pipeline
x = torch.ones(600, 600)
exe = pipeline.compile(torch.nn.Linear(600, 600).eval(), (x,), num_threads=2)
wanted = exe(x).numpy()                      # libgomp's threads are there from now on
child = os.fork()
if child == 0:
    exe.num_threads = 2                      # only the parent has those threads
    results = exe(x), copy.deepcopy(exe)(x)  # comparing them in torch would hang
    os._exit(0 if all((one.numpy() == wanted).all() for one in results) else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_does_not_wait_for_its_parents_threads():
    subprocess.run([sys.executable, "-c", _FORK], check=True, timeout=100)


_FORK_WITH_LOCKS = """
import os, signal, sys, threading, torch, pipeline
from pipeline import locks
x = torch.ones(3)
exe = pipeline.compile(torch.nn.Linear(3, 3).eval(), (x,), cache=False)
held = [*locks._made]
there, done = threading.Event(), threading.Event()
def hold():
    for lock in held:
        lock.acquire()
    there.set()
    done.wait()
threading.Thread(target=hold, daemon=True).start()
there.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)
    exe.refresh()
    other = pipeline.compile(torch.nn.ReLU(), (x,), cache=False)
    os._exit(0 if (exe(x).shape, other(x).sum().item()) == ((3,), 3) else 1)
done.set()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if len(held) > 3 else 2)
"""


def test_a_forked_child_finds_locks_free_that_other_threads_held():
    subprocess.run([sys.executable, "-c", _FORK_WITH_LOCKS], check=True, timeout=100)


def test_contexts():
    model = nn.Linear(8, 5).eval()
    exe = pipeline.compile(model, (X,))
    wanted = model(X)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert exe(X).dtype == torch.float32
        torch.testing.assert_close(exe(X), wanted)
    with torch.inference_mode():
        torch.testing.assert_close(exe(X), wanted)
        x = X.clone()
    torch.testing.assert_close(exe(x), wanted)
    torch.testing.assert_close(exe(X.clone().requires_grad_()), wanted)


def test_buffers_and_arguments_are_updated_in_inference_mode():
    counting = Counting().eval()
    exe = pipeline.compile(counting, (X,))
    with torch.inference_mode():
        exe(X), exe(X)
    assert counting.calls == 2
    doubling = pipeline.compile(Function(lambda x: x.mul_(2)), (X.clone(),))
    with torch.inference_mode():
        x = X.clone()
        doubling(x)
    doubling(x)
    torch.testing.assert_close(x, 4 * X)


TRANSFORMATIONS = {
    "grad": lambda f: torch.func.grad(lambda x: f(x).sum())(X),
    "jvp": lambda f: torch.func.jvp(f, (X,), (X,)),
    "functionalize": lambda f: torch.func.functionalize(f)(X),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
@pytest.mark.parametrize("way", ["short", "long"])
def test_transformations_are_one_clear_error(name, way):
    exe = pipeline.compile(Function(lambda x: x * 2), (X,))
    call = exe if way == "short" else lambda x: exe._call((x,), {}, None)
    with pytest.raises(ArgumentError, match=r"torch.func or torch.vmap stands in for: compile the function"):
        TRANSFORMATIONS[name](call)


@pytest.mark.parametrize("in_dims, out_dims", [(0, 0), (1, 0), (-1, 1)])
def test_vmap_calls_for_each_sample(in_dims, out_dims):
    model = nn.Linear(8, 5).eval().requires_grad_(False)
    exe, xs = pipeline.compile(model, (X,)), torch.stack([X + n for n in range(3)], in_dims)
    torch.testing.assert_close(torch.vmap(exe, in_dims, out_dims)(xs), torch.vmap(model, in_dims, out_dims)(xs))


def test_vmap_has_no_gradient():
    exe = pipeline.compile(Function(lambda x: x * 2), (X,))
    with pytest.raises(ArgumentError, match="compile the function that torch.func gives"):
        torch.func.grad(lambda x: torch.vmap(exe)(x).sum())(torch.stack((X, X)))


def test_vmap_of_vmap():
    model = Function(lambda x, y: {"sum": x + y, "rest": (x.exp(), y)})
    exe, xs = pipeline.compile(model, (X, X)), torch.stack([X, X + 1])

    def twice(function):
        return torch.vmap(torch.vmap(function, (0, None)), (0, None))

    nested = torch.stack([xs, xs + 2, xs - 1])
    torch.testing.assert_close(twice(exe)(nested, X), twice(model)(nested, X))


def test_what_they_give_can_be_compiled():
    linear = nn.Linear(8, 5).eval()
    xs = torch.stack((X, X + 1))
    exe = pipeline.compile(Function(torch.vmap(linear)), (xs,))
    torch.testing.assert_close(exe(xs), torch.vmap(linear)(xs))


def test_fake_tensors_are_one_clear_error():
    exe = pipeline.compile(Function(lambda x: x * 2), (X,))
    with FakeTensorMode() as mode, pytest.raises(ArgumentError, match="got a FakeTensor"):
        exe(mode.from_tensor(X))
