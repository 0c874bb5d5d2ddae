"""What is prepared from weights that change lies where it lay before, unless a call still reads that."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import pipeline
from pipeline.runtime.interface.recycled_memory import RecycledMemory


def places(exe):
    return [tensor.address for tensor in exe._bound.prepared.values()]


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 40, 3)).eval().requires_grad_(False)


def test_steps_use_the_same_memory():
    net, x = model(), torch.randn(2, 3, 12, 12)
    exe = pipeline.compile(net, (x,))
    exe(x)
    before = places(exe)
    assert before
    for _ in range(4):
        for parameter in net.parameters():
            parameter.mul_(0.9).add_(0.01)
        torch.testing.assert_close(exe(x), net(x), atol=1e-4, rtol=1e-4)
        assert places(exe) == before


def test_what_a_call_reads_stays():
    net, x = model(), torch.randn(2, 3, 12, 12)
    exe = pipeline.compile(net, (x,))
    running = exe._bound  # as a call in another thread holds it
    contents = {
        number: np.ctypeslib.as_array((np.ctypeslib.ctypes.c_uint8 * tensor.size).from_address(tensor.address))
        for number, tensor in running.prepared.items()
    }
    copies = {number: content.copy() for number, content in contents.items()}
    for parameter in net.parameters():  # all of them, so that as much memory is wanted again
        parameter.mul_(2)
    torch.testing.assert_close(exe(x), net(x), atol=1e-4, rtol=1e-4)
    assert not set(places(exe)) & {tensor.address for tensor in running.prepared.values()}
    assert all((contents[number] == copies[number]).all() for number in copies)
    del running
    net[0].weight.mul_(2)
    torch.testing.assert_close(exe(x), net(x), atol=1e-4, rtol=1e-4)


def test_what_frozen_weights_became_is_not_computed_again():
    net, x = model(), torch.randn(2, 3, 12, 12)
    exe = pipeline.compile(net, (x,))
    frozen = exe._bound.prepared[1]
    for _ in range(3):
        net[0].weight.mul_(2)
        torch.testing.assert_close(exe(x), net(x), atol=1e-4, rtol=1e-4)
        assert exe._bound.prepared[1] is frozen


def test_after_weights_that_do_not_fit_calls_try_again():
    net, x = model(), torch.randn(2, 3, 12, 12)
    exe = pipeline.compile(net, (x,))
    given = net[0].weight
    net[0].weight = nn.Parameter(torch.randn(64, 3, 5, 5), requires_grad=False)
    for _ in range(2):
        with pytest.raises(pipeline.PipelineError, match="weight"):
            exe(x)
    net[0].weight = given
    torch.testing.assert_close(exe(x), net(x), atol=1e-4, rtol=1e-4)


def test_no_more_is_kept_than_was_said():
    memory = RecycledMemory(100)
    leases = [memory.lease(60) for _ in range(3)]
    addresses = {lease.address for lease in leases}
    assert len(addresses) == 3 and memory.kept == 0
    leases.clear()
    assert memory.kept == 60
    assert memory.lease(60).address in addresses and memory.lease(50).size == 50
