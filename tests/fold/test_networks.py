"""Whole networks: no norm is left in @main where all folds are legal, and the rest is counted and explained."""

import pytest
import torch
from networks import NETWORKS, dense_net
from support import assert_close, main_text, randomize, remarks
from torch import nn

import pipeline


def norms(model):
    return sum(isinstance(module, nn.BatchNorm2d) for module in model.modules())


def folded_norms(executable):
    """The folds of four operations; smaller ones are of a constant into a bias, such as the 3 of a hardsigmoid."""
    return [reason for reason in remarks(executable, "fold-batch-norm", "passed") if reason.startswith("folded 4 ")]


@pytest.mark.parametrize("name", NETWORKS)
def test_every_norm_is_folded(name):
    torch.manual_seed(0)
    model, x = randomize(NETWORKS[name]()), torch.randn(1, 3, 16, 16)
    executable = pipeline.compile(model, (x,))
    assert_close(executable(x), model(x), 1e-4)
    assert len(folded_norms(executable)) == norms(model)
    assert remarks(executable, "fold-batch-norm", "missed") == []
    assert "sqrt" not in main_text(executable)
    assert "arith.subf" not in main_text(executable)


def test_dense_net():
    torch.manual_seed(0)
    model, x = randomize(dense_net()), torch.randn(1, 3, 16, 16)
    executable = pipeline.compile(model, (x,))
    assert_close(executable(x), model(x), 1e-4)
    # Behind a convolution stand the stem's norm and each layer's second one; before anything linear, the last one.
    assert len(folded_norms(executable)) == 3
    missed = remarks(executable, "fold-batch-norm", "missed")
    assert len(missed) == norms(model) - 3
    assert sum("another user" in reason for reason in missed) >= 1
    # What is left costs one multiply and one add, from @prepare.
    assert len(remarks(executable, "merge-scale-shifts", "passed")) == len(missed)
    assert "sqrt" not in main_text(executable)
