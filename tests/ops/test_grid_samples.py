"""Images sampled at the points of a grid: modes, what lies outside, corners, odd sizes, 16 bits."""

from __future__ import annotations

import itertools

import pytest
import torch
from function_model import Function
from torch.nn import functional

import pipeline

SHAPES = (
    ((1, 3, 9, 11), (7, 5)),
    ((2, 5, 4, 17), (3, 21)),
    ((3, 1, 1, 1), (2, 2)),
    ((1, 2, 1, 6), (1, 1)),
    ((0, 3, 4, 4), (2, 2)),
)

FORMS = tuple(itertools.product(("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True)))


def every_form(x, grid):
    return tuple(
        functional.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=corners)
        for mode, padding, corners in FORMS
    )


def drawn(shape, size, dtype):
    """An image and a grid that goes far over its ends; no point lies halfway between two elements."""
    generator = torch.manual_seed(6)
    x = torch.randn(shape, generator=generator).to(dtype)
    return x, (torch.rand(shape[0], *size, 2, generator=generator) * 5 - 2.5).to(dtype)


@pytest.mark.parametrize(
    ("shape", "size", "dtype"),
    [*((*sizes, torch.float32) for sizes in SHAPES), *((*sizes, torch.float64) for sizes in SHAPES[:2])],
    ids=str,
)
def test_shapes(shape, size, dtype):
    """The shapes in which sizes are 0 and 1 take other ways than the first two in their loops, not in their dtype."""
    x, grid = drawn(shape, size, dtype)
    results = pipeline.compile(Function(every_form), (x, grid))(x, grid)
    for form, result, expected in zip(FORMS, results, every_form(x, grid), strict=True):
        assert result.dtype == expected.dtype
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4, msg=lambda text, f=form: f"{f}: {text}")


def test_sixteen_bits():
    x, grid = drawn((2, 3, 9, 11), (6, 7), torch.bfloat16)
    results = pipeline.compile(Function(every_form), (x, grid))(x, grid)
    for form, result, expected in zip(FORMS, results, every_form(x.float(), grid.float()), strict=True):
        assert result.dtype == x.dtype
        torch.testing.assert_close(
            result.float(), expected, rtol=1e-2, atol=2e-2, msg=lambda text, f=form: f"{f}: {text}"
        )


def test_strides_and_points_at_the_ends():
    x = torch.randn(2, 6, 5, 3, generator=torch.manual_seed(6)).permute(0, 3, 2, 1)
    ends = torch.tensor([-1.0, 1.0, -1.5, 1.5, 0.0, -0.75])
    grid = torch.stack(torch.meshgrid(ends, ends, indexing="ij"), -1).expand(2, 6, 6, 2)

    def both(x, grid):
        return tuple(functional.grid_sample(x, grid, padding_mode=p, align_corners=True) for p in ("zeros", "border"))

    for result, expected in zip(pipeline.compile(Function(both), (x, grid))(x, grid), both(x, grid), strict=True):
        torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)


def test_places_and_weights_are_those_of_all_channels():
    x, grid = torch.randn(1, 64, 16, 16), torch.rand(1, 16, 16, 2)
    exe = pipeline.compile(Function(lambda x, grid: functional.grid_sample(x, grid, align_corners=False)), (x, grid))
    assert exe.memory.workspace < 64 * 16 * 16 * 4


def test_sizes_of_the_call():
    model = Function(lambda x, grid: functional.grid_sample(x, grid, padding_mode="reflection", align_corners=True))
    height, points = torch.export.Dim("height", min=2), torch.export.Dim("points", min=2)
    x, grid = drawn((2, 3, 9, 11), (6, 7), torch.float32)
    exe = pipeline.compile(model, (x, grid), dynamic_shapes=(({2: height}, {1: points}),))
    for tall, many in ((9, 6), (4, 13)):
        x, grid = drawn((2, 3, tall, 11), (many, 7), torch.float32)
        torch.testing.assert_close(exe(x, grid), model(x, grid), rtol=1e-4, atol=1e-4)


def test_coordinates_and_elements_that_are_no_numbers():
    """A point that is NaN or infinite, and elements that are next to points outside of the image."""
    nan, inf = float("nan"), float("inf")
    x = torch.arange(1.0, 21).view(1, 1, 4, 5)
    x[0, 0, 0, 0], x[0, 0, 3, 4], x[0, 0, 3, 0] = nan, inf, -inf
    ends = torch.tensor([nan, inf, -inf, 1.0, -1.0, -1.2, 1.2, 0.3, -0.9, 0.95, -1.5, 1.5, 0.0])
    grid = torch.stack(torch.meshgrid(ends, ends, indexing="ij"), -1)[None]
    results = pipeline.compile(Function(every_form), (x, grid))(x, grid)
    for form, result, expected in zip(FORMS, results, every_form(x, grid), strict=True):
        torch.testing.assert_close(
            result, expected, rtol=1e-4, atol=1e-4, equal_nan=True, msg=lambda text, f=form: f"{f}: {text}"
        )


@pytest.mark.parametrize("channels", [1, 5])
@pytest.mark.parametrize(("tall", "wide"), [(7, 14), (3, 33), (1, 200)])
def test_parts_of_vectors(channels, tall, wide):
    """Points that fill vectors to a part, in tiles that are cut, from tensors that lie in strides."""
    x, grid = drawn((2, channels, 6, 9), (wide, tall), torch.float32)
    x, grid = x.transpose(2, 3), grid.transpose(1, 2)
    model = Function(lambda x, grid: functional.grid_sample(x, grid, align_corners=False))
    torch.testing.assert_close(pipeline.compile(model, (x, grid))(x, grid), model(x, grid), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("shape", "size"), [((2, 3, 4, 5, 6), (2, 3, 7)), ((1, 2, 1, 1, 3), (1, 2, 2))], ids=str)
def test_volumes(shape, size):
    forms = [form for form in FORMS if form[0] != "bicubic"]
    generator = torch.manual_seed(6)
    x, grid = torch.randn(shape, generator=generator), torch.rand(shape[0], *size, 3, generator=generator) * 5 - 2.5

    def sampled(x, grid):
        return tuple(
            functional.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=corners)
            for mode, padding, corners in forms
        )

    results = pipeline.compile(Function(sampled), (x, grid))(x, grid)
    for form, result, expected in zip(forms, results, sampled(x, grid), strict=True):
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4, msg=lambda text, f=form: f"{f}: {text}")


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_places_that_are_never_outside_are_not_checked(padding):
    x, grid = drawn((1, 3, 9, 11), (6, 7), torch.float32)
    model = Function(lambda x, grid: functional.grid_sample(x, grid, padding_mode=padding, align_corners=False))
    exe = pipeline.compile(model, (x, grid))
    assert len(exe.kernels) == 1
    assert "cmpi ult" not in exe.ir("kernels")


def test_indices_from_floats_that_may_be_no_numbers_are_checked():
    """clamp hands NaN on, which is no index; where the comparison fails for NaN, there is one for it."""
    table = torch.arange(10.0)
    clamped = Function(lambda table, x: table[x.clamp(0, 9).long()])
    limited = Function(lambda table, x: table[torch.where((x > 0) & (x < 9), x, 0).long()])
    x = torch.tensor([3.7, -2.0, 100.0, 8.9])
    for model in (clamped, limited):
        torch.testing.assert_close(pipeline.compile(model, (table, x))(table, x), model(table, x))
    x = torch.tensor([3.7, float("nan"), float("inf"), -float("inf")])
    with pytest.raises(pipeline.PipelineError, match="out of range"):
        pipeline.compile(clamped, (table, x))(table, x)
    torch.testing.assert_close(pipeline.compile(limited, (table, x))(table, x), limited(table, x))
