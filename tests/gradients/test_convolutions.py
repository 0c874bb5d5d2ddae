"""Gradients of convolutions, of every form in one program."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import pipeline
from pipeline.frontend.gradients import convolutions

#: The operand, the weight, and how they are convolved.
FORMS = {
    "1x1": ((2, 5, 6, 7), (4, 5, 1, 1), {}),
    "3x3": ((2, 20, 6, 7), (4, 20, 3, 3), {"padding": 1}),
    "few channels": ((2, 3, 9, 8), (4, 3, 5, 3), {"padding": 2, "stride": 2}),
    "stride": ((2, 18, 9, 8), (4, 18, 3, 3), {"padding": 1, "stride": (2, 3)}),
    "dilation": ((1, 17, 9, 9), (3, 17, 3, 2), {"padding": (2, 1), "dilation": 2}),
    "depthwise": ((2, 6, 7, 7), (6, 1, 3, 3), {"padding": 1, "groups": 6}),
    "depthwise, stride": ((2, 6, 7, 8), (6, 1, 3, 3), {"stride": 2, "groups": 6}),
    "groups": ((2, 8, 6, 5), (6, 4, 3, 3), {"padding": 1, "groups": 2}),
    "more results a group": ((2, 3, 6, 5), (6, 1, 3, 3), {"groups": 3}),
    "no rows": ((0, 3, 6, 5), (4, 3, 3, 3), {}),
    "line": ((2, 3, 11), (4, 3, 3), {"padding": 1, "stride": 2}),
    "volume": ((1, 2, 5, 4, 5), (3, 2, 3, 2, 3), {"padding": 1}),
    "patches": ((2, 3, 8, 8), (5, 3, 4, 4), {"stride": 4}),
}

TRANSPOSED = {
    "transposed": ((2, 5, 4, 5), (5, 3, 3, 3), {"padding": 1}),
    "transposed, stride": ((2, 17, 4, 5), (17, 3, 3, 3), {"padding": 1, "stride": 2, "output_padding": 1}),
    "transposed, groups": ((2, 4, 4, 5), (4, 3, 2, 3), {"stride": 2, "groups": 2}),
    "transposed, depthwise": ((2, 4, 4, 5), (4, 1, 3, 3), {"stride": 2, "groups": 4}),
    "transposed line": ((2, 4, 5), (4, 3, 4), {"stride": 2, "dilation": 2}),
}

#: Some of their taps read padding in most places, or everywhere.
PADDED = {
    "a margin": ((2, 5, 9, 7), (4, 5, 3, 3), {"padding": 6, "dilation": 6}),
    "the middle": ((3, 5, 6, 6), (4, 5, 3, 3), {"padding": 6, "dilation": 6}),
    "nowhere": ((2, 5, 4, 6), (4, 5, 3, 5), {"padding": (9, 14), "dilation": (9, 7)}),
    "one axis": ((2, 5, 8, 6), (4, 5, 3, 3), {"padding": (1, 5), "dilation": (1, 5)}),
    "strides": ((2, 5, 9, 11), (4, 5, 3, 3), {"padding": (7, 8), "dilation": (7, 8), "stride": (2, 3)}),
    "more padding than taps": ((2, 3, 2, 3), (4, 3, 2, 2), {"padding": (3, 5)}),
    "no padding": ((2, 3, 9, 9), (4, 3, 3, 3), {"dilation": 4}),
    "one element": ((4, 6, 1, 1), (5, 6, 3, 3), {"padding": 1}),
    "two elements": ((4, 6, 2, 2), (5, 6, 3, 3), {"padding": 1}),
    "groups": ((2, 8, 6, 5), (6, 4, 3, 3), {"padding": 4, "dilation": 4, "groups": 2}),
    "depthwise": ((2, 6, 7, 7), (6, 1, 3, 3), {"padding": 6, "dilation": 6, "groups": 6}),
    "line": ((2, 3, 11), (4, 3, 3), {"padding": 8, "dilation": 8}),
    "depthwise line": ((2, 3, 11), (3, 1, 3), {"padding": 8, "dilation": 8, "groups": 3}),
    "volume": ((1, 2, 3, 4, 5), (3, 2, 3, 1, 3), {"padding": (2, 0, 4), "dilation": (2, 1, 4)}),
    "no rows": ((0, 3, 6, 5), (4, 3, 3, 3), {"padding": 5, "dilation": 5}),
}


def _tensors(form, dtype):
    x_shape, w_shape, options = form
    rank = len(x_shape) - 2
    count = w_shape[1] * options.get("groups", 1) if form in TRANSPOSED.values() else w_shape[0]
    x, w, b = torch.randn(x_shape), torch.randn(w_shape), torch.randn(count)
    forward = getattr(F, f"conv{'_transpose' if form in TRANSPOSED.values() else ''}{rank}d")
    result = forward(x, w, b, **options)
    return forward, [tensor.to(dtype) for tensor in (torch.randn(result.shape), x, w, b)]


def _gradients(forward, options, g, x, w, b):
    leaves = [tensor.detach().requires_grad_() for tensor in (x, w, b)]
    return torch.autograd.grad(forward(*leaves, **options), leaves, g)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 3e-5), (torch.bfloat16, 0.04)]
)
def test_gradients(dtype, tolerance):
    _check({**FORMS, **TRANSPOSED}, dtype, tolerance)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 3e-5), (torch.bfloat16, 0.04)]
)
def test_gradients_of_padded_data(dtype, tolerance, monkeypatch):
    """Each tap of a weight is multiplied with what it reads of the data, where much would be padding."""
    calls = []
    monkeypatch.setattr(convolutions, "_LEAST_PRODUCTS", 0)
    monkeypatch.setattr(convolutions, "_MOST_KEPT_UNDILATED", 0.75)
    tap_by_tap = convolutions._tap_by_tap
    monkeypatch.setattr(convolutions, "_tap_by_tap", lambda *given: calls.append(given) or tap_by_tap(*given))
    _check(PADDED, dtype, tolerance)
    assert len(calls) == len(PADDED) - 1  # all but that without padding


def _check(forms, dtype, tolerance):
    torch.manual_seed(0)
    forwards, tensors = zip(*(_tensors(form, dtype) for form in forms.values()), strict=True)
    options = [form[2] for form in forms.values()]

    def all_of_them(given):
        return [_gradients(*form) for form in ((f, o, *t) for f, o, t in zip(forwards, options, given, strict=True))]

    traced = torch.fx.experimental.proxy_tensor.make_fx(all_of_them)(list(tensors))
    compiled = pipeline.compile(traced, (list(tensors),), cache=False)(list(tensors))
    wide = [[tensor.double() for tensor in given] for given in tensors]
    for name, ours, theirs in zip(forms, compiled, all_of_them(wide), strict=True):
        for which, one, other in zip(("input", "weight", "bias"), ours, theirs, strict=True):
            assert one.dtype == dtype and one.shape == other.shape
            scale = other.abs().max().item() if other.numel() else 1.0
            torch.testing.assert_close(
                one.double(),
                other,
                rtol=0,
                atol=tolerance * max(scale, 1),
                msg=lambda m, n=name, w=which: f"{n} {w} {m}",
            )
