"""Steps of training in the disk cache: what is found gives eager's gradients, and nothing is found that differs."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys

import pytest
import torch
from disk_cache_entries import outcomes
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "100M")
    return tmp_path / "cache"


class Net(nn.Module):
    """Convolution with statistics, a tied linear layer, attention and a view as a result."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.first = nn.Linear(4, 4)
        self.again = self.first

    def forward(self, x):
        y = self.norm(self.conv(x)).relu().flatten(2).transpose(1, 2)
        y = self.again(self.first(y))
        y = F.scaled_dot_product_attention(y, y, y)
        return y.mean(1), y.transpose(1, 2)


def gradients(call, module, *inputs):
    """The results of a call and all gradients, of results weighted with different numbers."""
    module.zero_grad()
    inputs = [x.detach().clone().requires_grad_(x.requires_grad) for x in inputs]
    results = call(*inputs)
    results = results if isinstance(results, tuple) else (results,)
    sum((r.double() * torch.arange(r.numel()).view(r.shape)).sum() for r in results).backward()
    by_weights = {name: weight.grad for name, weight in module.named_parameters()}
    return [r.detach() for r in results], by_weights, [x.grad for x in inputs], dict(module.named_buffers())


def step(count, module, *inputs, options=None, tolerance=1e-4):
    """How many graphs were found in the cache by a new torch.compile, whose two steps are compared with eager's."""
    torch._dynamo.reset()
    count.clear()
    reference = copy.deepcopy(module)
    compiled = torch.compile(module, backend="pipeline", options=options)
    for _ in range(2):
        torch.manual_seed(3)
        expected = gradients(reference, reference, *inputs)
        torch.manual_seed(3)
        found = gradients(compiled, module, *inputs)
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance * float(expected[0][0].abs().max()))
    return count["cached"]


def test_another_process_finds_it(cache):
    program = f"""
import json, sys, torch
sys.path[:0] = {sys.path!r}
from test_cached_steps import Net, gradients
from torch._dynamo.utils import counters
import pipeline
from disk_cache_entries import outcomes
torch.manual_seed(0)
net, x = Net().train(), torch.randn(2, 2, 6, 5, requires_grad=True)
compiled = torch.compile(net, backend="pipeline")
found = gradients(compiled, net, x)
torch.save(found, sys.argv[1])
executables = pipeline.executables(compiled)
assert [bool(e.kernels) for e in executables] == [True, True]
print(json.dumps([dict(counters["pipeline"]), [len(e.kernels) for e in executables]]))
"""
    outputs = []
    for number in range(2):
        path = cache.parent / f"{number}.pt"
        run = [sys.executable, "-c", program, str(path)]
        done = subprocess.run(run, capture_output=True, text=True, check=False, env=dict(os.environ))
        assert done.returncode == 0, done.stderr
        outputs.append(json.loads(done.stdout))
    first, second = outputs
    assert "cached" not in first[0] and second[0]["cached"] == 1
    assert first[1] == second[1]
    torch.testing.assert_close(torch.load(cache.parent / "1.pt"), torch.load(cache.parent / "0.pt"), rtol=0, atol=0)


def test_what_is_found(count):
    net, x = Net().double().train(), torch.randn(2, 2, 6, 5).double()
    assert [step(count, net, x) for _ in range(2)] == [0, 1]


class Scaled(nn.Module):
    """A module whose forward is given, with one linear layer that it may use."""

    def __init__(self, forward, features=4):
        super().__init__()
        self.layer, self.other, self.call = nn.Linear(features, features), nn.Linear(features, features), forward

    def forward(self, x):
        return self.call(self, x)


def linear(self, x):
    return self.other(self.layer(x).sigmoid())


def with_autocast(self, x):
    with torch.autocast("cpu", torch.bfloat16):
        return self.layer(x).float()


@pytest.mark.parametrize("form", ["frozen", "evaluation", "autocast", "input", "unused", "fallback"])
def test_forms(form, count):
    function = {
        "autocast": with_autocast,
        "unused": lambda self, x: (self.layer(x), x * 2, 3.0 * torch.ones(2)),
        "fallback": lambda self, x: torch.linalg.pinv(self.layer(x)) * 2,
    }.get(form, linear)
    net, x = Scaled(function).train(form != "evaluation"), torch.randn(3, 4)
    net.layer.weight.requires_grad_(form != "frozen")
    x.requires_grad_(form == "input")
    options = {"fallback": "torch"} if form == "fallback" else None
    tolerance = 2e-2 if form == "autocast" else 1e-4
    found = [step(count, net, x, options=options, tolerance=tolerance) for _ in range(2)]
    assert found == [0, 1]


def test_what_must_not_be_found(count):
    net, x = Scaled(linear), torch.randn(3, 4)
    assert [step(count, net, x) for _ in range(2)] == [0, 1]
    frozen = copy.deepcopy(net)
    frozen.layer.weight.requires_grad_(False)
    frozen.layer.bias.requires_grad_(False)
    assert step(count, frozen, x) == 0
    assert step(count, copy.deepcopy(net), x.clone().requires_grad_()) == 0
    assert step(count, copy.deepcopy(net).double(), x.double()) == 0
    assert step(count, copy.deepcopy(net), torch.randn(4, 4)) == 0
    assert step(count, copy.deepcopy(net), torch.randn(4, 3).t()) == 0
    assert step(count, copy.deepcopy(net), x, options={"num_threads": 1}) == 0
    assert step(count, copy.deepcopy(net).eval(), x) == 0
    with torch.autocast("cpu", torch.bfloat16):
        assert step(count, copy.deepcopy(net), x, tolerance=2e-2) == 0
    assert step(count, Scaled(lambda self, x: self.other(self.layer(x).tanh())), x) == 0
    assert step(count, net, x) == 1


def test_settings_that_choose_ops(count):
    def attend(self, x):
        y = self.layer(x).unflatten(-1, (2, 2)).transpose(1, 2)
        return F.scaled_dot_product_attention(y, y, y)

    net, x = Scaled(attend), torch.randn(2, 3, 4)
    assert [step(count, net, x) for _ in range(2)] == [0, 1]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert step(count, net, x) == 0


def test_functions_of_others_are_traced_each_time(count):
    """Their names in the graph do not tell what they do."""
    x = torch.randn(3, 4)
    for factor in (2.0, 3.0):

        class Times(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                return x * 5

            @staticmethod
            def backward(context, gradient, factor=factor):
                return gradient * factor

        assert step(count, Scaled(lambda self, x, times=Times: times.apply(self.layer(x))), x) == 0
        assert count["traced each time"] == 1
    for factor in (2.0, 3.0):
        with torch.library._scoped_library("cached_steps", "FRAGMENT") as library:
            library.define("times(Tensor x) -> Tensor")
            library.impl("times", lambda x, factor=factor: x * factor, "CompositeImplicitAutograd")
            assert step(count, Scaled(lambda self, x: torch.ops.cached_steps.times(self.layer(x))), x) == 0
            assert count["traced each time"] == 1
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("special_zeta", lambda x, y: x, "AutogradCPU")
        assert step(count, Scaled(linear), x) == 0
        assert count["traced each time"] == 1
    for times in (2, 3):
        inner = (lambda y: y.sin().sin()) if times == 2 else (lambda y: y.sin().sin().sin())
        net = Scaled(lambda self, x, inner=inner: checkpoint(inner, self.layer(x), use_reentrant=False))
        assert step(count, net, x) == 0


def test_inputs_that_share_memory_and_symbolic_sizes(count):
    net = Scaled(lambda self, x: self.layer(x))
    memory = torch.randn(6, 4)

    class Both(nn.Module):
        def forward(self, x, y):
            return net(x) * net(y)

    for _ in range(2):
        torch._dynamo.reset()
        compiled = torch.compile(Both(), backend="pipeline")
        compiled(memory[:3], memory[3:]).sum().backward()
        assert (count["cached"], count["traced each time"]) == (0, 1)
        count.clear()
        compiled = torch.compile(net, backend="pipeline", dynamic=True)
        compiled(memory).sum().backward()
        assert (count["cached"], count["traced each time"]) == (0, 1)
        count.clear()


def test_a_hook_that_keeps_something_else(count):
    """Backward then gets other tensors than the model's weights in their places."""
    net, x = Net().double().train(), torch.randn(2, 2, 6, 5).double()
    assert step(count, net, x) == 0
    reference = copy.deepcopy(net)
    torch._dynamo.reset()
    compiled = torch.compile(net, backend="pipeline")
    for _ in range(2):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            found = gradients(compiled, net, x)
        torch.testing.assert_close(found, gradients(reference, reference, x), rtol=1e-4, atol=1e-4)


def test_entries_that_are_lost_or_damaged(count, cache):
    net, x = Scaled(linear), torch.randn(3, 4)
    assert step(count, net, x) == 0
    sizes = {path: path.stat().st_size for path in outcomes(cache)}
    assert len(sizes) == 3  # the step, the code of forward and of backward
    found = []
    for entry in sizes:
        data = entry.read_bytes()
        entry.unlink()
        found.append(step(count, net, x))
        entry.write_bytes(data[:-1])
        found.append(step(count, net, x))
    assert sorted(found) == [0, 0, 1, 1, 1, 1]  # without the code it is made of the graph that is kept
    assert step(count, net, x) == 1
