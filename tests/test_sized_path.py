"""The short way of calls whose sizes are known at the call only: as the long way, which it leaves the rest to."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn
from torch.export import Dim

import pipeline
from pipeline.errors import ArgumentError, PipelineError
from pipeline.runtime.call.arguments import ArgumentReader
from pipeline.runtime.call.array_libraries import torch_library
from pipeline.runtime.call.size_check import size_check
from pipeline.runtime.call.sized_path import SizedPath
from pipeline.runtime.interface.pytree import LEAF, Tree
from pipeline.runtime.interface.signature import Argument, Guard, Signature, TensorType

ANY = Dim.DYNAMIC


def short(exe, *args):
    """What the short way returns."""
    assert isinstance(exe._fast, SizedPath)
    return exe._fast.call(args, exe._bound)


def check(exe, function, *args):
    """The short way is taken, and gives what the long way and the function give."""
    found, long = short(exe, *args), exe._call(args, {}, None)
    assert found is not NotImplemented
    assert type(found) is type(long)
    for one, other in zip(torch.utils._pytree.tree_leaves(found), torch.utils._pytree.tree_leaves(long), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
        if isinstance(one, torch.Tensor):
            assert one.stride() == other.stride()
            assert one.is_leaf
    torch.testing.assert_close(found, function(*args))


#: (function, its symbolic dims, the dims of the first argument of each call)
FORMS = {
    "one": (lambda x: x + 1, {0: ANY}, [(2, 3), (5, 3), (0, 3), (1, 3)]),
    "two sizes": (lambda x: x.t() @ x, {0: ANY, 1: ANY}, [(2, 3), (7, 5), (0, 4)]),
    "a tuple": (lambda x: (x + 1, x.sum(0)), {0: ANY}, [(2, 3), (6, 3)]),
    "a list": (lambda x: [x * 2], {0: ANY}, [(2, 3), (6, 3)]),
    "a dictionary": (lambda x: {"a": x * 2, "b": (x.shape[0], x.mean())}, {0: ANY}, [(2, 3), (6, 3)]),
    "a transposed result": (lambda x: (x + 1).t(), {0: ANY}, [(2, 3), (6, 3)]),
    "one result twice": (lambda x: (y := x + 1, y.reshape(-1)), {0: ANY}, [(2, 3), (6, 3)]),
    "a size of the data": (lambda x: x[x > 0], {}, [(2, 3), (2, 3)]),
    "places": (lambda x: torch.nonzero(x > 0), {0: ANY}, [(2, 3), (40, 3)]),
    "counts": (lambda x: torch.bincount(x.abs().reshape(-1).long()), {0: ANY}, [(2, 3), (40, 3)]),
    "complex": (lambda x: torch.complex(x, x) * 2, {0: ANY}, [(2, 3), (4, 3)]),
}


@pytest.mark.parametrize("form", FORMS)
def test_both_ways(form):
    function, dims, shapes = FORMS[form]
    torch.manual_seed(0)
    exe = pipeline.compile(function, (torch.randn(shapes[0]) * 3,), dynamic_shapes=(dims or None,))
    for shape in shapes:
        x = torch.randn(shape) * 3
        check(exe, function, x)
        check(exe, function, nn.Parameter(x, requires_grad=False))
        check(exe, function, torch.randn(*reversed(shape)).t())
        check(exe, function, torch.randn(*shape, 2)[..., 1])


def test_numbers_views_and_dtypes():
    def scaled(x, n):
        return x * n

    x = torch.view_as_complex(torch.randn(3, 2))
    exe = pipeline.compile(scaled, (x, 4), dynamic_shapes=({0: ANY}, ANY))
    for n in (3, 0, 2**40):
        check(exe, scaled, torch.view_as_complex(torch.randn(5, 2)).conj(), n)
    for n in (-7, True, 2.0, 2**63, -(2**63) - 1, None):
        assert short(exe, x, n) is NotImplemented
        with pytest.raises(ArgumentError, match="argument n"):
            exe(x, n)
    exe = pipeline.compile(lambda x: x * 2, (torch.ones(3),), dynamic_shapes=({0: ANY},))
    check(exe, lambda x: x * 2, torch.view_as_complex(torch.randn(4, 2)).conj().imag)


def test_the_long_way_says_what_is_wrong():
    def function(x, y):
        return x @ y

    dims = ({0: Dim("rows", min=3, max=9), 1: ANY}, {0: ANY})
    exe = pipeline.compile(function, (torch.randn(4, 6), torch.randn(6, 3)), dynamic_shapes=dims)
    check(exe, function, torch.randn(9, 5), torch.randn(5, 3))
    x, y = torch.randn(4, 6), torch.randn(6, 3)
    freed = torch.randn(6, 3)
    freed.untyped_storage().resize_(0)
    wrong = [
        (x,),
        (x, y, y),
        (x, torch.randn(5, 3)),
        (x, torch.randn(6, 2)),
        (torch.randn(10, 6), y),
        (torch.randn(1, 6), y),
        (x.double(), y),
        (x, y.half()),
        (x[None], y),
        (x[0], y),
        (x.to_sparse(), y),
        (x, freed),
        (x.to("meta"), y),
        (3, y),
        (None, y),
    ]
    for args in wrong:
        assert short(exe, *args) is NotImplemented
        with pytest.raises(ArgumentError, match="expected"):
            exe(*args)
    torch.testing.assert_close(torch.as_tensor(exe(x.numpy(), y.numpy())), function(x, y))
    torch.testing.assert_close(torch.vmap(exe, (0, None))(torch.stack([x, x]), y), torch.stack([function(x, y)] * 2))


def test_checks_that_fail():
    exe = pipeline.compile(lambda x, i: x[i], (torch.ones(4), torch.tensor([1])), dynamic_shapes=({0: ANY}, None))
    check(exe, lambda x, i: x[i], torch.arange(7.0), torch.tensor([6]))
    assert short(exe, torch.arange(7.0), torch.tensor([7])) is NotImplemented
    for _ in range(3):
        with pytest.raises(PipelineError, match="out of range"):
            exe(torch.arange(7.0), torch.tensor([7]))
    exe = pipeline.compile(lambda x: torch.bincount(x), (torch.tensor([1, 2]),), dynamic_shapes=({0: ANY},))
    assert short(exe, torch.tensor([1, -2])) is NotImplemented
    with pytest.raises(PipelineError, match="non-negative"):
        exe(torch.tensor([1, -2]))


def test_weights_that_change():
    model = nn.Linear(3, 2).requires_grad_(False)
    exe = pipeline.compile(model, (torch.ones(4, 3),), dynamic_shapes=({0: ANY},))
    x = torch.randn(5, 3)
    check(exe, model, x)
    with torch.no_grad():
        model.weight.mul_(2)
    assert short(exe, x) is NotImplemented
    torch.testing.assert_close(exe(x), model(x))
    check(exe, model, x)


def test_random_numbers_advance():
    exe = pipeline.compile(lambda x: torch.rand_like(x), (torch.ones(4, 3),), dynamic_shapes=({0: ANY},))
    torch.manual_seed(3)
    first, second = short(exe, torch.ones(5, 3)), short(exe, torch.ones(5, 3))
    torch.manual_seed(3)
    assert torch.equal(first, exe._call((torch.ones(5, 3),), {}, None))
    assert not torch.equal(first, second)


CONDITIONS = [(), ("Ne(s0, s1)",), ("s0 % 2 == 0", "~(s1 > 3) | (s0 < 3)"), ("6 // (s0 - 2) > 1",)]


@pytest.mark.parametrize("conditions", CONDITIONS)
@pytest.mark.parametrize("shape", [("s0", "s1"), ("s0", "2*s0 + s1"), ("s1", 3), ("Max(s0, s1)", "s0 // 2")])
def test_sizes_fit_as_the_long_way_finds(conditions, shape):
    """All small sizes, one by one."""
    kinds = [("s0", "s1"), shape]
    arguments = (
        *(Argument(f"x{at}", "tensor", TensorType("float32", kind)) for at, kind in enumerate(kinds)),
        Argument("n", "int", value="s2"),
    )
    signature = Signature(
        arguments,
        Tree("tuple", (Tree("tuple", (LEAF,) * 3), Tree("dict"))),
        (),
        (),
        LEAF,
        ranges=(("s0", 1, 5), ("s1", 0, 4), ("s2", -2, 2)),
        guards=tuple(Guard(condition, "a line") for condition in conditions),
    )
    fits, reader = size_check(signature), ArgumentReader(signature)
    seen = set()
    for a, b, c, d, n in itertools.product(range(7), range(6), range(6), range(12), (-3, 2)):
        try:
            reader.read((torch.empty(a, b), torch.empty(c, d), n), {}, torch_library(), ())
            wanted = True
        except ArgumentError:
            wanted = False
        try:
            found = bool(fits((a, b), (c, d), n))
        except ZeroDivisionError:
            found = False
        assert found == wanted
        seen.add(found)
    assert seen == {True, False}


def test_sizes_of_which_a_symbol_has_to_be_computed():
    argument = Argument("x", "tensor", TensorType("float32", ("2*s0 + 1",)))
    signature = Signature((argument,), LEAF, (), (), LEAF)
    assert size_check(signature) is None


@pytest.mark.parametrize("condition", ["s0.real", "[s0]", "1e999 > s0", "Max(*s0)", "s0 if s0 else s0", "'a' < s0"])
def test_what_a_file_says_is_arithmetic(condition):
    with pytest.raises(PipelineError, match="arithmetic"):
        size_check(guarded(condition))


@pytest.mark.parametrize("condition", ["__import__('os')", "len(s0)", "(lambda x: x)(s0)", "s1 > 3"])
def test_names_that_a_file_says_and_that_there_are_not(condition):
    assert size_check(guarded(condition)) is None


def guarded(condition):
    argument = Argument("x", "tensor", TensorType("float32", ("s0",)))
    return Signature((argument,), LEAF, (), (), LEAF, guards=(Guard(condition, "a line"),))


def test_arguments_that_are_written_to():
    """A step of an optimizer, without one."""

    def step(parameter, momentum, gradient):
        momentum.mul_(0.9).add_(gradient)
        parameter.sub_(momentum)
        return momentum.sum(), gradient * 2

    def args(count):
        return [nn.Parameter(torch.ones(count)), torch.zeros(count), torch.arange(float(count))]

    with torch.no_grad():
        exe = pipeline.compile(step, tuple(args(5)), dynamic_shapes=({0: ANY},) * 3)
        for count in (5, 9, 1, 0):
            given, expected = args(count), [one.detach().clone() for one in args(count)]
            for _ in range(2):
                versions = [one._version for one in given]
                result = short(exe, *given)
                torch.testing.assert_close(result, step(*expected))
                torch.testing.assert_close([one.detach() for one in given], expected)
                moved = [one._version - before for one, before in zip(given, versions, strict=True)]
                assert moved == [1, 1, 0]
        shared, line = torch.zeros(8), torch.zeros(5)
        for bad in ((shared[:5], shared[3:]), (line, line)):
            assert short(exe, *bad, torch.ones(5)) is NotImplemented
            with pytest.raises(ArgumentError, match="shares memory"):
                exe(*bad, torch.ones(5))
        assert not shared.any()
        wide = torch.zeros(5, 2)
        assert short(exe, wide[:, 0], line, torch.ones(5)) is NotImplemented
        exe(wide[:, 0], line, torch.ones(5))
        assert torch.equal(wide[:, 0], -torch.ones(5))
        assert not wide[:, 1].any()
