"""Gradients through torch.compile: both graphs are compiled. What they consist of is in tests/gradients."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import pipeline


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Linear(4, 3)

    def forward(self, x):
        return self.head(F.max_pool2d(self.norm(self.conv(x)).relu(), 2).mean((2, 3)))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.norm = nn.Embedding(11, 8), nn.LayerNorm(8)
        self.attention, self.head = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 3)

    def forward(self, ids):
        x = self.norm(self.table(ids))
        return self.head((x + self.attention(x, x, x, need_weights=False)[0]).mean(1))


def losses(model, module, make, optimizer, steps=5):
    torch.manual_seed(1)
    optimizer = optimizer(module.parameters())
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(make()), torch.tensor([0, 2, 1]))
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return torch.stack(found)


@pytest.mark.parametrize(
    ("make_model", "make"),
    [(ConvNet, lambda: torch.randn(3, 2, 6, 5).double()), (Attention, lambda: torch.randint(0, 11, (3, 7)))],
)
@pytest.mark.parametrize(
    "optimizer",
    [lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), lambda p: torch.optim.AdamW(p, 0.01)],
    ids=["sgd", "adamw"],
)
def test_training_gives_the_losses_of_eager(make_model, make, optimizer, count):
    model = make_model().double().train()  # AdamW makes steps of what is left of gradients that are zero
    reference = copy.deepcopy(model)
    compiled = torch.compile(model, backend="pipeline")
    torch.testing.assert_close(
        losses(compiled, model, make, optimizer), losses(reference, reference, make, optimizer), rtol=1e-4, atol=1e-5
    )
    torch.testing.assert_close(model.state_dict(), reference.state_dict(), rtol=1e-3, atol=1e-4)
    assert dict(count) == {"graphs": 1, "backward": 1}


def test_evaluation_without_no_grad_is_bound_and_prepared(count):
    model = ConvNet().eval()
    compiled = torch.compile(model, backend="pipeline")
    x = torch.randn(3, 2, 6, 5)
    result = compiled(x)
    torch.testing.assert_close(result, model(x))
    assert result.requires_grad
    (executable,) = pipeline.executables(compiled)
    assert len(executable.signature.arguments) == 1
    assert executable.code.prepare is not None
    assert any("carry gradients" in remark.reason for remark in executable.remarks)
    assert count["backward"] == 1


def test_nothing_requires_gradients(count):
    model = ConvNet().eval().requires_grad_(False)
    x = torch.randn(3, 2, 6, 5)
    result = torch.compile(model, backend="pipeline")(x)
    torch.testing.assert_close(result, model(x))
    assert not result.requires_grad
    assert dict(count) == {"graphs": 1, "direct": 1}


def test_results_without_gradients_among_others():
    def function(x, y, n):
        z = x.detach() * 2
        return (x * y).sum(), z, x.argmax(), n + 1, x > 0, y.t(), None

    def results(function):
        x, y = torch.arange(6.0).view(2, 3).requires_grad_(), torch.ones(2, 3)
        found = function(x, y, 3)
        found[0].backward()
        return found, x.grad

    ours, theirs = results(torch.compile(function, backend="pipeline")), results(function)
    torch.testing.assert_close(ours, theirs)
    flags = [[one.requires_grad for one in found[0] if isinstance(one, torch.Tensor)] for found in (ours, theirs)]
    assert flags[0] == flags[1]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: (x[1:], x.t(), (x * w)[0]),
        lambda x, w: (x.clone().add_(1).mul_(w),),
        lambda x, w: (x * w, (x * w).t(), (x * w).detach()),
        lambda x, w: (torch.where(x > 0, x, w).softmax(0), x.sort(0).values),
        lambda x, w: (F.scaled_dot_product_attention(x[None, None], w[None, None], x[None, None], is_causal=True),),
        lambda x, w: (F.layer_norm(x, (3,), w[0], w[1]), F.gelu(x @ w.t())),
        lambda x, w: torch.split(x * w, 2),
        lambda x, w: (torch.cond(x.sum() > 0, lambda a, b: a * b, lambda a, b: a + b, (x, w)),),
    ],
)
def test_gradients(function):
    def gradients(function):
        torch.manual_seed(3)
        x, w = (torch.randn(3, 3, requires_grad=True) for _ in range(2))
        results = [one for one in function(x * 1, w * 1) if one.requires_grad]
        sum((one * torch.randn(one.shape)).sum() for one in results).backward()
        return [*results, x.grad, w.grad]

    compiled = torch.compile(function, backend="pipeline")
    torch.testing.assert_close(gradients(compiled), gradients(function), rtol=1e-4, atol=1e-5)


def test_an_input_that_is_written_to():
    def function(x, state):
        y = x * state.exp()
        state.mul_(2).add_(1)
        return y.sin() * state

    def run(function):
        x, state = torch.arange(4.0).requires_grad_(), torch.ones(4)
        first, second = function(x, state.clone()), function(x, state)
        (first * second).sum().backward()
        return first, second, state, x.grad

    torch.testing.assert_close(run(torch.compile(function, backend="pipeline")), run(function))


def test_dropout_is_the_same_forward_and_backward():
    model = nn.Sequential(nn.Linear(40, 50), nn.Dropout(0.5))
    compiled = torch.compile(model, backend="pipeline")
    x = torch.randn(30, 40, requires_grad=True)
    result = compiled(x)
    dropped = result == 0
    assert 0.3 < dropped.float().mean() < 0.7
    (gradient,) = torch.autograd.grad(result.sum(), x)
    torch.testing.assert_close(gradient, (~dropped * 2.0) @ model[0].weight, rtol=1e-4, atol=1e-4)
    assert not torch.equal(compiled(x) == 0, dropped)


def test_dropout_inside_of_attention():
    def function(x):
        return F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)

    x = torch.eye(8).view(1, 1, 8, 8).requires_grad_()
    result = torch.compile(function, backend="pipeline")(x)
    (gradient,) = torch.autograd.grad(result.sum(), x)
    shares = (torch.eye(8) * 8**-0.5).softmax(-1)
    kept = (result[0, 0] != 0) * 2.0
    torch.testing.assert_close(result[0, 0], shares * kept)
    assert gradient.isfinite().all()


def test_gradients_accumulate_and_hooks_run():
    model = nn.Linear(3, 2)
    compiled = torch.compile(model, backend="pipeline")
    seen = []
    model.weight.register_hook(lambda gradient: seen.append(gradient.clone()))
    for scale in (1, 2):
        compiled(torch.full((1, 3), float(scale))).sum().backward()
    torch.testing.assert_close(model.weight.grad, torch.full((2, 3), 3.0))
    assert len(seen) == 2


def test_gradients_of_sizes_that_change(count):
    model = ConvNet().train()
    compiled = torch.compile(model, backend="pipeline", dynamic=True)
    for rows in (3, 5, 4):
        reference = copy.deepcopy(model)
        x = torch.randn(rows, 2, 6, 5)
        for one in (compiled, reference):
            one(x).square().sum().backward()
        for ours, theirs in zip(model.parameters(), reference.parameters(), strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-4)
        model.zero_grad()
    assert count["graphs"] == 1


def test_autocast_around_training():
    model = nn.Sequential(nn.Linear(8, 6), nn.LayerNorm(6))
    x = torch.randn(4, 8)

    def run(function):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            result = function(x)
        result.float().sum().backward()
        return result, model[0].weight.grad

    compiled, eager = run(torch.compile(model, backend="pipeline")), run(model)
    assert compiled[0].dtype == eager[0].dtype
    torch.testing.assert_close(compiled, eager, rtol=3e-2, atol=3e-2)


def test_autocast_keeps_weights_in_float32():
    """Products and convolutions of bfloat16, with gradients that add up in weights of float32."""
    torch.manual_seed(0)
    model = ConvNet().train()
    reference = copy.deepcopy(model)
    compiled = torch.compile(model, backend="pipeline")

    def losses_of(function, module):
        torch.manual_seed(1)
        optimizer, found = torch.optim.AdamW(module.parameters(), 0.01), []
        for _ in range(5):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = F.cross_entropy(function(torch.randn(3, 2, 6, 5)), torch.tensor([0, 2, 1]))
            loss.backward()
            optimizer.step()
            found.append(loss.detach().float())
        return torch.stack(found)

    torch.testing.assert_close(losses_of(compiled, model), losses_of(reference, reference), rtol=3e-2, atol=3e-2)
    for parameter in model.parameters():
        assert parameter.dtype == parameter.grad.dtype == torch.float32


def test_checkpointed_parts():
    from torch.utils.checkpoint import checkpoint

    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 4))

    def function(x):
        return checkpoint(model, x, use_reentrant=False).sin()

    def run(function):
        model.zero_grad()
        function(torch.ones(2, 4)).sum().backward()
        return [parameter.grad for parameter in model.parameters()]

    torch.testing.assert_close(run(torch.compile(function, backend="pipeline")), run(function))


def test_second_gradients_are_refused():
    compiled = torch.compile(lambda x: (x * x).sin().sum(), backend="pipeline")
    x = torch.ones(3, requires_grad=True)
    (gradient,) = torch.autograd.grad(compiled(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        torch.autograd.grad(gradient.sum(), x)


def _kept(compiled):
    """How many results forward has."""
    return len(pipeline.executables(compiled)[0].signature.results)


def test_activations_are_kept_in_training_alone():
    model = nn.Sequential(nn.Linear(8, 6), nn.GELU(), nn.Linear(6, 6), nn.GELU(), nn.Linear(6, 2))
    x, found = torch.randn(3, 8), []
    for mode in (True, False):
        torch._dynamo.reset()
        model.train(mode).zero_grad()
        compiled = torch.compile(model, backend="pipeline")
        result = compiled(x)
        assert len(pipeline.executables(compiled)) == 1  # evaluation does not pay for backward
        result.square().sum().backward()
        assert len(pipeline.executables(compiled)) == 2
        found.append((_kept(compiled), [parameter.grad for parameter in model.parameters()]))
    (training, ours), (evaluation, theirs) = found
    assert training > 1 and evaluation == 1
    torch.testing.assert_close(ours, theirs)


def test_what_is_no_module_keeps_activations():
    def function(x, w):
        return (x @ w).tanh() @ w.t()

    x, w = torch.randn(3, 8), torch.randn(8, 8, requires_grad=True)
    compiled = torch.compile(function, backend="pipeline")
    compiled(x, w).sum().backward()
    assert _kept(compiled) > 1


def test_a_part_of_a_model_in_training():
    model = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2)).eval()
    model[2].train()
    model[0].requires_grad_(False)

    def step(x):
        return model(x).square().mean()

    compiled = torch.compile(step, backend="pipeline")
    compiled(torch.ones(3, 8)).backward()
    ours = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    step(torch.ones(3, 8)).backward()
    torch.testing.assert_close(ours, [parameter.grad for parameter in model.parameters()])


def test_backward_that_cannot_be_lowered_runs_in_eager(count):
    model = nn.EmbeddingBag(10, 4, mode="max")
    compiled = torch.compile(model, backend="pipeline", options={"fallback": "torch"})
    result = compiled(torch.tensor([[1, 2], [3, 3]]))

    def refuse(*_):
        raise pipeline.PipelineError("refused")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.frontend.dynamo.backward.decomposed", refuse)
        with pytest.warns(UserWarning, match="gradients in eager mode: refused"):
            result.sum().backward()
    assert count["backward in eager"] == 1
    assert model.weight.grad.sum() == 8


class _ConvolutionalAttention(nn.Module):
    """Queries, keys and values that convolutions give, which code lays out with channels innermost."""

    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(
            nn.Sequential(nn.Conv2d(16, 16, 1, bias=False), nn.BatchNorm2d(16)) for _ in range(3)
        )
        self.out = nn.Conv2d(16, 16, 1)

    def forward(self, x):
        q, k, v = (part(x).reshape(len(x), 2, 8, -1).permute(0, 1, 3, 2) for part in self.parts)
        attended = (q @ k.mT).softmax(-1) @ v
        return self.out(nn.functional.gelu(attended.permute(0, 1, 3, 2).reshape(x.shape)))


def test_backward_in_eager_of_what_code_laid_out(count):
    model = _ConvolutionalAttention().double()
    gradients = []
    with pytest.MonkeyPatch.context() as patch:

        def refuse(*_):
            raise pipeline.PipelineError("refused")

        patch.setattr("pipeline.frontend.dynamo.backward.decomposed", refuse)
        for called in (torch.compile(model, backend="pipeline"), model):
            x = torch.linspace(-1, 1, 2 * 16 * 4 * 4, dtype=torch.float64).reshape(2, 16, 4, 4).requires_grad_()
            model.zero_grad()
            called(x).sin().sum().backward()
            gradients.append([x.grad, *(parameter.grad for parameter in model.parameters())])
    assert count["backward in eager"] == 1
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-11)


def test_a_seed_gives_the_same_gradients_whatever_the_threads():
    model = nn.Sequential(nn.Linear(64, 96), nn.Dropout(0.3), nn.Tanh(), nn.Linear(96, 32), nn.Dropout(0.5))
    x, found = torch.randn(130, 64), []
    for threads in (1, 2, 2):
        torch._dynamo.reset()
        torch.manual_seed(5)
        model.zero_grad()
        result = torch.compile(model, backend="pipeline", options={"num_threads": threads})(x)
        result.square().sum().backward()
        found.append([result, *(parameter.grad for parameter in model.parameters())])
    for other in found[1:]:
        torch.testing.assert_close(other[0] != 0, found[0][0] != 0, rtol=0, atol=0)
        torch.testing.assert_close(other, found[0], rtol=1e-5, atol=1e-5)
