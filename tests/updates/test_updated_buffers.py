"""Buffers that a model writes to, in a process and in an artifact; memory that two of what is written to share."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from function_model import Function
from torch import nn
from updates.support import Buffers, arguments, in_place, masked, remarks

import pipeline
from pipeline import ArgumentError, CaptureError, PipelineError


def test_buffers():
    model, eager = Buffers(), Buffers()
    exe = pipeline.compile(model, (torch.randn(2, 1, 4),))
    assert in_place(exe, "weight keys", "weight count") or in_place(exe, "weight count", "weight keys")
    place = model.keys.data_ptr()
    for _ in range(3):
        key = torch.randn(2, 1, 4)
        torch.testing.assert_close(exe(key), eager(key))
    assert model.keys.data_ptr() == place
    torch.testing.assert_close(model.state_dict(), eager.state_dict())


def test_buffers_of_an_artifact(tmp_path):
    model, eager = Buffers(), Buffers()
    pipeline.compile(model, (torch.randn(2, 1, 4),)).save(tmp_path / "m.pipeline")
    loaded = pipeline.load(tmp_path / "m.pipeline")
    for _ in range(2):
        key = torch.randn(2, 1, 4)
        np.testing.assert_allclose(loaded(key.numpy()), eager(key), rtol=1e-6)


def test_a_returned_buffer_is_copied():
    class Returns(Buffers):
        def forward(self, key):
            self.keys.add_(key)
            return self.keys

    model = Returns()
    exe = pipeline.compile(model, (torch.randn(2, 1, 4),))
    result = exe(torch.ones(2, 1, 4))
    assert result.data_ptr() != model.keys.data_ptr()
    assert torch.equal(result, torch.ones(2, 8, 4)) and torch.equal(model.keys, torch.ones(2, 8, 4))
    exe(torch.ones(2, 1, 4))
    assert torch.equal(result, torch.ones(2, 8, 4))
    assert any("its new value is returned, too" in text for _, text in remarks(exe))


def test_arguments_that_share_memory_are_refused():
    exe = pipeline.compile(Function(masked), arguments(4, 4))
    memory = torch.randn(8, 4)
    kept = memory.clone()
    with pytest.raises(ArgumentError, match="is written to and shares memory with"):
        exe(memory[:4], memory[2:6], torch.zeros(4, 4))
    assert torch.equal(memory, kept)


def test_an_argument_that_is_a_buffer_which_is_written_to_is_refused():
    class Adds(Buffers):
        def forward(self, x):
            self.keys.add_(1)
            return x * 2

    model = Adds()
    exe = pipeline.compile(model, (torch.ones(2, 8, 4),))
    with pytest.raises(ArgumentError, match="argument x: shares memory with weight keys, which is written to"):
        exe(model.keys)
    assert not model.keys.any()


def test_buffers_that_share_memory_are_refused():
    class Shares(nn.Module):
        def __init__(self):
            super().__init__()
            whole = torch.arange(6.0)
            self.register_buffer("whole", whole)
            self.register_buffer("part", whole[1:4])

        def forward(self, x):
            self.whole.add_(x)
            return self.part * 2

    with pytest.raises(CaptureError, match="part and whole share memory|whole and part share memory"):
        pipeline.compile(Shares(), (torch.ones(6),))


def test_a_failed_check_writes_nothing_out_of_range():
    """What is written before the failing op stays written, as in eager."""

    def update(x, index, y):
        x.mul_(2)
        x[index] = y
        return x + 1

    memory = torch.ones(12)
    exe = pipeline.compile(Function(update), (torch.ones(4), torch.tensor([1]), torch.ones(1)))
    with pytest.raises(PipelineError, match="index out of range"):
        exe(memory[4:8], torch.tensor([5]), torch.full((1,), 7.0))
    assert torch.equal(memory, torch.tensor([1.0] * 4 + [2.0] * 4 + [1.0] * 4))


def test_autograd_knows_that_a_tensor_was_written():
    exe = pipeline.compile(Function(masked), arguments(4, 4))
    x, y, w = arguments(4, 4)
    weight = torch.randn(4, 4, requires_grad=True)
    product = (weight * x).sum()
    exe(x, y, w)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_a_buffer_to_which_a_packed_product_is_added():
    """The kernel sees its result as panels, so that nobody can tell from it where that lies."""

    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(256, 256)
            self.register_buffer("total", torch.zeros(8, 256))

        def forward(self, x):
            self.total.add_(self.linear(x))
            return self.total * 1

    model, x = Sum().requires_grad_(False), torch.randn(8, 256)
    exe = pipeline.compile(copy.deepcopy(model), (x,))
    assert any(kernel.name.startswith("pack") for kernel in exe.kernels)
    for _ in range(3):
        torch.testing.assert_close(exe(x), model(x))
