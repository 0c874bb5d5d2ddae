"""Arguments by position and by name."""

from __future__ import annotations

import pytest
import torch
from api_models import Linear

import pipeline


def test_arguments_by_keyword(linear):
    model, exe = linear
    x = torch.randn(2, 4)
    torch.testing.assert_close(exe(x=x), model(x))


def test_compiled_by_keyword_called_by_position():
    model = Linear().requires_grad_(False)
    x, scale = torch.randn(2, 4), torch.randn(3)
    exe = pipeline.compile(model, (x,), {"scale": scale})
    for result in (exe(x, scale), exe(x, scale=scale), exe(scale=scale, x=x)):
        torch.testing.assert_close(result, model(x, scale))


def test_defaults_may_be_left_out_or_given(linear):
    model, exe = linear
    x = torch.randn(2, 4)
    torch.testing.assert_close(exe(x, None), model(x))
    torch.testing.assert_close(exe(x, scale=None), model(x))
    given = pipeline.compile(model, (x, None))
    for result in (given(x), given(x=x), given(x, None), given(x, scale=None)):
        torch.testing.assert_close(result, model(x))
    with pytest.raises(pipeline.ArgumentError, match="argument scale: was not given when the model was compiled"):
        exe(x, torch.ones(3))


def test_exported_program_by_keyword():
    model, x = Linear().requires_grad_(False), torch.randn(2, 4)
    exe = pipeline.compile(torch.export.export(model, (x,), {"scale": torch.ones(3)}))
    torch.testing.assert_close(exe(x=x, scale=torch.ones(3)), model(x))
