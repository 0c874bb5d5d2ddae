"""The graph of a question in PyTorch's forum, as torch.cond and as TorchScript: one kernel for each branch."""

from __future__ import annotations

import copy

import pytest
import torch
from numerics import differences
from torch import nn

import pipeline


class Cond(nn.Module):
    """Zeros from outside, written to in a branch with an outer value of another dtype."""

    def forward(self, x, outer):
        ret = torch.zeros(x.shape[0])

        def equal():
            ret.add_(outer)
            return ret * 3 + 1

        return torch.cond((x == 2).all(), equal, lambda: x + 4, ())


class Script(nn.Module):
    def forward(self, x, outer):
        ret = torch.zeros(x.shape[0])
        if bool((x == 2).all()):
            ret = ret.add_(outer)
            ret = ret * 3 + 1
        else:
            ret = x + 4
        return ret


FORMS = {
    "cond": (Cond(), "export"),
    "capture": (Script(), "script"),
    "script": (torch.jit.script(Script()), "export"),
}


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
@pytest.mark.parametrize("form", FORMS)
def test_forum_graph(form, size):
    model, mode = FORMS[form]
    eager = Script()
    outer = torch.randn(size, dtype=torch.float64)
    executable = pipeline.compile(model, (torch.full((size,), 2.0), outer), capture=mode)
    for x in (torch.full((size,), 2.0), torch.full((size,), 2.5)):
        x[-1] = 2
        given, theirs = (x, outer), copy.deepcopy((x, outer))
        expected = eager(*theirs)
        assert expected.dtype == torch.float32
        assert not differences((executable(*given), given), (expected, theirs))
    kernels = executable.ir("kernels")
    assert f"tensor<{size}xf32> = dense" not in kernels and "dense<0" not in kernels  # the zeros are a number
    if size == 1 << 16:  # smaller branches are computed both, in one kernel
        names = [kernel.name for kernel in executable.kernels]
        assert len(names) == 3 and [kernel.calls for kernel in executable.kernels] == [1, 1, 1], names
        then, otherwise = kernels.split("scf.if")[1].split("} else {")
        assert then.count("call @") == 1 and otherwise.split("}")[0].count("call @") == 1
