"""Corners that torch's own samples of operators found: tensors of no dimension, NaN beside itself, bytes."""

from __future__ import annotations

import math

import pytest
import torch
from function_model import Function
from numerics import check
from torch.nn import functional as F
from torch.nn.functional import embedding_bag, hardtanh, multilabel_margin_loss, rms_norm

import pipeline

LINE = torch.tensor([1.0, math.nan, -0.0, math.inf, 0.0])

EQUALITIES = {
    "with itself": lambda x: (x == x, x != x, torch.eq(x, x).sum(), x <= x),
    "of equal expressions": lambda x: torch.where(x + 1 == x + 1, 1, 0),
    "of a copy": lambda x: (x.clone() == x).all(),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32])
@pytest.mark.parametrize("function", EQUALITIES.values(), ids=EQUALITIES)
def test_nan_is_not_itself(function, dtype):
    check(Function(function), LINE.nan_to_num(3, 4).to(dtype) if dtype == torch.int32 else LINE.to(dtype))


def along(x):
    """Ops along a dimension, or all of them."""
    at, one = torch.tensor(0), torch.tensor([0])
    wide = x.float()
    return (
        *(x.cumsum(0), x.cumprod(-1), x.cummax(0), x.cummin(0), x.argmax(), x.argmax(0), x.argmin(-1, keepdim=True)),
        *(x.sort(), x.sort(descending=True), x.topk(1), x.kthvalue(1), x.max(0), x.min(0, keepdim=True), x.median(-1)),
        *(
            x.any(0),
            x.all(0),
            x.amax(0),
            x.amin(()),
            x.sum(0),
            x.prod(0),
            x.sum(-1, keepdim=True),
            x.flip(0),
            x.roll(1),
        ),
        *(wide.softmax(0), wide.log_softmax(-1), wide.logsumexp(0), wide.logcumsumexp(0), wide.mean(0), wide.norm(1)),
        *(x.index_select(0, one), x.gather(0, at), x.gather(-1, one), x.scatter(0, at, x + 1), x.scatter(0, at, 3)),
        *(x.scatter_add(0, at, x), x.scatter_reduce(0, at, x + 1, "amax")),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8])
def test_along_a_dimension_of_a_number(dtype):
    check(Function(along), torch.tensor(2).to(dtype))


def bytes_of_constants(x):
    """Constants in uint8 which are negative before they wrap around, or more than int8 has."""
    return (
        *(torch.arange(-1, 2, 2, dtype=torch.uint8), torch.full((2,), -1, dtype=torch.uint8)),
        *(torch.full_like(x, -3), x.clone().fill_(-2), torch.where(x == 0, -1, x)),
        *(torch.tensor([200, 3], dtype=torch.uint8), torch.tensor(200, dtype=torch.uint8) + x),
    )


def test_constants_in_bytes():
    check(Function(bytes_of_constants), torch.tensor([0, 7], dtype=torch.uint8))


def test_negative_limits_of_bytes():
    def limits(x):
        return x.clamp(-2, 3), x.clamp(min=-2), x.clamp(max=-100), torch.clamp_min(x, -250), x.clamp(1, 3)

    check(Function(limits), torch.tensor([0, 1, 3, 4, 100, 155, 156, 157, 254, 255], dtype=torch.uint8))


def medians(x):
    """Medians along a dimension, with and without NaN; places of NaN are first ones in eager, too."""
    return x.median(-1), x.median(0, keepdim=True), x.nanmedian(-1)[0], x.nanmedian(0, keepdim=True)[0], x.nanmedian()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_medians(dtype):
    x = torch.randperm(20, generator=torch.Generator().manual_seed(0)).reshape(4, 5).to(dtype)
    if dtype.is_floating_point:
        x[1, 2] = x[1, 3] = x[2] = math.nan
    check(Function(medians), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.uint8])
def test_addbmm(dtype):
    def added(x, a, b):
        nan = x * math.nan if dtype.is_floating_point else x
        return (
            *(torch.addbmm(x, a, b), torch.addbmm(x, a, b, beta=2, alpha=3)),
            *(torch.addbmm(x[0], a, b), torch.addbmm(nan, a, b, beta=0)),
        )

    numbers = torch.arange(46).remainder(5).to(dtype)
    x, a, b = numbers[:12].view(3, 4), numbers[:30].view(2, 3, 5), numbers[6:].view(2, 5, 4)
    check(Function(added), x, a, b)


def beside_numbers(x):
    """What a dtype does not have wraps around."""
    return [
        *(x > 300, x >= -1, x == -1, x != 44, x < 300, x <= 200, x == 2**33),
        *(() if x.dtype == torch.bool else (x % 300, x % 77)),
        *(x > 1.5, x == -1.0, x < 300.5),
    ]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.bool])
def test_numbers_beside_narrow_integers(dtype):
    check(Function(beside_numbers), torch.tensor([0, 1, 44, 45, 127, 128, 255]).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_factors_keep_their_digits(dtype):
    """To the last bit; 1e5 is more than float16 has."""

    def scaled(x, factor):
        return x * 1e5, x * 0.1, x / 0.3, 3.3 / x, x * factor, x.clone().mul_(0.7), x * 2, x + 0.1, x * math.inf

    x, factor = torch.linspace(-0.3, 0.2, 301).to(dtype), torch.tensor(0.1)
    for result, expected in zip(
        pipeline.compile(Function(scaled), (x, factor))(x, factor), scaled(x, factor), strict=True
    ):
        assert result.dtype == dtype and torch.equal(result.nan_to_num(7), expected.nan_to_num(7))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_rms_norm(dtype):
    """With squares that overflow in float16, and with the eps that it has if none is given."""

    def normed(x, weight):
        return (
            *(rms_norm(x, (3,), weight), rms_norm(x, (3,)), rms_norm(x, (2, 3), None, 0.5)),
            rms_norm(x * 1e6, (3,), weight, 0.5),
        )

    x = torch.tensor([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]]) * 1e-3
    check(Function(normed), x.to(dtype), torch.tensor([1.0, 2.0, 3.0]).to(dtype))


def test_strides_that_leave_their_tensor_are_an_error():
    def strided(x):
        return torch.as_strided(x, (2, 2), (1, 2), 0)

    with pytest.raises(pipeline.PipelineError, match="as_strided"):
        pipeline.compile(Function(strided), (torch.arange(9.0)[4:],))
    check(Function(lambda x: torch.as_strided_copy(x, (2, 2), (1, 2), 1)), torch.arange(9.0))


def test_multilabel_margin_loss():
    """Targets after the first -1 do not count."""

    def losses(x, targets):
        kinds = ("none", "mean", "sum")
        wide = [multilabel_margin_loss(x, targets, reduction=kind) for kind in kinds]
        return wide + [multilabel_margin_loss(x[0], targets[0], reduction=kind) for kind in kinds]

    targets = torch.tensor([[3, 0, -1, 1], [1, 2, 3, 0], [-1, 2, 2, 2]])
    check(Function(losses), torch.linspace(-1, 1, 12).sin().view(3, 4), targets)


def test_searches_for_nan():
    """NaN is behind everything."""

    def searched(x, line):
        return (
            *(torch.bucketize(x, line), torch.bucketize(x, line, right=True, out_int32=True)),
            torch.searchsorted(line.expand(2, 3), x.expand(2, 5), side="right"),
        )

    check(Function(searched), LINE, torch.tensor([0.0, 1.0, 5.0]))


def test_places_and_masks():
    """A single place; sums and products of what is scattered; a mask of more dimensions than what it masks."""

    def placed(x, one, places, mask):
        return (
            *(x.take(one), x.take(places)),
            *(x.scatter(0, places, x, reduce="add"), x.scatter(1, places, 3, reduce="multiply")),
            *(x[0].masked_scatter(mask, x.exp()), x.masked_scatter(mask[:, :1], x.exp())),
        )

    mask = torch.tensor([[True, False, True], [False, True, True]])
    check(Function(placed), torch.randn(2, 3), torch.tensor(4), torch.tensor([[0, 1, 1], [1, 1, 0]]), mask)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_logcumsumexp_of_large_numbers(dtype):
    x = torch.tensor([[1e4, -1e4, 3.0], [1e4, 2.0, -math.inf], [-3e4, 2.0, math.inf], [0.5, 1.0, math.nan]])
    check(Function(lambda x: (x.logcumsumexp(0), x.logcumsumexp(1), x[:, :1].logcumsumexp(1))), x.to(dtype))


def test_embedding_bags_with_weights():
    """The rows of a bag times a weight each, an empty bag and padding among them."""

    def bags(table, places, offsets, weights):
        weighted = {"mode": "sum", "per_sample_weights": weights}
        return (
            *(embedding_bag(places, table, offsets, **weighted), embedding_bag(places, table, offsets)),
            *(embedding_bag(places, table, offsets, padding_idx=1, mode=mode) for mode in ("mean", "sum")),
            embedding_bag(places, table, offsets, padding_idx=1, **weighted),
            embedding_bag(places, table, offsets, include_last_offset=True, **weighted),
            embedding_bag(places.view(2, 3), table, mode="sum", per_sample_weights=weights.view(2, 3)),
        )

    places, offsets = torch.tensor([1, 3, 0, 1, 2, 2]), torch.tensor([0, 2, 2, 5, 6])
    check(Function(bags), torch.randn(4, 3), places, offsets, torch.randn(6))


def test_hardtanh_of_integers():
    check(Function(lambda x: (hardtanh(x, -0.5, 0.5), hardtanh(x, -2, 3.7), hardtanh(x))), torch.arange(-5, 5))


def test_logcumsumexp_of_unknown_size():
    rows = torch.export.Dim("rows", min=0, max=64)
    model = Function(lambda x: (x.logcumsumexp(0), x.logcumsumexp(1)))
    executable = pipeline.compile(model, (torch.randn(3, 4),), dynamic_shapes={"args": ({0: rows},)})
    x = torch.randn(5, 4)
    for result, expected in zip(executable(x), model(x), strict=True):
        torch.testing.assert_close(result, expected)


def test_norms_of_all_elements():
    def norms(x, y):
        return (
            *(torch.linalg.norm(x), torch.linalg.norm(x, keepdim=True), torch.linalg.norm(x, dim=(0, 1))),
            *(torch.linalg.norm(x, 3, dim=1), torch.linalg.norm(x[0], math.inf), torch.linalg.norm(x[0], 0)),
            *(torch.dist(x, y), torch.dist(x, y[0], 1)),
        )

    check(Function(norms), torch.randn(3, 4), torch.randn(3, 4))


@pytest.mark.parametrize("sizes", [0, (0, 2), (3, 0)])
def test_adaptive_pools_of_no_windows(sizes):
    def program(x):
        size = sizes[0] if isinstance(sizes, tuple) else sizes
        lines = F.adaptive_avg_pool1d(x[0], size), F.adaptive_max_pool1d(x[0], size)
        return *lines, F.adaptive_avg_pool2d(x, sizes), *F.adaptive_max_pool2d(x, sizes, return_indices=True)

    check(Function(program), torch.randn(2, 3, 4, 5))
