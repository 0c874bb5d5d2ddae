"""torch functionalizes a write through expand as x + sum(new - x): right for one element, wrong for several."""

import pytest
import torch
from function_model import Function
from numerics import check

import pipeline


def written(write):
    def run(x):
        write(x.expand(2, *x.shape))
        return x + 1

    return Function(run)


@pytest.mark.parametrize(
    "write",
    [
        lambda view: view.fill_(1),
        lambda view: view.zero_(),
        lambda view: view[..., 1:].fill_(3),
        lambda view: view.transpose(0, 1).zero_(),
        lambda view: view.unbind(-1)[0].fill_(4),
        lambda view: view.hsplit(3)[1].zero_(),
        lambda view: torch.meshgrid(view[0], view[1], indexing="ij")[0].fill_(2),
        lambda view: torch.broadcast_tensors(view[0], view)[0].fill_(2),
        lambda view: torch.dropout(view, 0.5, False).fill_(2),
        lambda view: torch.atleast_3d(view).fill_(2),
    ],
)
def test_those_to_elements_that_share_memory_are_refused(write):
    with pytest.raises(pipeline.CaptureError, match="function_model.*elements share memory"):
        pipeline.compile(written(write), (torch.full((3,), -9.0),))


@pytest.mark.parametrize("write", [lambda view: view[0].fill_(5), lambda view: view[1].mul_(2), lambda view: view * 2])
def test_those_to_one_of_each_are_eagers(write):
    check(written(write), torch.full((3,), -9.0))


def test_a_dim_of_one_element_shares_nothing():
    check(Function(lambda x: x.expand(1, 3).mul_(2) + x), torch.ones(3))
    check(Function(lambda x: x.clone().expand(2, 3).clone().fill_(2) + x), torch.ones(3))
