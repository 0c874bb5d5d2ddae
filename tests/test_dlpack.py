"""Tensors of other libraries: taken by DLPack, over the same memory."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from torch import nn

import pipeline
from pipeline import ArgumentError
from pipeline.runtime.call.array_libraries import as_numpy, shared


class Foreign:
    """A tensor as another library has it: nothing but DLPack."""

    def __init__(self, tensor):
        self._tensor = tensor

    def __dlpack__(self, **how):
        return self._tensor.__dlpack__(**how)

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


class Lost(Foreign):
    def __dlpack__(self, **how):
        raise RuntimeError("on a device that went away")


class Counter(nn.Module):
    def forward(self, state, x):
        state.add_(x)
        return state * 2


def example():
    return torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)


@pytest.fixture(scope="module")
def exe():
    return pipeline.compile(Counter(), example())


def test_arguments_are_neither_copied_in_nor_out(exe):
    state, x = example()
    result = exe(Foreign(state), Foreign(x))
    torch.testing.assert_close(state, example()[0] + 1)
    torch.testing.assert_close(result, state * 2)


def test_results_are_written_where_out_says(exe):
    state, x = example()
    out = torch.empty(2, 3)
    exe(state, x, out=Foreign(out))
    torch.testing.assert_close(out, state * 2)


def test_rows_apart(exe):
    state, x = example()
    wide = torch.ones(2, 7)
    torch.testing.assert_close(exe(state, Foreign(wide[:, ::3])), (example()[0] + 1) * 2)
    exe(example()[0], x, out=Foreign(wide[:, 1:4]))
    torch.testing.assert_close(wide[:, 1:4], (example()[0] + 1) * 2)


def test_what_does_not_fit_is_named(exe):
    state, x = example()
    with pytest.raises(ArgumentError, match=r"argument x: expected float32\[2, 3\], got float64\[2, 3\]"):
        exe(state, Foreign(x.double()))
    with pytest.raises(ArgumentError, match="argument x: Lost cannot be shared by DLPack: on a device that went away"):
        exe(state, Lost(x))
    with pytest.raises(ArgumentError, match="argument out: Lost cannot be shared by DLPack"):
        exe(state, x, out=Lost(x))
    torch.testing.assert_close(state, example()[0], msg="a refused call changes nothing")


def test_one_tensor_twice_is_seen(exe):
    state, _ = example()
    with pytest.raises(ArgumentError, match="shares memory with"):
        exe(Foreign(state), Foreign(state))


def test_without_torch_it_is_an_array(monkeypatch):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    monkeypatch.setitem(sys.modules, "torch", None)
    taken = shared(Foreign(array))
    assert isinstance(taken, np.ndarray)
    assert np.shares_memory(as_numpy(taken), array)


def test_only_tensors_are_taken():
    for value in (3, [1.0], torch.float32, np.float32(2), torch.ones(2)):
        assert shared(value) is value
