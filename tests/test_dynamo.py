"""torch.compile(model, backend="pipeline")."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters

import pipeline  # noqa: F401 - the backend is found through its entry point, not by this import


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    with torch.no_grad():
        yield
    torch._dynamo.reset()


@pytest.fixture
def count():
    """counters["pipeline"]: how many graphs were compiled, and how they are called."""
    counters["pipeline"].clear()
    return counters["pipeline"]


def test_the_backend_is_registered():
    assert "pipeline" in torch._dynamo.list_backends()


def test_a_module(count):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
    compiled = torch.compile(model, backend="pipeline")
    for _ in range(3):
        x = torch.randn(3, 4)
        torch.testing.assert_close(compiled(x), model(x))
    assert count["graphs"] == 1


def test_weights_may_change():
    model = nn.Linear(4, 2)
    compiled = torch.compile(model, backend="pipeline")
    x = torch.randn(3, 4)
    compiled(x)
    model.weight.mul_(2)
    torch.testing.assert_close(compiled(x), model(x))


def test_a_function_with_structured_results():
    def function(batch, n):
        return {"a": batch["x"] * n, "b": (batch["y"], None, n)}

    compiled = torch.compile(function, backend="pipeline")
    batch = {"x": torch.randn(3), "y": torch.randn(2)}
    result = compiled(batch, 2)
    torch.testing.assert_close(result["a"], batch["x"] * 2)
    assert result["b"] == (batch["y"], None, 2) or result["b"][0] is batch["y"]


def test_dynamic_sizes_are_compiled_once(count):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU()).eval()
    compiled = torch.compile(model, backend="pipeline", dynamic=True)
    for rows in (3, 5, 17, 2):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(compiled(x), model(x))
    assert count["graphs"] == 1


def test_a_number_that_changes():
    compiled = torch.compile(lambda x, n: x * n + n, backend="pipeline", dynamic=True)
    for n in (2, 3, 7):
        torch.testing.assert_close(compiled(torch.ones(4), n), torch.full((4,), 2.0 * n))


def test_input_mutation():
    def function(x, y):
        x.add_(y)
        y[1:].zero_()
        return x * 2

    compiled = torch.compile(function, backend="pipeline")
    ours, theirs = (torch.ones(3), torch.arange(3.0)), (torch.ones(3), torch.arange(3.0))
    torch.testing.assert_close(compiled(*ours), function(*theirs))
    torch.testing.assert_close(ours, theirs)


def test_buffer_mutation():
    model = nn.BatchNorm2d(3)
    compiled = torch.compile(model, backend="pipeline")
    x = torch.randn(2, 3, 4, 4)
    reference = nn.BatchNorm2d(3)
    torch.testing.assert_close(compiled(x), reference(x))
    torch.testing.assert_close(model.state_dict(), reference.state_dict())


def test_graph_break(count):
    def function(x):
        y = x * 2
        if y.sum() > 0:
            return torch.relu(y) + 1
        return y - 1

    compiled = torch.compile(function, backend="pipeline")
    for x in (torch.ones(3), -torch.ones(3)):
        torch.testing.assert_close(compiled(x), function(x))
    assert count["graphs"] >= 2


def test_views_and_aliases():
    def function(x):
        y = x.t()
        return y, x, y[0] + 1

    x = torch.randn(2, 3)
    result = torch.compile(function, backend="pipeline")(x)
    torch.testing.assert_close(result, function(x))
    assert result[1] is x


def test_options():
    compiled = torch.compile(nn.ReLU(), backend="pipeline", options={"cpu": "x86-64", "disable": ["cse"]})
    torch.testing.assert_close(compiled(-torch.ones(3)), torch.zeros(3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speed": 11}, "OptionError: unknown option 'speed'"),
        ({"cpu": "z80"}, "OptionError: cpu='z80'"),
        ({"disable": ["no-such-pass"]}, "OptionError: .*no-such-pass"),
    ],
)
def test_wrong_options(options, message):
    compiled = torch.compile(nn.ReLU(), backend="pipeline", options=options)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=message):
        compiled(torch.ones(3))


def test_a_model_without_gradients_needs_no_guard():
    model = nn.Linear(4, 2).requires_grad_(False)
    with torch.enable_grad():
        x = torch.ones(3, 4)
        torch.testing.assert_close(torch.compile(model, backend="pipeline")(x), model(x))
