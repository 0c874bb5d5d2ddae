"""Every module class of torch.nn through torch.compile: values, gradients and state are eager's."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from nn_cases import CASES, NOT_CALLED, RANDOM
from torch import nn

import pipeline

#: So many modules share a graph, without gradients and with them, which takes less time than a graph for each.
_TOGETHER, _TRAINED_TOGETHER = 14, 7

#: What has no lowering here: torch runs it, see `test_what_torch_runs`.
RUN_BY_TORCH = ("CTCLoss", "FractionalMaxPool2d", "FractionalMaxPool3d")

_NAMES = sorted(CASES.keys() - set(RUN_BY_TORCH))
_TRAINED = [name for name in _NAMES if not name.startswith("Lazy")]


def made(name: str) -> tuple[nn.Module, Any]:
    module, inputs = CASES[name]()
    with torch.no_grad():
        module(*inputs)  # lazy modules are ready after that
    return module, inputs


def test_all_classes_are_cases():
    assert set(nn.modules.__all__) == CASES.keys() | NOT_CALLED


class Together(nn.Module):
    def __init__(self, modules):
        super().__init__()
        self.all = nn.ModuleList(modules)

    def forward(self, inputs):
        return [module(*one) for module, one in zip(self.all, inputs, strict=True)]


@pytest.mark.parametrize("first", range(0, len(_NAMES), _TOGETHER))
def test_evaluation(first):
    names = _NAMES[first : first + _TOGETHER]
    cases = [made(name) for name in names]
    model = Together([module for module, _ in cases]).eval()
    inputs = [one for _, one in cases]
    compiled = torch.compile(model, backend="pipeline")
    with torch.no_grad():
        for name, ours, theirs in zip(names, compiled(inputs), model(inputs), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5, msg=lambda m, name=name: f"{name}: {m}")


@pytest.mark.parametrize("name", RUN_BY_TORCH)
def test_what_torch_runs(name):
    module, inputs = made(name)
    compiled = torch.compile(module.eval(), backend="pipeline", options={"fallback": "torch"})
    with torch.no_grad():
        ours, theirs = compiled(*inputs), module(*inputs)
    assert pipeline.executables(compiled)[0].fallbacks
    assert ours.shape == theirs.shape
    if name == "CTCLoss":  # the others pool where random numbers say
        torch.testing.assert_close(ours, theirs)


def _tensors(value: Any) -> list[torch.Tensor]:
    return [one for one in pytree.tree_leaves(value) if isinstance(one, torch.Tensor)]


def _trained(function: Any, modules: Any, inputs: list[Any]) -> list[tuple[Any, list[torch.Tensor | None], Any]]:
    """Of each of the modules that a function calls: its result, the gradients, and its state after that."""
    firsts = [given[0].clone() for given in inputs]
    for first in firsts:
        first.requires_grad_(first.is_floating_point())
    results = function([(first, *given[1:]) for first, given in zip(firsts, inputs, strict=True)])
    for result in _tensors(results):
        if result.requires_grad:
            result.square().sum().backward(retain_graph=True)
    return [
        (result, [first.grad, *(parameter.grad for parameter in module.parameters())], module.state_dict())
        for result, first, module in zip(results, firsts, modules, strict=True)
    ]


@pytest.mark.parametrize("first", range(0, len(_TRAINED), _TRAINED_TOGETHER))
def test_training(first):
    names = _TRAINED[first : first + _TRAINED_TOGETHER]
    cases = [made(name) for name in names]
    model, inputs = Together([module for module, _ in cases]).train(), [given for _, given in cases]
    reference = copy.deepcopy(model)
    ours = _trained(torch.compile(model, backend="pipeline"), model.all, inputs)
    theirs = _trained(reference, reference.all, inputs)
    for name, (our_result, our_gradients, our_state), (result, gradients, state) in zip(
        names, ours, theirs, strict=True
    ):
        pairs = list(zip(_tensors(our_result), _tensors(result), strict=True))
        assert all(mine.requires_grad == other.requires_grad and mine.shape == other.shape for mine, other in pairs), (
            name
        )
        if name in RANDOM:
            continue
        said = {"msg": lambda text, name=name: f"{name}: {text}"}
        torch.testing.assert_close(our_result, result, rtol=1e-4, atol=1e-5, **said)
        torch.testing.assert_close(our_gradients, gradients, rtol=1e-3, atol=1e-4, **said)
        torch.testing.assert_close(our_state, state, rtol=1e-4, atol=1e-5, **said)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("masks", ["none", "keys", "pairs", "both"])
def test_masks_of_fused_encoder_layers(norm_first, masks):
    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, norm_first=norm_first, activation="gelu").eval()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    x = torch.randn(2, 5, 8)
    given = {}
    if masks in ("keys", "both"):
        given["src_key_padding_mask"] = torch.tensor([[False] * 5, [False, False, False, True, True]])
    if masks in ("pairs", "both"):
        given["src_mask"] = torch.ones(5, 5).triu(1).bool()
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(layer, backend="pipeline")(x, **given), layer(x, **given))


@pytest.mark.parametrize(("need_weights", "average"), [(True, True), (True, False), (False, True)])
def test_weights_of_fused_attention(need_weights, average):
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    nn.init.normal_(attention.in_proj_bias)
    x = torch.randn(2, 5, 8)
    given = {"need_weights": need_weights, "average_attn_weights": average}
    with torch.no_grad():
        ours, theirs = (one(x, x, x, **given) for one in (torch.compile(attention, backend="pipeline"), attention))
    torch.testing.assert_close(ours, theirs)


def test_a_fused_encoder_with_a_padding_mask():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, batch_first=True), 2).eval()
    x, mask = torch.randn(2, 5, 8), torch.tensor([[False] * 5, [False, False, False, True, True]])
    with torch.no_grad():
        compiled = torch.compile(encoder, backend="pipeline")
        ours, theirs = (one(x, src_key_padding_mask=mask) for one in (compiled, encoder))
    torch.testing.assert_close(ours[~mask], theirs[~mask])  # what is masked differs in torch with any backend


def test_parametrizations():
    model = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
    compiled = torch.compile(model, backend="pipeline")
    x = torch.randn(2, 4)
    compiled(x).square().sum().backward()
    ours = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    model(x).square().sum().backward()
    torch.testing.assert_close(ours, [parameter.grad for parameter in model.parameters()])


@pytest.mark.parametrize("kind", [nn.Dropout, nn.AlphaDropout, nn.RReLU])
def test_random_modules_keep_their_distributions(kind):
    module = kind().train()
    compiled = torch.compile(module, backend="pipeline")
    x = torch.full((200, 200), -1.0 if kind is nn.RReLU else 1.0)
    with torch.no_grad():
        ours, theirs = compiled(x), module(x)
    torch.testing.assert_close(ours.mean(), theirs.mean(), atol=0.03, rtol=0)
    torch.testing.assert_close(ours.std(), theirs.std(), atol=0.03, rtol=0)
