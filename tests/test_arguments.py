"""Arguments that do not fit: each is refused with an error that names it, says what came and what was expected."""

from __future__ import annotations

import itertools
import random
from collections import namedtuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

import pipeline
from pipeline import ArgumentError, PipelineError
from pipeline.runtime.call.arguments import is_shared

Pair = namedtuple("Pair", ["first", "second"])


class Model(nn.Module):
    def forward(self, x, batch, n, *, mask=None):
        y = x * n + batch["a"] + batch["rest"][0]
        return y if mask is None else y * mask


X = torch.ones(2, 3)


def batch(**changes):
    return {"a": torch.ones(3), "rest": [torch.ones(3)], **changes}


@pytest.fixture(scope="module")
def exe():
    return pipeline.compile(Model(), (X, batch(), 2), {"mask": X})


WRONG = {
    "dtype": ((X.double(), batch(), 2), "argument x: expected float32[2, 3], got float64[2, 3]"),
    "integer dtype": ((X.int(), batch(), 2), "argument x: expected float32[2, 3], got int32[2, 3]"),
    "complex dtype": ((X.to(torch.complex64), batch(), 2), "argument x: expected float32[2, 3], got complex64[2, 3]"),
    "rank": ((X[None], batch(), 2), "argument x: expected float32[2, 3], got float32[1, 2, 3]"),
    "rank 0": ((torch.tensor(1.0), batch(), 2), "argument x: expected float32[2, 3], got float32[]"),
    "shape": ((X.t(), batch(), 2), "argument x: expected float32[2, 3], got float32[3, 2]"),
    "meta": ((X.to("meta"), batch(), 2), "argument x: expected a dense tensor on cpu, got meta"),
    "sparse": ((X.to_sparse(), batch(), 2), "argument x: expected a dense tensor on cpu, got torch.sparse_coo"),
    "None": ((None, batch(), 2), "argument x: expected a tensor float32[2, 3], got NoneType"),
    "number": ((1.0, batch(), 2), "argument x: expected a tensor float32[2, 3], got float"),
    "list for a tensor": (([1.0], batch(), 2), "argument x: expected a tensor float32[2, 3], got list"),
    "tensor for a dict": ((X, X, 2), "argument batch: expected a dict with the keys ['a', 'rest'], got Tensor"),
    "key missing": (
        (X, {"a": X}, 2),
        "argument batch: expected a dict with the keys ['a', 'rest'], got a dict with the keys ['a']",
    ),
    "key unknown": ((X, batch(b=X), 2), "got a dict with the keys ['a', 'rest', 'b']"),
    "inside a dict": ((X, batch(a=torch.ones(4)), 2), "argument batch['a']: expected float32[3], got float32[4]"),
    "inside a list": (
        (X, batch(rest=[torch.ones(4)]), 2),
        "argument batch['rest'][0]: expected float32[3], got float32[4]",
    ),
    "tuple for a list": ((X, batch(rest=(X,)), 2), "argument batch['rest']: expected a list of 1, got a tuple of 1"),
    "length": ((X, batch(rest=[X, X]), 2), "argument batch['rest']: expected a list of 1, got a list of 2"),
    "constant": ((X, batch(), 3), "argument n: the model was compiled for 2, got 3; compile it again for that"),
    "constant's type": ((X, batch(), 2.0), "argument n: the model was compiled for 2, got 2.0"),
    "tensor for a constant": ((X, batch(), torch.ones(100)), "argument n: the model was compiled for 2, got a Tensor"),
    "missing": ((X,), "argument batch: missing; expected x, batch, n, mask"),
    "extra": ((X, batch(), 2, X, X), "expected 4 arguments (x, batch, n, mask), got 5"),
    "NumPy's dtype": ((np.ones((2, 3)), batch(), 2), "argument x: expected float32[2, 3], got float64[2, 3]"),
    "byte order": ((np.ones((2, 3), ">f4"), batch(), 2), "argument x: expected float32[2, 3], got >f4[2, 3]"),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_wrong_argument(exe, case):
    args, message = WRONG[case]
    with pytest.raises(ArgumentError) as caught:
        exe(*args, mask=X)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"mask": X.double()}, "argument mask: expected float32[2, 3], got float64[2, 3]"),
        ({}, "argument mask: missing; expected x, batch, n, mask"),
        ({"mask": None}, "argument mask: expected a tensor float32[2, 3], got NoneType"),
        ({"mask": X, "x": X}, "argument x: given twice"),
        ({"mask": X, "size": 3}, "argument size: was not given when the model was compiled; compile with it"),
    ],
)
def test_wrong_keyword(exe, kwargs, message):
    with pytest.raises(ArgumentError) as caught:
        exe(X, batch(), 2, **kwargs)
    assert message in str(caught.value)


def test_what_fits_is_computed(exe):
    torch.testing.assert_close(exe(X, batch(), 2, mask=X), Model()(X, batch(), 2, mask=X))


def test_named_tuple_of_another_kind():
    class First(nn.Module):
        def forward(self, pair):
            return pair.first + 1

    exe = pipeline.compile(First(), (Pair(X, X),))
    with pytest.raises(ArgumentError, match=r"argument pair: expected a Pair, got a tuple of 2"):
        exe((X, X))
    with pytest.raises(ArgumentError, match=r"argument pair.second: expected float32\[2, 3\], got float32\[3\]"):
        exe(Pair(X, torch.ones(3)))


def test_nothing_is_changed_by_a_refused_call():
    class Adds(nn.Module):
        def forward(self, x, y):
            x.add_(y)
            return x * 2

    x = torch.ones(3)
    exe = pipeline.compile(Adds(), (x.clone(), x.clone()))
    with pytest.raises(ArgumentError):
        exe(x, torch.ones(4))
    torch.testing.assert_close(x, torch.ones(3))


# Sizes that may change.


class Pairs(nn.Module):
    def forward(self, x, y, z):
        return x + y, z * 2


@pytest.fixture(scope="module")
def dynamic():
    n, m = Dim("n", min=3, max=16), Dim("m", min=1, max=8)
    shapes = ({0: n, 1: m}, {0: n}, {0: 2 * n})
    return pipeline.compile(Pairs(), (torch.ones(4, 3), torch.ones(4, 1), torch.ones(8)), dynamic_shapes=shapes)


@pytest.mark.parametrize(("n", "m"), [(3, 1), (16, 8), (5, 3), (4, 0)])
def test_sizes_in_range(dynamic, n, m):
    args = torch.randn(n, m), torch.randn(n, 1), torch.randn(2 * n)
    torch.testing.assert_close(dynamic(*args), Pairs()(*args))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((17, 3), (17, 1), (34,)), "argument x: dimension 0 is 17, expected 3 to 16"),
        (((4, 9), (4, 1), (8,)), "argument x: dimension 1 is 9, expected 0 to 8"),
        (((1, 3), (1, 1), (2,)), "argument x: dimension 0 is 1, expected 3 to 16"),
        (((0, 3), (0, 1), (0,)), "argument x: dimension 0 is 0, expected 3 to 16"),
        (((4, 3), (5, 1), (8,)), "argument y: dimension 0 is 5, expected 4 as in argument x: dimension 0"),
        (((4, 3), (4, 1), (9,)), "argument z: dimension 0 is 9, expected 2*"),
        (((4, 3), (4, 2), (8,)), "argument y: expected float32["),
        (((4,), (4, 1), (8,)), "argument x: expected float32["),
    ],
)
def test_sizes_that_do_not_fit(dynamic, shapes, message):
    with pytest.raises(ArgumentError) as caught:
        dynamic(*map(torch.ones, shapes))
    assert message in str(caught.value)


def test_height_and_width_may_change():
    model = nn.Conv2d(2, 3, 3, padding=1).requires_grad_(False)
    sizes = ({0: Dim("batch", max=8), 2: Dim("height", min=3, max=64), 3: Dim("width", min=3, max=64)},)
    exe = pipeline.compile(model, (torch.randn(2, 2, 8, 9),), dynamic_shapes=sizes)
    for shape in ((1, 2, 8, 9), (3, 2, 5, 30)):
        x = torch.randn(shape)
        torch.testing.assert_close(exe(x), model(x))


def test_dynamic_results_are_whole_tensors_of_their_own():
    """Views in the model, of results that share an allocation: each comes out row-major and can be freed alone."""

    class Views(nn.Module):
        def forward(self, x):
            y = x * 2
            return y, y.t(), y[1:], y.reshape(-1), x[:, ::2], x.reshape(-1), x.view(-1, 2)

    x = torch.randn(6, 4)
    exe = pipeline.compile(Views(), (x,), dynamic_shapes=({0: Dim("n", min=3)},))
    for n in (3, 6, 9):
        x = torch.randn(n, 4)
        results = exe(x)
        torch.testing.assert_close(results, Views()(x))
        assert len({tensor.untyped_storage().data_ptr() for tensor in results}) == len(results)


def test_a_number_as_argument():
    class Scale(nn.Module):
        def forward(self, x, n):
            return x * n

    exe = pipeline.compile(Scale(), (torch.ones(3), 4), dynamic_shapes=(None, Dim.DYNAMIC))
    torch.testing.assert_close(exe(torch.ones(3), 7), torch.full((3,), 7.0))
    for wrong, message in (
        (2.0, "argument n: expected an int, got float"),
        (2**64, "does not fit 64 bits"),
        (True, "got bool"),
    ):
        with pytest.raises(ArgumentError, match=message):
            exe(torch.ones(3), wrong)


def test_wrong_dynamic_shapes_are_one_clear_error():
    with pytest.raises(PipelineError, match="could not capture"):
        pipeline.compile(nn.ReLU(), (torch.ones(2),), dynamic_shapes=({0: Dim("n"), 1: Dim("m")},))


def test_what_shares_memory_is_found_as_by_comparing_all_pairs():
    shared = 0
    for seed in range(300):
        rng = random.Random(seed)
        places = []
        for _ in range(rng.randrange(1, 7)):
            begin = rng.randrange(40)
            places.append((begin, begin + rng.randrange(8), rng.random() < 0.6, rng.random() < 0.3))
        pairs = any(
            one[0] < other[1] and other[0] < one[1] and (one[2] or other[2]) and (one[3] or other[3])
            for one, other in itertools.combinations([place for place in places if place[0] < place[1]], 2)
        )
        assert is_shared(places) == pairs
        shared += pairs
    assert 60 < shared < 240
