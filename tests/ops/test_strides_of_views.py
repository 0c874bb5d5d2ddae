"""as_strided of views: it reads the memory of the tensor that they are views of, which goes on behind them."""

import pytest
import torch
from dynamo_state import fresh_dynamo
from function_model import Function
from numerics import check, differences
from torch import as_strided
from torch.export import Dim
from torch.utils import _pytree as pytree

import pipeline

__all__ = ["fresh_dynamo"]

#: Of x + 1: [2, 3, 20, 20].
VIEWS = {
    "strides": lambda y: as_strided(y, [2, 3, 2, 20, 12], [1200, 400, 160, 1, 20]),
    "a part of strides": lambda y: as_strided(y, [6, 20, 20], [400, 1, 20])[2],
    "a channel": lambda y: y[:, 1:2],
    "an image": lambda y: y[1],
    "a part": lambda y: y[:, 1],
    "permuted": lambda y: y.permute(3, 0, 2, 1),
    "windows": lambda y: y.unfold(2, 3, 2),
    "a diagonal": lambda y: y.diagonal(0, 2, 3),
    "expanded": lambda y: y[:1, :1, :1].expand(4, 5, 6, 20),
    "one of several": lambda y: y.chunk(3, 1)[1],
    "a view of a view": lambda y: y[1].view(3, -1)[1:].t(),
    "itself": lambda y: y,
}


def strided(view, offset=None):
    """Of what begins where the view does, or at a place in memory."""
    return lambda x: as_strided(view(x + 1), [3, 4], [20, 1], offset) * 2


def all_strided(offset=None):
    """Of all views, each of a tensor of its own."""
    functions = [strided(view, offset) for view in VIEWS.values()]
    return lambda *xs: [function(x) for function, x in zip(functions, xs, strict=True)]


def drawn(size):
    """A tensor for each view."""
    return [torch.randn(2, 3, size, 20) for _ in VIEWS]


@pytest.mark.parametrize("offset", [None, 7])
def test_of_known_sizes(offset):
    check(Function(all_strided(offset)), *drawn(20))


@pytest.mark.parametrize("offset", [None, 7])
def test_of_symbolic_sizes(offset):
    function = all_strided(offset)
    code = torch.compile(function, backend="pipeline", dynamic=True)
    for size in (20, 23):
        xs = drawn(size)
        with torch.no_grad():
            assert not differences(code(*xs), function(*xs))


def check_gradients(function, xs, dynamic):
    mine, its = ([x.clone().requires_grad_() for x in xs] for _ in range(2))
    for given, code in ((mine, torch.compile(function, backend="pipeline", dynamic=dynamic)), (its, function)):
        torch.stack([result.sin().sum() for result in pytree.tree_leaves(code(*given))]).sum().backward()
    assert not differences([x.grad for x in mine], [x.grad for x in its])


def test_gradients_are_eagers():
    """Eager's are of the view's own elements alone."""
    check_gradients(all_strided(), drawn(20), dynamic=False)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_gradients_of_symbolic_sizes_are_eagers(view):
    check_gradients(strided(view), [torch.randn(2, 3, 20, 20)], dynamic=True)


#: Shapes, what is viewed, and (sizes, strides, offset) of dims that lie in memory without gaps.
DENSE = {
    "units": ((2, 1, 1, 6), lambda y: y.permute(0, 3, 1, 2), ([2, 6, 1, 1], [6, 1, 6, 6])),
    "units in front": ((1, 1, 5, 6), lambda y: y.permute(2, 1, 3, 0), ([5, 1, 6, 1], [6, 1, 1, 1])),
    "a line": ((2, 6, 1, 1), lambda y: y, ([12], [1])),
    "one": ((1, 1, 1), lambda y: y.mT, ([1], [7])),
    "reversed": ((2, 3, 4), lambda y: y, ([4, 3, 2], [1, 4, 12])),
    "of columns": ((3, 4), lambda y: y.t(), ([3, 4], [4, 1])),
    "other dims": ((2, 3, 4), lambda y: y.permute(2, 0, 1), ([6, 4], [4, 1])),
    "a part": ((4, 6), lambda y: y, ([2, 6], [6, 1], 6)),
    "a part of columns": ((4, 6), lambda y: y, ([3, 2], [1, 3], 12)),
}


@pytest.mark.parametrize("name", DENSE)
def test_dims_that_lie_without_gaps(name):
    """They are another shape of the elements, and nothing is gathered."""
    shape, view, numbers = DENSE[name]
    x = torch.randn(shape)

    def function(x):
        return as_strided(view(x + 1), *numbers) * 2

    executable = pipeline.compile(Function(function), (x,))
    torch.testing.assert_close(executable(x), function(x))
    assert "tensor.extract " not in executable.ir("linalg")
    mine, its = x.clone().requires_grad_(), x.clone().requires_grad_()
    torch.compile(function, backend="pipeline", options={"fallback": "error"})(mine).sin().sum().backward()
    function(its).sin().sum().backward()
    torch.testing.assert_close(mine.grad, its.grad)


def test_of_exported_symbolic_sizes():
    def program(x):
        return strided(VIEWS["strides"])(x), strided(VIEWS["one of several"])(x), strided(VIEWS["a diagonal"])(x)

    code = pipeline.compile(
        Function(program), (torch.randn(2, 3, 20, 20),), dynamic_shapes=(({0: Dim.AUTO, 2: Dim.AUTO},),)
    )
    for shape in ((2, 3, 20, 20), (3, 3, 25, 20)):
        x = torch.randn(shape)
        assert not differences(code(x), program(x))


def test_what_is_written_to_them():
    def program(x):
        y, z = x + 1, x + 2
        part = as_strided(y[1], [3, 4], [20, 1])
        part.add_(5)
        channel = z[:, 1]
        z.mul_(2)
        return y, part, as_strided(channel, [3, 4], [20, 1])

    x = torch.randn(2, 3, 20, 20)
    check(Function(program), x)
    with torch.no_grad():
        got = torch.compile(program, backend="pipeline", dynamic=True)(x)
    assert all(map(torch.equal, pytree.tree_leaves(got), pytree.tree_leaves(program(x))))


def test_a_size_of_strides_that_backward_needs():
    """The products of sizes that are strides are computed anew behind the decompositions."""

    def program(x):
        return as_strided(x.permute(3, 0, 2, 1), [3, 4], [20, 1]) * 2

    x = torch.randn(2, 3, 20, 20, requires_grad=True)
    torch.compile(program, backend="pipeline", dynamic=True)(x).sum().backward()
    assert x.grad is not None and int((x.grad == 2).sum()) == 12


RESULTS = {
    "strides": lambda x, n: as_strided(x, (n, 3), (1, n)),
    "strides from a place": lambda x, n: as_strided(x, (2, 3), (1, 2), n),
    "a view of them": lambda x, n: as_strided(x, (n, 3, 2), (1, n, 4))[1:].transpose(0, 1),
    "what is computed of them, too": lambda x, n: (y := as_strided(x, (n, 3), (1, n)), y * 2),
}


@pytest.mark.parametrize("trains", [False, True])
@pytest.mark.parametrize("function", RESULTS.values(), ids=RESULTS)
def test_results_that_are_views_of_an_argument(function, trains):
    """They lie in its memory, in the places that eager's do."""
    x = torch.randn(8, 6).requires_grad_(trains)
    code = torch.compile(function, backend="pipeline", dynamic=True)
    for n in (2, 3):
        for got, expected in zip(*map(pytree.tree_leaves, (code(x, n), function(x, n))), strict=True):
            assert torch.equal(got, expected)
            if expected._is_view():
                assert got.stride() == expected.stride() and got.data_ptr() == expected.data_ptr()
