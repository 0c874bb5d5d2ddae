"""fuse_into: the groups that users name, and how they say it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from function_model import Function
from fusion.user_functions import X, Y, labels, run
from torch._higher_order_ops.while_loop import while_loop

import pipeline
from pipeline import OptionError, PipelineError, fuse_into
from pipeline.fusions import Callback


def test_ops_that_are_named_are_a_kernel_of_their_own():
    exe = run(lambda x, y: torch.relu(x.exp() + y).sin(), X, Y, fusions=[fuse_into(["add", "relu"], name="mine")])
    assert labels(exe) == ["exp", "mine", "sin"]
    assert [kernel.name for kernel in exe.kernels] == ["exp_0", "mine_0", "sin_0"]
    assert exe.kernels[1].words == ("add", "relu")


def test_must_not_fire_on_ops_that_nobody_named():
    mine = fuse_into(["tanh", "conv2d"], name="mine")
    plain, custom = (run(lambda x: torch.relu(x.exp()).sin(), X, fusions=one) for one in ([], [mine]))
    assert labels(plain) == labels(custom)


def test_names_of_pytorch_and_predicates():
    def function(x):
        return torch.sigmoid(x).exp()

    assert labels(run(function, X, fusions=[fuse_into(["sigmoid"], name="mine")])) == ["mine", "exp"]
    is_exp = fuse_into(lambda op: op.words == ("exp",) and op.dtype == "f32", name="mine")
    assert labels(run(function, X, fusions=[is_exp]))[-1] == "mine"


def test_groups_are_as_large_as_they_can_be_and_convex():
    def function(x):
        a = x.exp()
        return a.sin() * a.tanh()  # exp and mul with sin make a cycle through tanh

    exe = run(function, X, fusions=[fuse_into(["exp", "sin", "mul"], name="mine")])
    assert sorted(labels(exe)) == ["mine", "mine", "tanh"]
    reasons = {remark.key for remark in exe.remarks if remark.pass_name == "fuse-into" and remark.kind == "missed"}
    assert reasons == {"cycle"}
    everything = run(function, X, fusions=[fuse_into(["exp", "sin", "mul", "tanh"], name="mine")])
    assert labels(everything) == ["mine"]


def test_the_first_fusion_that_wants_an_op_has_it():
    first, second = fuse_into(["exp", "sin"], name="first"), fuse_into(["sin", "cos"], name="second")
    assert labels(run(lambda x: x.exp().sin().cos(), X, fusions=[first, second])) == ["first", "second"]


def test_a_barrier_is_not_crossed():
    exe = run(lambda x: pipeline.stop_fusion(x.exp()).sin(), X, fusions=[fuse_into(["exp", "sin"], name="mine")])
    assert labels(exe) == ["mine", "mine"]


def test_through_reshapes():
    def function(x):
        return x.exp().reshape(3, 2).sin(), x.exp().reshape(2, 3).cos() + x.reshape(2, 3)

    exe = run(function, X, fusions=[fuse_into(["exp", "sin"], name="mine")])
    assert labels(exe).count("mine") == 1


def test_several_results_and_captured_values_in_branches_and_loops():
    mine = fuse_into(["exp", "add", "mul"], name="mine")

    def branches(c, x, y):
        def yes(x):
            e = x.exp() + y
            return e, e * x

        return torch.cond(c, yes, lambda x: (x.sin(), x + y), (x,))

    for c in (True, False):
        exe = run(branches, torch.tensor(c), X, Y, fusions=[mine])
        assert labels(exe).count("mine") == 2

    def loop(x, y):
        return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, (x * y + y).exp().tanh()), (torch.tensor(0), x))[1]

    assert "mine" in labels(run(loop, X, Y, fusions=[mine]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["exp"], {"name": "a-b"}), "name='a-b': expected a word"),
        ((3, {"name": "x"}), "predicate: expected names of ops or a function, got 3"),
        ((None, {"name": "x"}), "predicate: expected names of ops or a function, got None"),
        ((["exp"], {"name": "x", "becomes": print}), "becomes: expected External, Callback, Emitter or Intrinsic"),
    ],
)
def test_refused(arguments, message):
    predicate, rest = arguments
    with pytest.raises(OptionError, match=message):
        fuse_into(predicate, **rest)


def test_fusions_are_what_fuse_into_gives():
    with pytest.raises(OptionError, match="fusions: expected a list of what pipeline.fuse_into gives, got"):
        pipeline.compile(Function(torch.exp), (X,), fusions=["exp"])


def test_a_predicate_that_fails_is_an_error_of_compilation():
    with pytest.raises(PipelineError, match="pass 'fuse-into' failed .* ZeroDivisionError"):
        pipeline.compile(Function(torch.exp), (X,), fusions=[fuse_into(lambda op: 1 / 0, name="mine")])


def test_torch_compile_takes_them():
    torch._dynamo.reset()
    calls = []
    fusion = fuse_into(["exp"], name="mine", becomes=Callback(lambda x: calls.append(1) or np.exp(x)))
    with torch.no_grad():
        function = torch.compile(lambda x: x.exp() + 1, backend="pipeline", options={"fusions": [fusion]})
        torch.testing.assert_close(function(X), X.exp() + 1)
    assert calls
