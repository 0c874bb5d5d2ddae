"""Recurrent nets under autocast: eager's dtypes, and its numbers within the rounding of bf16."""

from __future__ import annotations

import pytest
import torch
from host import EAGERS_LSTM_IN_BF16, NO_LSTM
from torch import nn
from torch.utils._pytree import tree_leaves

import pipeline

FORMS = [
    (nn.LSTM, {}, True),
    (nn.LSTM, {"bidirectional": True, "num_layers": 2, "batch_first": True}, False),
    (nn.LSTM, {"proj_size": 4}, True),
    (nn.GRU, {"bias": False}, False),
    (nn.GRU, {}, True),
    (nn.RNN, {"nonlinearity": "relu", "bidirectional": True}, True),
    (nn.RNN, {}, False),
]


def problem_of_eager(model, x):
    """Why eager cannot run the model, if it cannot."""
    try:
        model(x)
    except RuntimeError as error:
        assert not EAGERS_LSTM_IN_BF16 and NO_LSTM in str(error)
        return NO_LSTM
    return None


@pytest.mark.parametrize(("kind", "options", "is_wide"), FORMS)
def test_dtypes(kind, options, is_wide):
    torch.manual_seed(0)
    model = kind(5, 6, **options).eval()
    x = torch.randn(7, 3, 5, dtype=torch.float32 if is_wide else torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        problem = problem_of_eager(model, x)
        if problem is not None:
            with pytest.raises(pipeline.CaptureError, match=problem):
                pipeline.compile(model, (x,))
            return
        executable = pipeline.compile(model, (x,))
        wanted = model(x)
    for got, want in zip(tree_leaves(executable(x)), tree_leaves(wanted), strict=True):
        assert got.dtype == want.dtype
        torch.testing.assert_close(got.float(), want.float(), rtol=0, atol=0.03)


def test_what_follows_computes_in_the_same_dtype():
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.head = nn.LSTM(5, 6), nn.Linear(6, 2)

        def forward(self, x):
            outputs, (hidden, _) = self.net(x)
            return self.head(outputs), hidden + 1

    torch.manual_seed(0)
    model, x = Tagger().eval(), torch.randn(7, 3, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        problem = problem_of_eager(model, x)
        if problem is not None:
            with pytest.raises(pipeline.CaptureError, match=problem):
                pipeline.compile(model, (x,))
            return
        executable = pipeline.compile(model, (x,))
        wanted = model(x)
    for got, want in zip(executable(x), wanted, strict=True):
        assert got.dtype == want.dtype == torch.bfloat16
        torch.testing.assert_close(got.float(), want.float(), rtol=0, atol=0.03)


def test_without_autocast_nothing_is_cast():
    model, x = nn.LSTM(5, 6).eval(), torch.randn(7, 3, 5)
    executable = pipeline.compile(model, (x,))
    with torch.autocast("cpu", dtype=torch.bfloat16):  # of the capture's time alone counts
        assert {one.dtype for one in tree_leaves(executable(x))} == {torch.float32}
