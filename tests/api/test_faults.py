"""What is wrong with a model or a call is one clear error."""

from __future__ import annotations

import pytest
import torch
from api_models import Linear
from torch import nn

import pipeline
from pipeline import CaptureError, PipelineError


class Branches(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1


def test_branch_on_a_tensor_says_where_and_what_to_do():
    with pytest.raises(CaptureError) as caught:
        pipeline.compile(Branches(), (torch.ones(2),))
    message = str(caught.value)
    line = Branches.forward.__code__.co_firstlineno + 1
    assert f"{__file__}:{line}" in message
    for way_out in ("torch.cond", "torch.while_loop", 'capture="script"'):
        assert way_out in message
    assert "\n" not in message


def test_an_error_in_the_model_is_one_clear_error():
    class Broken(nn.Module):
        def forward(self, x):
            return x @ torch.ones(7, 7)

    with pytest.raises(CaptureError, match=rf"could not capture Broken: .*{__file__}:\d+"):
        pipeline.compile(Broken(), (torch.ones(2, 3),))


def test_arguments_that_the_module_does_not_take():
    with pytest.raises(CaptureError, match="could not capture Linear"):
        pipeline.compile(Linear(), (torch.ones(2, 4),), {"nonsense": 1})


def test_index_out_of_range_is_an_error_and_no_crash():
    exe = pipeline.compile(nn.Embedding(4, 2).requires_grad_(False), (torch.tensor([0, 1]),))
    with pytest.raises(PipelineError, match="index"):
        exe(torch.tensor([0, 4]))
    exe(torch.tensor([0, 3]))
