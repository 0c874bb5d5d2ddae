"""Weights that move, that are written to and that are replaced: a call computes with what the model has now."""

from __future__ import annotations

import copy
import threading

import pytest
import torch
from changes import CHANGES
from models import FLOATS, MODELS, Nested
from torch import nn

import pipeline
from pipeline import PipelineError
from pipeline.runtime.weights import watch
from pipeline.runtime.weights.watch import PolledWatch, WordWatch


def agree(exe, model, twin, x):
    """The executable gives what the model in eager would, and leaves the same buffers; twin is a copy of the model."""
    twin.load_state_dict(model.state_dict())
    torch.testing.assert_close(exe(x), twin(x), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(model.state_dict(), twin.state_dict(), atol=1e-4, rtol=1e-4)


@pytest.fixture(params=["words", "polled"])
def way(request, monkeypatch):
    """How changes are noticed: by words of memory, or as where these cannot be found."""
    if request.param == "polled":
        monkeypatch.setattr(watch, "torch_layout", lambda: None)
    return {"words": WordWatch, "polled": PolledWatch}[request.param]


@pytest.mark.parametrize("name", MODELS)
def test_changes_are_noticed(name, way):
    make, x = MODELS[name]
    model = make().eval()
    exe = pipeline.compile(model, (x,))
    assert isinstance(exe._bound.watch, way)
    for change in CHANGES.values():
        change(model)
        junk = [torch.full((size,), 7.7) for size in (64, 300, 3200) for _ in range(50)]
        agree(exe, model, copy.deepcopy(model), x)
        agree(exe, model, copy.deepcopy(model), x)
        del junk


def test_tied_weights_that_come_apart_are_one_error():
    make, x = MODELS["tied"]
    model = make().eval()
    exe = pipeline.compile(model, (x,))
    model.head.weight = nn.Parameter(torch.randn(50, 64))
    with pytest.raises(PipelineError, match="weights embedding.weight and head.weight: were one tensor when"):
        exe(x)
    model.embedding.weight = model.head.weight
    torch.testing.assert_close(exe(x), model(x), atol=1e-4, rtol=1e-4)


def test_torch_refuses_to_swap_what_is_watched():
    model = nn.Linear(64, 300).eval()
    exe = pipeline.compile(model, (FLOATS,))
    model.weight = nn.Parameter(torch.randn(300, 64))
    torch.testing.assert_close(exe(FLOATS), model(FLOATS), atol=1e-4, rtol=1e-4)
    with pytest.raises(RuntimeError, match="weakref"):
        torch.utils.swap_tensors(model.weight, nn.Parameter(torch.randn(300, 64)))
    torch.testing.assert_close(exe(FLOATS), model(FLOATS), atol=1e-4, rtol=1e-4)


def test_plain_tensors_and_buffers_that_are_not_kept():
    model = Nested().eval()
    exe = pipeline.compile(model, (FLOATS,))
    model.plain = torch.randn(64, 64)
    torch.testing.assert_close(exe(FLOATS), model(FLOATS), atol=1e-4, rtol=1e-4)
    model.shift.mul_(3)
    torch.testing.assert_close(exe(FLOATS), model(FLOATS), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["nested", "not row-major"])
def test_nothing_is_bound_again_without_need(name, way):
    make, x = MODELS[name]
    model = make().eval()
    exe = pipeline.compile(model, (x,))
    exe(x)
    template = exe._bound.template
    for _ in range(3):
        exe(x)
        model.train().eval()
        for parameter in model.parameters():
            parameter.requires_grad_(False)
    assert exe._bound.template is template


def test_manual_notices_moves_alone():
    model = nn.Linear(64, 300).eval()
    before = model(FLOATS)
    exe = pipeline.compile(model, (FLOATS,), refresh="manual")
    model.share_memory()
    junk = [torch.full((300,), 7.7) for _ in range(200)]
    torch.testing.assert_close(exe(FLOATS), before)
    with torch.no_grad():
        model.weight.mul_(2)
    torch.testing.assert_close(exe(FLOATS), before)
    exe.refresh()
    torch.testing.assert_close(exe(FLOATS), model(FLOATS), atol=1e-4, rtol=1e-4)
    del junk


def test_a_weight_of_another_shape_or_dtype_is_one_error():
    model = nn.Linear(64, 300).eval()
    exe = pipeline.compile(model, (FLOATS,))
    weight = model.weight
    model.weight = nn.Parameter(torch.randn(300, 65))
    with pytest.raises(PipelineError, match=r"weight weight: expected float32\[300, 64\], is now float32\[300, 65\]"):
        exe(FLOATS)
    model.weight = nn.Parameter(weight.detach().double())
    with pytest.raises(PipelineError, match=r"weight weight: expected float32\[300, 64\], is now float64\[300, 64\]"):
        exe.refresh()
    model.weight = weight
    torch.testing.assert_close(exe(FLOATS), model(FLOATS), atol=1e-4, rtol=1e-4)
    del model.weight
    with pytest.raises(PipelineError, match=r"weight weight: expected .*, is now no tensor but None"):
        exe(FLOATS)


def test_what_is_not_counted_takes_a_refresh():
    with torch.inference_mode():
        model = nn.Linear(64, 300).eval().requires_grad_(False)
    exe = pipeline.compile(model, (FLOATS,))
    before = model(FLOATS)
    with torch.inference_mode():
        model.weight.mul_(2)
        torch.testing.assert_close(exe(FLOATS), before)
        exe.refresh()
        torch.testing.assert_close(exe(FLOATS), model(FLOATS), atol=1e-4, rtol=1e-4)


def test_rebind():
    model = nn.Linear(64, 300).eval()
    exe = pipeline.compile(model, (FLOATS,))
    other = nn.Linear(64, 300)
    exe.rebind({"weight": other.weight})
    mixed = torch.func.functional_call(model, {"weight": other.weight}, (FLOATS,))
    torch.testing.assert_close(exe(FLOATS), mixed)
    exe.rebind({"bias": other.bias})
    torch.testing.assert_close(exe(FLOATS), other(FLOATS))
    with torch.no_grad():
        other.weight.add_(1)
        model.weight.add_(9)
    torch.testing.assert_close(exe(FLOATS), other(FLOATS), atol=1e-4, rtol=1e-4)
    for wrong, message in (
        ({"weigth": other.weight}, "weight weigth: the model has none of that name; it has bias, weight"),
        ({"bias": other.weight}, "weight bias: expected"),
    ):
        with pytest.raises(PipelineError, match=message):
            exe.rebind(wrong)
        torch.testing.assert_close(exe(FLOATS), other(FLOATS), atol=1e-4, rtol=1e-4)


def test_functional_call_on_a_model_around_the_executable():
    inner = Nested().eval()
    exe = pipeline.compile(inner, (FLOATS,))
    outer = nn.Sequential(inner)
    weights = {name: torch.rand_like(tensor) for name, tensor in outer.named_parameters()}
    wanted = torch.func.functional_call(outer, weights, (FLOATS,))
    before = inner(FLOATS)
    inner.forward = exe
    torch.testing.assert_close(torch.func.functional_call(outer, weights, (FLOATS,)), wanted)
    torch.testing.assert_close(outer(FLOATS), before)


def test_threads_call_while_weights_change():
    """Each result is that of the weights at some time, whole: all elements of a weight are one number here."""
    model = nn.Linear(64, 64, bias=False).eval()
    nn.init.constant_(model.weight, 1.0)
    x = torch.ones(2, 64)
    exe = pipeline.compile(model, (x,))
    seen, stop = [], threading.Event()

    def call():
        while not stop.is_set():
            seen.append(exe(x))

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(2, 40):
        model.weight = nn.Parameter(torch.full((64, 64), float(number)))
    stop.set()
    for thread in threads:
        thread.join()
    assert seen and all(bool((one == one[0, 0]).all()) for one in seen)
    torch.testing.assert_close(exe(x), model(x))
