"""What people write around a model that they train: losses, weights and gradients are eager's, in float64.

A way gets what compiles (or what leaves a model as it is) and gives what it has computed.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations
from torch.optim import swa_utils
from torch.utils.checkpoint import checkpoint

Compiler = Callable[[Any], Any]
Batches = Iterable[tuple[Tensor, Tensor]]

WAYS: dict[str, Callable[[Compiler], Any]] = {}


def way(function: Callable[[Compiler], Any]) -> Callable[[Compiler], Any]:
    """Has a function tried as a test of its own."""
    WAYS[function.__name__] = function
    return function


class Dense(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(F.relu(self.norm(self.first(x))))


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second, self.last = nn.Conv2d(8, 4, 3, stride=2), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(F.gelu(self.second(F.silu(self.norm(self.first(x))))).mean((2, 3)))


def rows(*counts: int) -> Batches:
    return [(torch.randn(count, 6).double(), torch.randint(0, 4, (count,))) for count in counts or (5, 5, 5)]


def images(*shapes: tuple[int, int, int]) -> Batches:
    shapes = shapes or ((4, 9, 8),) * 3
    return [(torch.randn(n, 3, h, w).double(), torch.randint(0, 4, (n,))) for n, h, w in shapes]


def sgd(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD([one for one in module.parameters() if one.requires_grad], 0.1, momentum=0.5)


def trained(
    model: Callable[[Tensor], Tensor],
    module: nn.Module,
    batches: Batches,
    *,
    optimizer: torch.optim.Optimizer | None = None,
    before_step: Callable[[], Any] = lambda: None,
) -> Any:
    """The losses of some steps, and what the module holds after them."""
    optimizer = optimizer or sgd(module)
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        before_step()
        optimizer.step()
        losses.append(loss.detach())
    return losses, held(module)


def held(module: nn.Module) -> Any:
    gradients = [None if one.grad is None else one.grad.clone() for one in module.parameters()]
    return copy.deepcopy(module.state_dict()), gradients


@way
def batches_of_several_sizes(compiled: Compiler) -> Any:
    model = Dense().double()
    return trained(compiled(model), model, rows(5, 5, 3, 2, 7))


@way
def images_of_several_sizes(compiled: Compiler) -> Any:
    model = Convolutions().double()
    return trained(compiled(model), model, images((4, 9, 8), (4, 9, 8), (1, 9, 8), (2, 11, 7), (3, 8, 8)))


@way
def a_first_batch_of_one(compiled: Compiler) -> Any:
    model = Convolutions().double()
    return trained(compiled(model), model, images((1, 9, 8), (4, 9, 8), (1, 9, 8)))


@way
def channels_last(compiled: Compiler) -> Any:
    model = Convolutions().double().to(memory_format=torch.channels_last)
    batches = [(x.to(memory_format=torch.channels_last), y) for x, y in images()]
    return trained(compiled(model), model, batches)


@way
def gradients_that_accumulate(compiled: Compiler) -> Any:
    model = Dense().double()
    run, optimizer = compiled(model), sgd(model)
    for number, (x, y) in enumerate(rows(5, 5, 5, 5)):
        (F.cross_entropy(run(x), y) / 2).backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
    return held(model)


@way
def clipped_gradients(compiled: Compiler) -> Any:
    model = Dense().double()
    return trained(
        compiled(model), model, rows(), before_step=lambda: nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    )


@way
def rates_of_a_scheduler(compiled: Compiler) -> Any:
    model = Dense().double()
    optimizer = torch.optim.SGD(model.parameters(), lr=torch.tensor(0.1), momentum=0.5)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=6, cycle_momentum=False)
    step, model_call = compiled(optimizer.step), compiled(model)
    for x, y in rows(5, 5, 5, 5):
        optimizer.zero_grad()
        F.cross_entropy(model_call(x), y).backward()
        step()
        scheduler.step()
    return held(model), scheduler.get_last_lr()


@way
def losses_that_are_scaled(compiled: Compiler) -> Any:
    """The third step has an infinite gradient, and is left out."""
    model = Dense().double()
    optimizer, scaler = sgd(model), torch.amp.GradScaler("cpu", growth_interval=2)
    call, scales = compiled(model), []
    for number, (x, y) in enumerate(rows(5, 5, 5, 5, 5)):
        optimizer.zero_grad()
        loss = F.cross_entropy(call(x), y)
        scaler.scale(loss * (float("inf") if number == 2 else 1.0)).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert len(set(scales)) > 1
    return model.state_dict(), scales


@way
def layers_frozen_from_some_step_on(compiled: Compiler) -> Any:
    model = Dense().double()
    run = compiled(model)
    before = trained(run, model, rows())
    model.first.requires_grad_(False)
    return before, trained(run, model, rows())


@way
def norms_frozen(compiled: Compiler) -> Any:
    model = Convolutions().double()
    model.norm.eval()
    return trained(compiled(model), model, images())


@way
def fine_tuning_in_evaluation_mode(compiled: Compiler) -> Any:
    model = Convolutions().double().eval()
    return trained(compiled(model), model, images())


@way
def evaluation_in_between(compiled: Compiler) -> Any:
    model = Convolutions().double()
    run, optimizer, found = compiled(model), sgd(model), []
    for _ in range(2):
        model.train()
        found.append(trained(run, model, images(), optimizer=optimizer))
        model.eval()
        for guard in (torch.no_grad, torch.inference_mode):
            with guard():
                found.append([run(x).clone() for x, _ in images()])
    return found


@way
def a_loss_that_is_compiled_too(compiled: Compiler) -> Any:
    model = Dense().double()
    run = compiled(lambda x, y: F.cross_entropy(model(x), y, label_smoothing=0.1))
    for x, y in rows():
        run(x, y).backward()
    return held(model)


@way
def a_whole_step_in_one_function(compiled: Compiler) -> Any:
    model = Dense().double()
    optimizer = sgd(model)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = compiled(step)
    return [run(x, y) for x, y in rows()], held(model)


@way
def examples_made_to_mislead(compiled: Compiler) -> Any:
    model = Dense().double().eval()
    run, ((x, y),) = compiled(model), rows(5)
    for _ in range(3):
        x = x.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(F.cross_entropy(run(x), y), x)
        x = x + 0.1 * gradient.sign()
    return x.detach()


@way
def backward_twice(compiled: Compiler) -> Any:
    model = Dense().double()
    ((x, y),) = rows(5)
    loss = F.cross_entropy(compiled(model)(x), y)
    loss.backward(retain_graph=True)
    loss.backward()
    return held(model)


@way
def backward_twice_behind_backward_once(compiled: Compiler) -> Any:
    model = Dense().double()
    run, ((x, y),) = compiled(model), rows(5)
    F.cross_entropy(run(x), y).backward()
    loss = F.cross_entropy(run(x), y)
    first = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
    loss.backward()
    return [first, held(model)]


@way
def two_calls_and_one_backward(compiled: Compiler) -> Any:
    model = Dense().double()
    run = compiled(model)
    sum(F.cross_entropy(run(x), y) for x, y in rows()).backward()
    return held(model)


@way
def tied_weights(compiled: Compiler) -> Any:
    model = nn.Sequential(nn.Embedding(11, 8), nn.Tanh(), nn.Linear(8, 11, bias=False)).double()
    model[2].weight = model[0].weight
    ids = [torch.randint(0, 11, (7,)) for _ in range(3)]
    return trained(compiled(model), model, [(one, one) for one in ids])


@way
def sparse_gradients_of_embeddings(compiled: Compiler) -> Any:
    model = nn.Sequential(nn.Embedding(11, 8, sparse=True), nn.Linear(8, 4)).double()
    run = compiled(model)
    for _ in range(2):
        ids = torch.randint(0, 11, (7,))
        F.cross_entropy(run(ids), ids % 4).backward()
    return [one.grad.to_dense() for one in model.parameters()]


@way
def weight_norm(compiled: Compiler) -> Any:
    model = nn.Sequential(parametrizations.weight_norm(nn.Linear(6, 8)), nn.ReLU(), nn.Linear(8, 4)).double()
    return trained(compiled(model), model, rows())


@way
def spectral_norm(compiled: Compiler) -> Any:
    model = nn.Sequential(parametrizations.spectral_norm(nn.Linear(6, 8)), nn.ReLU(), nn.Linear(8, 4)).double()
    return trained(compiled(model), model, rows())


class Straight(torch.autograd.Function):
    """Signs, whose gradient is that of tanh."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return gradient * (1 - x.tanh() ** 2)


@way
def an_autograd_function_of_ones_own(compiled: Compiler) -> Any:
    class Binary(Dense):
        def forward(self, x: Tensor) -> Tensor:
            return self.last(Straight.apply(self.first(x)))

    model = Binary().double()
    return trained(compiled(model), model, rows())


@way
def hooks(compiled: Compiler) -> Any:
    model, seen = Dense().double(), []
    model.first.register_full_backward_hook(lambda _, before, after: seen.append(after[0].sum()))
    model.norm.register_forward_hook(lambda _, given, result: result * 2)
    model.last.weight.register_hook(lambda gradient: gradient * 2)
    model.last.bias.register_post_accumulate_grad_hook(lambda one: seen.append(one.grad.sum()))
    return trained(compiled(model), model, rows()), seen


@way
def parts_computed_again(compiled: Compiler) -> Any:
    class Checkpointed(Dense):
        def forward(self, x: Tensor) -> Tensor:
            hidden = checkpoint(lambda x: self.first(x).tanh(), x, use_reentrant=False)
            return checkpoint(self.last, hidden, use_reentrant=True)

    model = Checkpointed().double()
    return trained(compiled(model), model, rows())


@way
def weights_loaded_in_between(compiled: Compiler) -> Any:
    model = Convolutions().double()
    run, optimizer = compiled(model), sgd(model)
    before = trained(run, model, images(), optimizer=optimizer)
    kept = copy.deepcopy(model.state_dict())
    trained(run, model, images(), optimizer=optimizer)
    model.load_state_dict(kept)
    return before, trained(run, model, images(), optimizer=optimizer)


@way
def averaged_weights(compiled: Compiler) -> Any:
    model = Dense().double()
    average = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))
    return trained(compiled(model), model, rows(), before_step=lambda: average.update_parameters(model)), held(average)


@way
def parameters_as_arguments(compiled: Compiler) -> Any:
    model = Dense().double().eval()
    named = {name: one.detach().clone() for name, one in model.named_parameters()}

    def loss(named: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(torch.func.functional_call(model, named, (x,)), y)

    each = torch.func.vmap(torch.func.grad(lambda named, x, y: loss(named, x[None], y[None])), (None, 0, 0))
    ((x, y),) = rows(5)
    return compiled(torch.func.grad(loss))(named, x, y), compiled(each)(named, x, y)


@way
def second_derivatives_inside(compiled: Compiler) -> Any:
    return compiled(torch.func.hessian(lambda x: (x.sin() * x.sum()).sum()))(torch.arange(4).double())


@way
def two_nets_against_each_other(compiled: Compiler) -> Any:
    maker = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 6)).double()
    judge = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(), nn.Linear(8, 1)).double()
    make, say, first, second = compiled(maker), compiled(judge), sgd(maker), sgd(judge)
    for x, _ in rows():
        second.zero_grad()
        made = make(x[:, :3])
        (F.softplus(-say(x)) + F.softplus(say(made.detach()))).mean().backward()
        second.step()
        first.zero_grad()
        F.softplus(-say(made)).mean().backward()
        first.step()
    return held(maker), held(judge)


@way
def modules_compiled_one_by_one(compiled: Compiler) -> Any:
    model = Dense().double()
    model.first, model.last = compiled(model.first), compiled(model.last)
    losses, (state, gradients) = trained(model, model, rows())
    return losses, list(state.values()), gradients


@way
def breaks_and_branches(compiled: Compiler) -> Any:
    class Branching(Dense):
        def forward(self, x: Tensor) -> Tensor:
            hidden = self.first(x)
            hidden = hidden.relu() if hidden.sum() > 0 else hidden.tanh()
            return self.last(hidden) + hidden.sum()

    model = Branching().double()
    return trained(compiled(model), model, rows(5, 5, 5, 5, 5))


@way
def statistics_that_are_written(compiled: Compiler) -> Any:
    class Running(Dense):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x: Tensor) -> Tensor:
            result = super().forward(x)
            self.mean.mul_(0.9).add_(result.detach().mean(0), alpha=0.1)
            return result - self.mean

    model = Running().double()
    return trained(compiled(model), model, rows())


@way
def results_in_dictionaries(compiled: Compiler) -> Any:
    class WithLoss(Dense):
        def forward(self, x: Tensor, y: Tensor | None = None) -> Any:
            scores = super().forward(x)
            return {"scores": scores, "loss": None if y is None else F.cross_entropy(scores, y), "rest": [(scores, 3)]}

    model = WithLoss().double()
    run, found = compiled(model), []
    for x, y in rows():
        result = run(x, y=y)
        (result["loss"] + result["rest"][0][0].mean()).backward()
        found += [result["loss"].detach(), run(x)["scores"].detach()]
    return found, held(model)


@way
def gradients_that_lie_otherwise(compiled: Compiler) -> Any:
    model = Dense().double()
    run, ((x, _),) = compiled(model), rows(5)
    run(x).sum().backward()
    (run(x).t() * torch.arange(20.0).view(4, 5)).sum().backward()
    run(x)[:, ::2].sum().backward()
    return held(model)


@way
def a_list_of_parameters(compiled: Compiler) -> Any:
    weights = nn.ParameterList([torch.full((6, 6), 0.1 * number).double() for number in range(3)])
    ((x, _),) = rows(5)
    compiled(lambda x: functools.reduce(lambda a, weight: torch.tanh(a @ weight), weights, x))(x).sum().backward()
    return held(weights)


@way
def a_closure_that_is_called_again(compiled: Compiler) -> Any:
    model = Dense().double()
    run, ((x, y),) = compiled(model), rows(5)
    optimizer = torch.optim.LBFGS(model.parameters(), 0.1, max_iter=3)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(run(x), y)
        loss.backward()
        return loss

    return [optimizer.step(closure).detach() for _ in range(2)], held(model)


@way
def hooks_on_what_is_saved(compiled: Compiler) -> Any:
    model = Dense().double()
    run, ((x, y),) = compiled(model), rows(5)
    with torch.autograd.graph.saved_tensors_hooks(lambda saved: saved.clone(), lambda saved: saved):
        loss = F.cross_entropy(run(x), y)
    loss.backward()
    return held(model)


@pytest.mark.parametrize("name", WAYS)
def test_as_in_eager(name: str) -> None:
    found = []
    for compiler in (functools.partial(torch.compile, backend="pipeline"), lambda model: model):
        torch.manual_seed(3)
        found.append(WAYS[name](compiler))
    torch.testing.assert_close(*found, rtol=1e-9, atol=1e-9)
