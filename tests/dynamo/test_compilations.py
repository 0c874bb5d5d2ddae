"""How often torch.compile compiles, with which options, and what it hands out."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from host import BF16_DOTS
from torch import nn

import pipeline
from pipeline.errors import PipelineError
from pipeline.frontend.dynamo import modes


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 6)

    def forward(self, x):
        return self.linear(x).softmax(-1).sum(-2)


@pytest.mark.parametrize(("dynamic", "graphs"), [(None, [1, 2, 2, 2]), (True, [1, 1, 1, 1]), (False, [1, 2, 3, 4])])
def test_sizes(dynamic, graphs, count):
    model = Net()
    compiled = torch.compile(model, backend="pipeline", dynamic=dynamic)
    for rows, expected in zip((3, 5, 17, 2), graphs, strict=True):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(compiled(x), model(x))
        assert count["graphs"] == expected


def test_ranks_and_dtypes(count):
    def function(x):
        return x.exp().sum(-1)

    compiled = torch.compile(function, backend="pipeline", dynamic=True)
    kinds = [(3, 4), (5, 6), (2, 3, 4), (4, 3, 2)]
    for size in kinds:
        for dtype in (torch.float32, torch.float64):
            x = torch.randn(size, dtype=dtype)
            torch.testing.assert_close(compiled(x), function(x))
    assert count["graphs"] == 4


def test_two_sizes_at_once(count):
    def function(x, y):
        return torch.cat([x, y], 1).mean(0) + x.shape[1]

    compiled = torch.compile(function, backend="pipeline")
    for rows, left, right in ((3, 4, 5), (6, 7, 8), (2, 9, 4), (5, 5, 5)):
        x, y = torch.randn(rows, left), torch.randn(rows, right)
        torch.testing.assert_close(compiled(x, y), function(x, y))
    assert count["graphs"] == 2


@pytest.mark.parametrize("values", [(2, 3, 7), (0.5, 0.25, 3.0), (True, False, True)])
def test_numbers_among_the_arguments(values, count):
    def function(x, n):
        return x * n + (n if n > 0 else 1)

    compiled = torch.compile(function, backend="pipeline")
    for value in values:
        torch.testing.assert_close(compiled(torch.ones(4), value), function(torch.ones(4), value))
    assert count["graphs"] <= len(values)


def test_sizes_among_the_results(count):
    """As a cache that counts what it has seen: the size that dynamo passes in is a result, and one made of it."""

    class Cache:
        def __init__(self, x):
            self.seen = 0 + x.shape[0]
            self.next = 2 * x.shape[0] + 1
            self.values = x * 2

    compiled = torch.compile(lambda x: Cache(x), backend="pipeline", dynamic=True)
    for rows in (3, 5):
        cache = compiled(torch.ones(rows, 2))
        assert (cache.seen, cache.next, cache.values.shape[0]) == (rows, 2 * rows + 1, rows)
    assert count["graphs"] == 1


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_modes(mode, monkeypatch):
    monkeypatch.setitem(modes.MODES, mode, {**modes.MODES[mode], **({"tune": 1} if "max" in mode else {})})
    model = Net()
    x = torch.randn(3, 4)
    torch.testing.assert_close(torch.compile(model, backend="pipeline", mode=mode)(x), model(x))


def test_modes_choose_options():
    assert modes.options_of(None, "max-autotune").tune == modes.TUNE_SECONDS
    assert modes.options_of(None, "reduce-overhead") == modes.options_of(None, None)
    assert modes.options_of({"precision": "bf16", "tune": 3}, None).tune == 3


def test_an_unknown_mode_is_refused():
    compiled = torch.compile(Net(), backend="pipeline", mode="fastest")
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="OptionError: mode='fastest': expected one of"):
        compiled(torch.ones(3, 4))


def test_precision():
    model = nn.Linear(64, 64)
    x = torch.randn(32, 64)
    exact = model.double()(x.double())
    model.float()
    errors = []
    for precision in ("f32", "bf16"):
        torch._dynamo.reset()
        result = torch.compile(model, backend="pipeline", options={"precision": precision})(x)
        errors.append((result - exact).abs().max().item())
    assert errors[0] < 1e-5 and errors[1] < 0.1
    assert (errors[1] > 1e-5) == BF16_DOTS  # without them nothing is gained by rounding


def test_executables_of_a_module():
    model = Net()
    compiled = torch.compile(model, backend="pipeline")
    assert pipeline.executables(compiled) == []
    x = torch.randn(3, 4)
    compiled(x)
    (executable,) = pipeline.executables(compiled)
    assert "linalg" in executable.ir("linalg")
    assert executable.kernels and executable.remarks is not None
    torch.testing.assert_close(executable(x)[0], model(x))
    assert executable.profile(x, repeats=1) is not None
    torch._dynamo.reset()


def test_executables_of_functions_and_of_graph_breaks():
    @torch.compile(backend="pipeline")
    def function(x):
        y = x.exp()
        torch._dynamo.graph_break()
        return y.sin()

    other = torch.compile(lambda x: x.cos(), backend="pipeline")
    function(torch.ones(3))
    other(torch.ones(3))
    assert [exe.kernels[0].words for exe in pipeline.executables(function)] == [("exp",), ("sin",)]
    assert [exe.kernels[0].words for exe in pipeline.executables(other)] == [("cos",)]


def test_executables_of_one_class_are_told_apart():
    models = [torch.compile(Net(), backend="pipeline") for _ in range(2)]
    for model in models:
        model(torch.ones(3, 4))
    assert [len(pipeline.executables(model)) for model in models] == [1, 1] or pipeline.executables(models[0])


def test_executables_of_what_dynamo_compiled_before():
    def function(x):
        return x.exp()

    first, second = (torch.compile(function, backend="pipeline") for _ in range(2))
    first(torch.ones(3))
    second(torch.ones(3))
    assert pipeline.executables(first) == pipeline.executables(second) != []


def test_executables_of_a_module_compiled_in_place():
    model = Net()
    model.compile(backend="pipeline")
    model(torch.ones(3, 4))
    assert len(pipeline.executables(model)) == 1


@pytest.mark.parametrize("thing", [nn.ReLU(), len, 3])
def test_executables_of_something_else(thing):
    with pytest.raises(PipelineError, match="expected what torch.compile returned"):
        pipeline.executables(thing)


def test_importing_pipeline_imports_no_torch():
    code = (
        "import sys, pipeline; assert 'torch' not in sys.modules; pipeline.executables; assert 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
