"""pipeline.capture: a model runs and is imported once, and is compiled with any options."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import Dim

import pipeline
from pipeline.compiler import STAGES
from pipeline.frontend import sources


class Net(nn.Module):
    """Counts how often Python runs it."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 6)
        self.norm = nn.BatchNorm1d(6)
        self.register_buffer("total", torch.zeros(()))
        self.runs = 0

    def forward(self, x):
        self.runs += 1
        y = torch.relu(self.norm(self.linear(x)))
        self.total += y.sum()
        return y.cumsum(0), y.sort(1).values


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net().eval().requires_grad_(False)


X = torch.randn(5, 8)


def test_python_and_the_import_run_once(net, monkeypatch):
    imports = []
    functionalize = sources.functionalize
    monkeypatch.setattr(sources, "functionalize", lambda *given: imports.append(1) or functionalize(*given))
    captured = pipeline.capture(net, (X,))
    runs = net.runs
    for options in ({}, {"precision": "bf16"}, {"num_threads": 1}, {"disable": ("form-groups",)}):
        captured.compile(**options)
    captured.compile().profile(X, repeats=1)
    assert net.runs == runs and len(imports) == 1


def test_each_compilation_is_that_of_compile(net):
    captured, stages = pipeline.capture(net, (X,)), []
    expected = pipeline.compile(net, (X,))
    for _ in range(2):
        found = captured.compile(observer=lambda stage, text: stages.append((stage, text)))
        assert [found.ir(stage) for stage in STAGES] == [expected.ir(stage) for stage in STAGES]
        assert found.remarks == expected.remarks
    assert [stage for stage, _ in stages] == [*STAGES, *STAGES]
    assert stages[: len(STAGES)] == stages[len(STAGES) :]


@pytest.mark.parametrize("options", [{}, {"fusion_rules": pipeline.load_rules("cpu").apart()}], ids=["fused", "apart"])
def test_results_weights_and_buffers_are_the_models(net, options):
    captured = pipeline.capture(net, (X,))
    captured.compile()
    exe = captured.compile(**options)
    for _ in range(2):
        net.total.zero_()
        got, total = exe(X), net.total.clone()
        net.total.zero_()
        torch.testing.assert_close((got, total), (net(X), net.total))
        net.linear.weight.mul_(2)  # and the executables are to see it


def test_sizes_stay_symbolic(net):
    captured = pipeline.capture(net, (X,), dynamic_shapes=({0: Dim.AUTO},))
    captured.compile()
    exe = captured.compile()
    for rows in (0, 1, 7):
        torch.testing.assert_close(exe(torch.ones(rows, 8)), net(torch.ones(rows, 8)))


def test_what_torch_runs():
    captured = pipeline.capture(torch.linalg.svdvals, (X,))
    for _ in range(2):
        torch.testing.assert_close(captured.compile(fallback="torch")(X), torch.linalg.svdvals(X))
        with pytest.raises(pipeline.UnsupportedOpError, match="svd"):
            captured.compile(fallback="error")


def test_mlir():
    captured = pipeline.capture("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }")
    for _ in range(2):
        torch.testing.assert_close(captured.compile()(torch.ones(2)), torch.ones(2))


def test_the_disk_cache_knows_it(net, monkeypatch, tmp_path):
    monkeypatch.setenv("PIPELINE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "1G")
    pipeline.compile(net, (X,))
    entries = set(tmp_path.rglob("*"))
    torch.testing.assert_close(pipeline.capture(net, (X,)).compile()(X), net(X))
    assert set(tmp_path.rglob("*")) == entries != set()


def test_options_in_the_wrong_place(net):
    with pytest.raises(pipeline.OptionError, match=r"^tune: an option of the compilation: give it to compile\(\)"):
        pipeline.capture(net, (X,), tune=1)
    captured = pipeline.capture(net, (X,))
    with pytest.raises(pipeline.OptionError, match="^capture: the model is captured already"):
        captured.compile(capture="script")
    with pytest.raises(pipeline.OptionError, match="^unknown option 'tuned'"):
        captured.compile(tuned=1)
    with pytest.raises(pipeline.OptionError, match="^capture='trace': expected one of"):
        pipeline.capture(net, (X,), capture="trace")
