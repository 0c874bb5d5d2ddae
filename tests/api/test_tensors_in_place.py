"""Tensors are read and written where they lie, where that is possible."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch
from api_models import Calls, Linear, check
from torch import nn

import pipeline
from pipeline import PipelineError


def non_contiguous():
    x = torch.arange(24.0).reshape(4, 6)
    return {
        "transposed": x.t(),
        "strided": x[::2, ::3],
        "offset": x[1:, 1:],
        "expanded": torch.arange(3.0).expand(4, 3),
        "column": x[:, 2],
        "zero-size": x[:0],
        "zero-size inside": x[:, :0],
        "scalar": x[1, 2],
        "channels last": torch.randn(1, 3, 4, 4).to(memory_format=torch.channels_last),
        "negative": torch._neg_view(x),
    }


@pytest.mark.parametrize("name", list(non_contiguous()))
def test_tensors_that_are_not_row_major(name):
    x = non_contiguous()[name]
    check(lambda x: (x * 2 + 1, x.sum()), x)


def test_overlapping_views_as_two_arguments():
    x = torch.arange(10.0)
    check(lambda a, b: a * b, x[:6], x[4:])


@pytest.mark.parametrize("fast", [True, False])
def test_arguments_are_read_in_place(fast, monkeypatch):
    x = torch.ones(4)
    exe = pipeline.compile(Calls(lambda x: x * 2), (x,))
    if fast:  # where Python fills the slots
        monkeypatch.setattr(exe._fast, "_words", None)
    owner, name = (exe._bound.watch, "run") if fast else (exe, "_main")
    entry, seen = getattr(owner, name), []

    def spy(slots, *record):
        if slots:
            seen.extend((ctypes.c_int64 * exe._layout.slots).from_address(slots))
        return entry(slots, *record)

    monkeypatch.setattr(owner, name, spy)
    exe(x) if fast else exe._call((x,), {}, None)
    assert x.data_ptr() in seen


def test_results_are_written_in_place():
    exe = pipeline.compile(Calls(lambda x: (x + 1, x * 2)), (torch.ones(4),))
    out = (torch.empty(4), torch.empty(4))
    places = [tensor.data_ptr() for tensor in out]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "copy_", None)
        result = exe(torch.ones(4), out=out)
    assert result is out
    assert [tensor.data_ptr() for tensor in result] == places
    torch.testing.assert_close(out, (torch.full((4,), 2.0), torch.full((4,), 2.0)))


def test_a_result_is_new_at_every_call(linear):
    _, exe = linear
    first = exe(torch.ones(2, 4))
    kept = first.clone()
    exe(torch.zeros(2, 4))
    torch.testing.assert_close(first, kept)


def test_weights_share_memory_with_the_live_module():
    model = Calls(lambda x: x)
    model.weight = nn.Parameter(torch.ones(3))
    model.function = lambda x: x + model.weight
    exe = pipeline.compile(model, (torch.zeros(3),))
    with torch.no_grad():
        model.weight.fill_(5)
    torch.testing.assert_close(exe(torch.zeros(3)), torch.full((3,), 5.0))


def test_refresh_after_weights_changed():
    model = Linear().requires_grad_(False)
    exe = pipeline.compile(model, (torch.randn(2, 4),))
    model.load_state_dict({"linear.weight": torch.randn(3, 4), "linear.bias": torch.randn(3)})
    exe.refresh()
    x = torch.randn(2, 4)
    torch.testing.assert_close(exe(x), model(x))


def test_refresh_refuses_weights_of_another_shape():
    model = nn.Linear(4, 3).requires_grad_(False)
    exe = pipeline.compile(model, (torch.randn(2, 4),))
    model.bias.data = torch.randn(5)
    with pytest.raises(PipelineError, match=r"weight bias: expected float32\[3\], is now float32\[5\]"):
        exe.refresh()


def test_numpy_arrays_in_and_out(linear):
    model, exe = linear
    x = np.random.default_rng(0).standard_normal((2, 4), np.float32)
    result = exe(x)
    assert isinstance(result, np.ndarray)
    np.testing.assert_allclose(result, model(torch.from_numpy(x)).numpy(), rtol=1e-5)


@pytest.mark.parametrize("array", [np.ones((4, 2), np.float32).T, np.ones((2, 8), np.float32)[:, ::-2]])
def test_numpy_arrays_that_are_not_row_major(linear, array):
    model, exe = linear
    np.testing.assert_allclose(exe(array), model(torch.from_numpy(array.copy())).numpy(), rtol=1e-5)


def test_a_numpy_array_that_is_not_aligned(linear):
    model, exe = linear
    array = np.frombuffer(bytearray(33), np.uint8)[1:].view(np.float32).reshape(2, 4)
    assert not array.flags.aligned
    np.testing.assert_allclose(exe(array), model(torch.zeros(2, 4)).numpy(), rtol=1e-5)
