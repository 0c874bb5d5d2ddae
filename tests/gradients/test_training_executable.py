"""pipeline.compile(model, args, training=True): results carry gradients, weights change, errors are one clear one."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

import pipeline


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Linear(16, 4)

    def forward(self, x, scale=1.0):
        return {"logits": self.last(F.dropout(self.norm(self.first(x)).relu(), 0.0, self.training)) * scale}


def steps(function, model, rows=(5, 5, 5)):
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.5)
    losses = []
    for number, count in enumerate(rows):
        x = torch.randn(count, 6, generator=torch.Generator().manual_seed(number)).double()
        optimizer.zero_grad()
        loss = F.cross_entropy(function(x)["logits"], torch.arange(count) % 4)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, model.state_dict(), [parameter.grad for parameter in model.parameters()]


def test_steps_are_those_of_eager():
    model = Net().double()
    reference = copy.deepcopy(model)
    before, draws = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    compiled = pipeline.compile(model, (torch.randn(5, 6).double(),), training=True)
    torch.testing.assert_close(model.state_dict(), before)  # compilation is no call
    assert [len(each.kernels) > 0 for each in compiled.executables] == [True]
    torch.set_rng_state(draws)
    torch.testing.assert_close(steps(compiled, model), steps(reference, reference))
    assert len(compiled.executables) == 2
    assert compiled.kernels and compiled.remarks and "2 executables" in repr(compiled)
    model.eval()
    with torch.no_grad():
        torch.testing.assert_close(compiled(torch.ones(5, 6).double()), model(torch.ones(5, 6).double()))


def test_symbolic_sizes_and_arguments_by_name():
    model = Net().double()
    reference = copy.deepcopy(model)
    rows = Dim("rows", min=2, max=64)
    x = torch.randn(7, 6).double()
    compiled = pipeline.compile(model, (), {"x": x}, dynamic_shapes={"x": {0: rows}}, training=True)
    assert not hasattr(x, "_dynamo_dynamic_indices")
    forward = compiled.executables
    ours = steps(lambda x: compiled(x=x), model, (5, 3, 9))
    torch.testing.assert_close(ours, steps(reference, reference, (5, 3, 9)))
    assert compiled.executables[:1] == forward and len(compiled.executables) == 2


def test_functions_and_recurrent_nets():
    net = nn.GRU(3, 4)
    x = torch.randn(5, 2, 3, requires_grad=True)

    def gradients(function):
        return torch.autograd.grad(function(x).square().sum(), [x, *net.parameters()])

    def last(x):
        return net(x)[0][-1]

    torch.testing.assert_close(gradients(pipeline.compile(last, (x,), training=True)), gradients(last))


def test_it_is_not_saved(tmp_path):
    compiled = pipeline.compile(torch.sin, (torch.ones(3, requires_grad=True),), training=True)
    for save in (lambda: compiled.save(tmp_path / "model.pipeline"), lambda: pickle.dumps(compiled)):
        with pytest.raises(pipeline.PipelineError, match="training=True cannot be saved"):
            save()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("model", "options", "error", "message"),
    [
        (torch.sin, {"precison": "bf16"}, pipeline.OptionError, "did you mean 'precision'"),
        (torch.sin, {"capture": "script"}, pipeline.OptionError, "capture: training=True does without"),
        ("net.mlir", {}, pipeline.PipelineError, "takes an nn.Module or a function, not a str"),
        (lambda x: x * 2 if x.sum() > 0 else x, {}, pipeline.CaptureError, "as one graph"),
        (lambda x: torch.linalg.eigvals(x), {"fallback": "error"}, pipeline.UnsupportedOpError, "linalg_eig"),
        (lambda x: x, {"dynamic_shapes": {"y": {0: Dim("n")}}}, pipeline.CaptureError, "as one graph"),
    ],
)
def test_refused(model, options, error, message):
    with pytest.raises(error, match=message):
        pipeline.compile(model, (torch.ones(2, 2, requires_grad=True),), training=True, **options)
