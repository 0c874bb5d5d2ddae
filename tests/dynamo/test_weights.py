"""Parameters and buffers are weights of the compiled code, bound for each module that it is called for."""

from __future__ import annotations

import copy
import gc
import weakref

import pytest
import torch
from torch import nn

import pipeline


class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(5, width), nn.BatchNorm1d(width), nn.Linear(width, 3)

    def forward(self, x):
        return self.second(self.norm(self.first(x)).relu())


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, x):
        return x + self.linear(x).relu()


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def names(executable):
    return {weight.name for weight in executable.signature.weights}


def test_weights_are_bound_and_prepared():
    model = Net().eval()
    compiled = torch.compile(model, backend="pipeline")
    x = torch.randn(4, 5)
    torch.testing.assert_close(compiled(x), model(x))
    (executable,) = pipeline.executables(compiled)
    assert {"first.weight", "second.bias", "norm.running_var"} <= names(executable)
    assert executable.code.prepare is not None
    assert len(executable.signature.arguments) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model.first.weight.mul_(2),
        lambda model: model.load_state_dict(Net().state_dict()),
        lambda model: model.norm.running_var.add_(3),
        lambda model: setattr(model, "second", nn.Linear(8, 3)),
        lambda model: setattr(model.first, "bias", nn.Parameter(torch.randn(8))),
        lambda model: model.load_state_dict(Net().state_dict(), assign=True),
    ],
)
def test_changed_weights_are_seen(change):
    model = Net().eval()
    compiled = torch.compile(model, backend="pipeline")
    x = torch.randn(4, 5)
    compiled(x)
    for _ in range(2):
        change(model)
        for _ in range(2):
            torch.testing.assert_close(compiled(x), model(x))


def test_unchanged_weights_are_prepared_once(monkeypatch):
    model = Net().eval()
    compiled = torch.compile(model, backend="pipeline")
    x = torch.randn(4, 5)
    compiled(x)
    (executable,) = pipeline.executables(compiled)
    monkeypatch.setattr(executable, "refresh", lambda: pytest.fail("prepared again"))
    compiled(x)


def test_statistics_that_the_code_writes_prepare_nothing(monkeypatch):
    model = Net().train()
    reference = copy.deepcopy(model)
    compiled = torch.compile(model, backend="pipeline")
    x = torch.randn(4, 5)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), reference(x))
        torch.testing.assert_close(model.state_dict(), reference.state_dict())
        (executable,) = pipeline.executables(compiled)
        monkeypatch.setattr(executable, "refresh", lambda: pytest.fail("prepared again"))


def test_modules_of_one_class_share_the_code(count):
    models = [Net().eval() for _ in range(3)]

    @torch.compile(backend="pipeline")
    def run(model, x):
        return model(x)

    x = torch.randn(4, 5)
    for model in [*models, *models]:
        torch.testing.assert_close(run(model, x), model(x))
    assert count["graphs"] == 1
    executables = pipeline.executables(run)
    assert len(executables) == 3
    assert len({executable.objects for executable in executables}) == 1


def test_layers_compiled_one_by_one_share_the_code(count):
    model = nn.Sequential(*[Layer() for _ in range(4)])
    reference = copy.deepcopy(model)
    for layer in model:
        layer.compile(backend="pipeline")
    x = torch.randn(2, 6)
    for _ in range(2):
        torch.testing.assert_close(model(x), reference(x))
    assert count["graphs"] == 1
    assert len(pipeline.executables(model[0])) == 4


def test_weights_that_nobody_has_any_more_are_let_go():
    model = nn.Linear(5, 3)
    compiled = torch.compile(model, backend="pipeline")
    x = torch.randn(4, 5)
    gone = []
    for _ in range(4):
        compiled(x)
        gone.append(weakref.ref(model.weight))
        model.weight = nn.Parameter(torch.randn(3, 5))
        torch.testing.assert_close(compiled(x), model(x))
    gc.collect()
    assert [reference() for reference in gone[:-1]] == [None, None, None]


def test_a_module_that_goes_takes_its_code_along():
    model = nn.Linear(5, 3)
    compiled = torch.compile(model, backend="pipeline")
    compiled(torch.randn(4, 5))
    weight = weakref.ref(model.weight)
    del model, compiled
    gc.collect()
    assert weight() is None


def test_tied_and_shared_weights():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
            self.head.weight = self.table.weight
            self.register_buffer("row", self.table.weight.detach()[1])

        def forward(self, ids):
            return self.head(self.table(ids)) + self.head.weight[0, 0] + self.row.sum()

    model = Tied()
    compiled = torch.compile(model, backend="pipeline")
    ids = torch.tensor([[1, 6, 0]])
    torch.testing.assert_close(compiled(ids), model(ids))
    model.table.weight.add_(1)
    torch.testing.assert_close(compiled(ids), model(ids))


def test_a_weight_is_returned_as_it_is():
    class Returns(nn.Linear):
        def forward(self, x):
            return super().forward(x), self.weight, self.bias.view(3, 1)

    model = Returns(5, 3)
    _, weight, bias = torch.compile(model, backend="pipeline")(torch.randn(2, 5))
    assert weight is model.weight
    assert bias.data_ptr() == model.bias.data_ptr()
    assert bias.shape == (3, 1)


def test_buffers_that_are_written():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
            self.register_buffer("kept", torch.zeros(3, 4).t())
            self.register_buffer("last", torch.zeros(2))

        def forward(self, x):
            self.calls += 1
            self.kept[1] = x[:3]
            self.last.copy_(x[:2])
            return x * self.calls + self.kept.sum(), self.last

    model = Counts()
    reference = copy.deepcopy(model)
    compiled = torch.compile(model, backend="pipeline")
    for _ in range(3):
        x = torch.randn(4)
        torch.testing.assert_close(compiled(x), reference(x))
        torch.testing.assert_close(model.state_dict(), reference.state_dict())
    model.calls.fill_(10)
    model.kept.zero_()
    reference.load_state_dict(model.state_dict())
    x = torch.randn(4)
    torch.testing.assert_close(compiled(x), reference(x))
    assert compiled(x)[1] is model.last


def test_a_model_made_in_inference_mode():
    with torch.inference_mode():
        model = Net().eval()
        compiled = torch.compile(model, backend="pipeline")
        x = torch.randn(4, 5)
        compiled(x)
        model.first.weight.mul_(2)
        torch.testing.assert_close(compiled(x), model(x))


def test_functional_call():
    model = Net().eval()
    compiled = torch.compile(model, backend="pipeline")
    x = torch.randn(4, 5)
    compiled(x)
    for _ in range(2):
        others = {name: torch.randn_like(tensor).abs() for name, tensor in model.state_dict().items() if tensor.dim()}
        expected = torch.func.functional_call(model, others, (x,))
        given = {f"_orig_mod.{name}": tensor for name, tensor in others.items()}
        torch.testing.assert_close(torch.func.functional_call(compiled, given, (x,)), expected)
    torch.testing.assert_close(compiled(x), model(x))
