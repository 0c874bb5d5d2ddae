"""Scatters of rows: written a row at a time, in the order of the indices, and nowhere else."""

from __future__ import annotations

import pytest
import torch
from function_model import Function
from tables import results_of

import pipeline

INDICES = torch.tensor([3, 0, 3, -1, 6])


def index_add(x, i, u):
    return x.index_add(0, i.remainder(7), u)


def index_put(x, i, u):
    y = x.clone()
    y[i[1:4]] = u[1:4]
    return y


def accumulate(x, i, u):
    return x.index_put((i,), u, accumulate=True)


def index_copy(x, i, u):
    return x.index_copy(0, i[2:].remainder(6), u[2:])


def cache(x, i, u):
    """One position of a cache of keys, by heads."""
    heads = x.reshape(1, 7, -1, 8).transpose(1, 2).clone()
    heads[:, :, i[:1]] = u[:1].reshape(1, 1, -1, 8).transpose(1, 2)
    return heads


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bfloat16", "int8", "bool"])
@pytest.mark.parametrize("function", [index_add, index_put, accumulate, index_copy], ids=lambda one: one.__name__)
def test_rows(function, dtype):
    programs = {}
    for shape in ((16,), (33,), (3,), (2, 16), (0,)):
        x, u = (torch.randint(-9, 9, (rows, *shape)).to(getattr(torch, dtype)) for rows in (7, 5))
        programs[str(shape)] = function, (x, INDICES.clone(), u)
    for shape, result in results_of(programs).items():
        assert torch.equal(result, function(*programs[shape][1])), shape


def test_a_cache():
    x, u = torch.randn(7, 48), torch.randn(5, 48)
    assert torch.equal(pipeline.compile(Function(cache), (x, INDICES, u))(x, INDICES, u), cache(x, INDICES, u))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("accumulates", [True, False])
def test_no_updates(accumulates, dtype):
    """Known to be none, and none in one call of many; torch-mlir divided by their number."""
    x, none, u = torch.arange(21).view(7, 3).to(getattr(torch, dtype)), INDICES[:0], torch.ones(5, 3)

    def put(x, i, u):
        return x.index_put((i,), u.to(x.dtype), accumulate=accumulates)

    assert torch.equal(pipeline.compile(Function(put), (x, none, u[:0]))(x, none, u[:0]), x)
    number = torch.export.Dim("number", min=0, max=64)
    exe = pipeline.compile(Function(put), (x, INDICES, u), dynamic_shapes=((None, {0: number}, {0: number}),))
    assert torch.equal(exe(x, none, u[:0]), x)
    assert torch.equal(exe(x, INDICES, u), put(x, INDICES, u))


def test_an_index_out_of_range_writes_nothing_and_is_an_error():
    x, u = torch.randn(7, 16), torch.randn(5, 16)
    exe = pipeline.compile(Function(accumulate), (x, INDICES, u))
    with pytest.raises(pipeline.PipelineError, match="out of range"):
        exe(x, INDICES + 1, u)
    torch.testing.assert_close(exe(x, INDICES, u), accumulate(x, INDICES, u))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bfloat16", "int8", "bool"])
@pytest.mark.parametrize("shape", [(6, 9), (6, 1), (1, 9), (2, 3, 5), (54,)], ids=str)
def test_single_elements(shape, dtype):
    """Several updates of one place: added in their order, or the last one kept."""
    programs = {}
    for dim in range(-1, len(shape)):
        x, source = ((torch.randn(shape) * 9).to(getattr(torch, dtype)) for _ in range(2))
        places = torch.randint(shape[dim], shape)
        programs[f"add {dim}"] = lambda x, i, s, dim=dim: x.scatter_add(dim, i, s), (x, places, source)
        places = torch.argsort(torch.rand(shape), dim)  # no place twice: eager leaves open which update is kept
        programs[f"put {dim}"] = lambda x, i, s, dim=dim: x.scatter(dim, i, s), (x.clone(), places, source.clone())
    close = {"rtol": 0.1, "atol": 0.5} if dtype == "bfloat16" else {"rtol": 1e-5, "atol": 1e-5}
    for name, result in results_of(programs).items():
        function, arguments = programs[name]
        bounds = close if name.startswith("add") else {"rtol": 0, "atol": 0}
        torch.testing.assert_close(
            result, function(*arguments), **bounds, msg=lambda text, name=name: f"{name}: {text}"
        )


def test_fewer_updates_than_elements():
    x, source = torch.randn(5, 8), torch.randn(4, 7)
    places = torch.randint(8, (3, 6))
    exe = pipeline.compile(Function(lambda x, i, s: x.scatter_add(1, i, s)), (x, places, source))
    torch.testing.assert_close(exe(x, places, source), x.scatter_add(1, places, source))
    none = torch.zeros(0, 6).long()
    exe = pipeline.compile(Function(lambda x, i, s: x.scatter_add(1, i, s)), (x, none, source))
    assert torch.equal(exe(x, none, source), x)


def test_values_that_are_no_numbers():
    x, source = torch.zeros(4, 6), torch.tensor([[float("nan"), float("inf"), -0.0, 1.0, -1.0, 0.0]])
    places = torch.tensor([[0, 1, 2, 3, 3, 1]])
    exe = pipeline.compile(Function(lambda x, i, s: x.scatter_add(0, i, s)), (x, places, source))
    torch.testing.assert_close(exe(x, places, source), x.scatter_add(0, places, source), equal_nan=True)


@pytest.mark.parametrize("bad", [-1, 8, 2**61, -(2**63)])
def test_a_place_out_of_range_is_an_error(bad):
    x, source, places = torch.randn(5, 8), torch.randn(5, 8), torch.randint(8, (5, 8))
    exe = pipeline.compile(Function(lambda x, i, s: x.scatter_add(1, i, s)), (x, places, source))
    wrong = places.clone()
    wrong[2, 3] = bad
    with pytest.raises(pipeline.PipelineError, match="out of range"):
        exe(x, wrong, source)
    torch.testing.assert_close(exe(x, places, source), x.scatter_add(1, places, source))


def test_what_is_scattered_to_is_left_as_it_is():
    """The result begins as a copy of it, in the result's own memory."""
    x, source, places = torch.randn(64, 32), torch.randn(64, 32), torch.rand(64, 32).argsort(1)
    before = x.clone()

    def function(x, i, s):
        return x.scatter_add(1, i, s), x.scatter(1, i, s), x.index_add(0, i[:, 0], s), x + 1

    exe = pipeline.compile(Function(function), (x, places, source))
    for result, expected in zip(exe(x, places, source), function(x, places, source), strict=True):
        torch.testing.assert_close(result, expected)
    assert torch.equal(x, before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.int32])
def test_reductions_to_places_in_a_line(dtype):
    """Of all kinds, along each dim, with sources that are larger than the places; each in one compilation."""
    torch.manual_seed(0)
    x = (torch.randn(4, 3, 6) * 4).to(dtype)
    forms = [((4, 2, 9), 2), ((7, 3, 6), 0), ((2, 8, 5), 1), ((1, 1, 1), -1)]
    places = [torch.randint(0, x.size(dim), size) for size, dim in forms]
    sources = [(torch.randn([size + 1 for size in place.shape]) * 4).to(dtype) for place in places]
    kinds = [(kind, own) for kind in ("sum", "prod", "amax", "amin", "mean") for own in (True, False)]

    def reduced(x, places, sources):
        return [
            x.scatter_reduce(dim, place, source, kind, include_self=own)
            for kind, own in kinds
            for (_, dim), place, source in zip(forms, places, sources, strict=True)
        ]

    arguments = x, places, sources
    results = pipeline.compile(Function(reduced), arguments)(*arguments)
    for mine, theirs in zip(results, reduced(*arguments), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.bfloat16])
def test_index_reduce(dtype):
    """Of all kinds, along each dim, of a single number, too."""
    torch.manual_seed(0)
    programs = {}
    for kind in ("prod", "amax", "amin", "mean"):
        for own in (True, False):
            for shape, dim in [((4, 3, 6), 0), ((4, 3, 6), 1), ((4, 3, 6), -1), ((), 0)]:
                x, places = (torch.randn(shape) * 4).to(dtype), torch.randint(shape[dim] if shape else 1, (5,))
                size = [5 if axis == dim % len(shape) else length for axis, length in enumerate(shape)]

                def reduced(x, places, source, dim=dim, kind=kind, own=own):
                    here = places if x.dim() else places[:1]
                    return x.index_reduce(dim, here, source, kind, include_self=own)

                programs[f"{kind} {own} {shape} {dim}"] = reduced, (x, places, (torch.randn(size) * 4).to(dtype))
    for name, result in results_of(programs).items():
        function, arguments = programs[name]
        torch.testing.assert_close(result, function(*arguments), msg=lambda text, name=name: f"{name}: {text}")
