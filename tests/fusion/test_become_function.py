"""Groups that become a call of a library's function or of one in Python, in branches and loops too."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from function_model import Function
from fusion.support import compiled
from fusion.user_functions import X, Y, labels, run
from torch import nn

import pipeline
from pipeline import ArtifactError, PipelineError, fuse_into
from pipeline.fusions import Callback, External

# Functions of a library


def test_a_c_function(library, tmp_path):
    external = External("add_relu", library / "add_relu.so")
    exe = run(
        lambda x, y: torch.relu(x.exp() + y).sin(),
        X,
        Y,
        fusions=[fuse_into(["add", "relu"], name="c", becomes=external)],
    )
    assert labels(exe) == ["exp", "c", "sin"]
    exe.save(tmp_path / "model.pipeline")
    loaded = pipeline.load(tmp_path / "model.pipeline")
    np.testing.assert_allclose(loaded(X.numpy(), Y.numpy()), torch.relu(X.exp() + Y).sin().numpy(), rtol=1e-6)


def test_a_c_function_in_a_branch_and_on_dynamic_sizes(library):
    external = External("add_relu", library / "add_relu.so")
    mine = fuse_into(["add", "relu"], name="c", becomes=external)

    def branches(c, x, y):
        return torch.cond(c, lambda x: torch.relu(x + y), lambda x: x * y, (x,))

    for c in (True, False):
        run(branches, torch.tensor(c), X, Y, fusions=[mine])
    dim = torch.export.Dim("n")
    exe = pipeline.compile(
        Function(lambda x, y: torch.relu(x + y) * 2), (X, Y), dynamic_shapes=(({0: dim}, {0: dim}),), fusions=[mine]
    )
    for size in (2, 6, 33):
        x, y = torch.randn(size), torch.randn(size)
        torch.testing.assert_close(exe(x, y), torch.relu(x + y) * 2)


def test_libraries_and_functions_that_are_not_there(library, tmp_path):
    def with_(external):
        return run(lambda x, y: x + y, X, Y, fusions=[fuse_into(["add"], name="c", becomes=external)])

    with pytest.raises(ArtifactError, match="the library of add_relu cannot be loaded: .*nowhere.so"):
        with_(External("add_relu", tmp_path / "nowhere.so"))
    with pytest.raises(ArtifactError, match="add_relu.so has no function sub_relu"):
        with_(External("sub_relu", library / "add_relu.so"))


def test_what_an_op_updates_is_not_written_by_the_function(library):
    text = """
    #id = affine_map<(d0) -> (d0)>
    func.func @main(%x: tensor<6xf32>, %y: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
      %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%x : tensor<6xf32>) outs(%y : tensor<6xf32>) {
      ^bb0(%a: f32, %b: f32):
        %s = arith.addf %a, %b : f32
        linalg.yield %s : f32
      } -> tensor<6xf32>
      return %0, %y : tensor<6xf32>, tensor<6xf32>
    }"""
    taken = []

    def add(first, second):
        taken.append((first.copy(), second.copy()))
        return first + second

    exe = pipeline.compile(text, fusions=[fuse_into(["add"], name="mine", becomes=Callback(add))])
    total, same = exe(X, Y)
    torch.testing.assert_close(total, X + Y)
    torch.testing.assert_close(same, Y)
    np.testing.assert_array_equal(taken[0][0], Y.numpy())


# Python functions


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int8", "bool"])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (5, 3)], ids=str)
def test_a_python_function(dtype, shape):
    seen = []

    def both(x, y):
        seen.append((x.shape, str(x.dtype), x.flags.writeable))
        return np.logical_and(x, y) if dtype == "bool" else x + y

    kind = getattr(torch, dtype)
    x, y = (torch.randn(shape) * 3).to(kind), (torch.randn(shape) * 3).to(kind)
    function = torch.logical_and if dtype == "bool" else torch.add
    words = ["and", "andi", "logical_and"] if dtype == "bool" else ["add"]
    exe = run(function, x, y, fusions=[fuse_into(words, name="mine", becomes=Callback(both))])
    exe(x, y)
    assert set(seen) == ({(shape, dtype, False)} if x.numel() else set())  # there is nothing to call it for


def test_a_python_function_with_several_results_in_prepare_and_in_branches():
    calls = []

    def two(x):
        calls.append("two")
        e = np.exp(x)
        return e, np.sin(e)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6), requires_grad=False)

        def forward(self, c, x):
            def yes(x):
                e = x.exp()
                return e.sin() + e * 2

            w = self.weight.exp()
            return torch.cond(c, yes, lambda x: x + 1, (x,)) + w * w.sin()

    mine = fuse_into(["exp", "sin"], name="mine", becomes=Callback(two))
    exe = compiled(Net(), torch.tensor(True), X, fusions=[mine])
    assert calls == ["two", "two"]
    torch.testing.assert_close(exe(torch.tensor(False), X), Net.forward(exe_model(exe), torch.tensor(False), X))


def exe_model(exe):
    """A stand-in for the model, with the executable's own weights."""
    model = type("Weights", (), {})()
    model.weight = exe._bound.live["weight"]
    return model


def test_what_a_python_function_raises_is_raised_by_the_call():
    class Broken(Exception):
        pass

    def fails(x):
        if x[0] > 0:
            raise Broken("no")
        return -x

    exe = pipeline.compile(
        Function(lambda x: x.neg().exp()), (X,), fusions=[fuse_into(["neg"], name="mine", becomes=Callback(fails))]
    )
    with pytest.raises(PipelineError, match="a Python function of the model failed: Broken: no") as caught:
        exe(torch.ones(6))
    assert isinstance(caught.value.__cause__, Broken)
    torch.testing.assert_close(exe(-torch.ones(6)), torch.ones(6).exp())


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda x: x[:2], r"it returned float32\[2\], expected float32\[6\]"),
        (lambda x: x.astype(np.float64), r"it returned float64\[6\], expected float32\[6\]"),
        (lambda x: (x, x), "it returned 2 results, expected 1"),
        (lambda x: None, "expected float32"),
        (lambda x: x.fill(1), "read-only"),
    ],
)
def test_a_python_function_that_returns_something_else(returned, message):
    fusion = fuse_into(["exp"], name="mine", becomes=Callback(returned))
    exe = pipeline.compile(Function(lambda x: x.exp()), (X,), fusions=[fusion])
    with pytest.raises(PipelineError, match=message):
        exe(X)


def test_python_functions_cannot_be_saved(tmp_path):
    fusion = fuse_into(["exp"], name="mine", becomes=Callback(np.exp))
    exe = pipeline.compile(Function(lambda x: x.exp()), (X,), fusions=[fusion])
    with pytest.raises(
        ArtifactError, match="calls Python functions .* cannot be saved; make them functions of a shared"
    ):
        exe.save(tmp_path / "model.pipeline")
    assert not (tmp_path / "model.pipeline").exists()


def test_python_functions_in_threads_and_in_several_executables():
    exes = [
        pipeline.compile(
            Function(lambda x: x.exp()),
            (X,),
            fusions=[fuse_into(["exp"], name="mine", becomes=Callback(lambda x, k=k: x * np.float32(k)))],
        )
        for k in range(4)
    ]
    results = {}

    def work(k):
        for _ in range(20):
            results[k] = exes[k](X)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        torch.testing.assert_close(results[k], X * k)


def test_passes_after_it_leave_a_called_group_alone():
    shapes = []

    def exp(x):
        shapes.append(x.shape)
        return np.exp(x)

    mine = fuse_into(["exp"], name="mine", becomes=Callback(exp))
    exe = run(lambda x: (x.exp(), x.sin(), x.reshape(2, 3)[:, 1:].exp()), X, fusions=[mine])
    assert labels(exe).count("mine") == 2
    assert sorted(shapes) == [(2, 2), (6,)]
