"""Results that a program permutes at its end lie in memory as eager's do, and cost no transposition."""

import numpy as np
import pytest
import torch
from function_model import Function
from numerics import differences
from torch.export import Dim

import pipeline

X = torch.arange(60.0).reshape(3, 4, 5)


def compiled(program, *args, **options):
    return pipeline.compile(program, args, cache=False, **options)


def both(x):
    y = x * 2
    return y, y.transpose(0, 1)


def both_permuted(x):
    y = x * 2
    return y.transpose(0, 2), y.transpose(0, 1)


def twice(x):
    y = (x * 2).transpose(0, 2)
    return y, y


def nested(x):
    y = (x * 2).transpose(0, 2)
    return {"first": y, "rest": [y.sum(), (x + 1).transpose(0, 1)]}


@pytest.mark.parametrize(
    "program",
    [
        lambda x: (x * 2).transpose(1, 2),
        lambda x: (x * 2).permute(2, 0, 1).transpose(0, 1),
        lambda x: (x[0] * 2).t(),
        lambda x: torch.fft.rfft(torch.cat([x, x[:, :, :3]], -1)).transpose(0, 1),
        lambda x: (torch.complex(x, -x) * 2j).mT,
        nested,
        twice,
    ],
)
def test_they_have_the_strides_of_eagers(program):
    executable = compiled(program, X)
    for _ in range(2):  # calls in between take another way
        got, expected = executable(X), program(X)
        assert not differences(got, expected)
        for one, other in zip(*map(torch.utils._pytree.tree_leaves, (got, expected)), strict=True):
            assert one.stride() == other.stride()
            assert not one._is_view(), "autograd refuses writes to views that a function returns"
    assert not any("transpose" in kernel.name for kernel in executable.kernels)


LAST = torch.channels_last
IMAGES = torch.randn(2, 3, 8, 6, generator=torch.Generator().manual_seed(0))
BESIDE_IMAGES = {
    "elementwise": lambda x: x.relu() + 1,
    "convolution": torch.nn.Conv2d(3, 5, 3),
    "layers": torch.nn.Sequential(torch.nn.Conv2d(3, 5, 3), torch.nn.BatchNorm2d(5), torch.nn.MaxPool2d(2)).eval(),
    "norm": torch.nn.GroupNorm(1, 3),
    "resized": lambda x: torch.nn.functional.interpolate(x, scale_factor=2),
    "joined": lambda x: torch.cat([x, x * 2], 1),
    "seen as rows": lambda x: (x.relu(), x.relu().permute(0, 2, 3, 1)),
    "row-major": lambda x: (x.contiguous() * 2, x.argmax(1), (x * 1).flatten(1)),
    "laid out": lambda x: (x.contiguous() * 2).to(memory_format=LAST),
    "twice": lambda x: (lambda y: (y, y, y.sum()))(x + 1),
}


@pytest.mark.parametrize("name", BESIDE_IMAGES)
def test_images_whose_channels_lie_last(name):
    program, x = BESIDE_IMAGES[name], IMAGES.to(memory_format=LAST)
    with torch.no_grad():
        expected = torch.utils._pytree.tree_leaves(program(x))
        for call in (compiled(program, x), torch.compile(program, backend="pipeline")):
            got = torch.utils._pytree.tree_leaves(call(x))
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
            assert [leaf.stride() for leaf in got] == [leaf.stride() for leaf in expected]


@pytest.mark.parametrize("layout", [LAST, torch.contiguous_format])
def test_what_is_returned_twice_is_one_tensor(layout):
    first, second, _ = compiled(BESIDE_IMAGES["twice"], x := IMAGES.to(memory_format=layout))(x)
    assert first.data_ptr() == second.data_ptr() and first.stride() == second.stride() == x.stride()


def test_sums_of_what_is_permuted():
    x, y = torch.randn(1, 4, 3, 5).permute(0, 2, 3, 1), torch.randn(4, 3, 5).permute(1, 2, 0)
    got = torch.compile(torch.add, backend="pipeline")(x, y)
    assert got.stride() == (x + y).stride() != (60, 20, 4, 1)
    assert torch.equal(got.permute(0, 3, 1, 2).view(-1), (x + y).permute(0, 3, 1, 2).view(-1))


@pytest.mark.parametrize(
    "program", [both, both_permuted, lambda x: x.permute(2, 0, 1), lambda x: x[1:].transpose(0, 1)]
)
def test_those_that_would_share_memory_have_their_own(program):
    got = compiled(program, X)(X)
    assert not differences(got, program(X))
    leaves = [X, *torch.utils._pytree.tree_leaves(got)]
    assert len({leaf.untyped_storage().data_ptr() for leaf in leaves}) == len(leaves)


def test_those_beside_numbers():
    def program(x):
        return (x * 2).transpose(0, 1), x.sum().item(), x.shape[0], x.shape[1] * 2, None, 3, x[:0].sum() > 1

    x = torch.ones(3, 4)
    for executable in (compiled(program, x), compiled(program, x, dynamic_shapes=({0: Dim("n", max=9)},))):
        got, *others = executable(x)
        assert torch.equal(got, program(x)[0]) and got.stride() == (1, 4)
        assert others == [12.0, 3, 8, None, 3, torch.tensor(False)]


def test_large_ones():
    def program(x):
        return (x * 2).transpose(1, 2)

    x = torch.randn(30, 400, 50)
    executable = compiled(program, x)
    first, second = executable(x), executable(x)
    assert torch.equal(first, program(x)) and torch.equal(second, first)
    assert first.stride() == second.stride() == program(x).stride()


def test_those_of_symbolic_sizes():
    def program(x):
        return (x * 2).transpose(0, 1)

    executable = compiled(program, torch.randn(6, 8), dynamic_shapes=({0: Dim("n", max=64), 1: Dim("m", max=64)},))
    for shape in ((1, 1), (5, 0), (0, 5), (7, 3)):
        x = torch.randn(shape)
        assert torch.equal(executable(x), program(x))
    out = torch.empty(3, 7)
    assert torch.equal(executable(torch.ones(7, 3), out=out), program(torch.ones(7, 3)))
    with pytest.raises(pipeline.ArgumentError, match=r"has shape \(8, 4\), the result \(8, 5\)"):
        executable(torch.randn(5, 8), out=torch.empty(8, 4))


@pytest.mark.parametrize("shape", [(0, 1, 2), (0, 2, 1), (2, 1, 0)])
def test_out_of_any_layout(shape):
    expected = (X * 2).transpose(1, 2)
    out = torch.empty([expected.shape[dim] for dim in shape]).permute([shape.index(dim) for dim in range(3)])
    executable = compiled(lambda x: (x * 2).transpose(1, 2), X)
    assert executable(X, out=out) is out
    assert torch.equal(out, expected)
    with pytest.raises(pipeline.ArgumentError, match=r"out: expected float32\[3, 5, 4\], got float32\[3, 4, 5\]"):
        executable(X, out=torch.empty(3, 4, 5))


def test_those_of_numpy_of_files_and_of_devices(tmp_path):
    program = Function(lambda x: (x * 2).transpose(1, 2))
    expected = program(X)
    executable = pipeline.compile(program, (X,), cache=False)
    assert np.array_equal(executable(X.numpy()), expected.numpy())
    executable.save(tmp_path / "model")
    assert torch.equal(pipeline.load(tmp_path / "model")(X), expected)
    assert torch.equal(pipeline.compile(program, (X,), target="vulkan", cache=False)(X), expected)


def test_those_that_are_trained_and_written_to():
    model = torch.compile(lambda x: (x * 2).transpose(1, 2), backend="pipeline")
    x = X.clone().requires_grad_()
    y = model(x)
    y += 1
    y.sum().backward()
    assert x.grad.unique().tolist() == [2]
    with torch.no_grad():
        assert model(X).stride() == (20, 1, 5)


def test_those_of_each_of_a_batch():
    executable = compiled(lambda x: (x * 2).t(), X[0])
    assert torch.equal(torch.func.vmap(executable)(X), (X * 2).transpose(1, 2))
