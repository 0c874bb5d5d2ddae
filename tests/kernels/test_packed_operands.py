"""Products that read an operand in panels packed in front of them, against eager and float64."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from function_model import Function
from schedules import values

import pipeline


def packed(exe):
    """How many kernels read a packed operand."""
    return sum(1 for one in exe.remarks if one.pass_name == "pack-operands" and one.kind == "passed")


def check(function, *args, kernels=1, **options):
    """Compiles a function that has to pack operands for so many kernels; compares it with eager, in float64 too."""
    exe = pipeline.compile(Function(function), args, **options)
    assert packed(exe) == kernels, [str(one) for one in exe.remarks if one.pass_name == "pack-operands"]
    compare(exe, function, args)
    return exe


def compare(exe, function, args):
    """With eager, and float32 with float64: eager's order differs from CPU to CPU, which shows where sums are rounded.

    Sums of whole numbers are not.
    """
    if function(*args).dtype != torch.float32:
        torch.testing.assert_close(exe(*args), function(*args))
        return
    whole = [one.round() if one.is_floating_point() else one for one in args]
    torch.testing.assert_close(exe(*whole), function(*whole))
    exact = function(*(one.double() if one.is_floating_point() else one for one in args))
    torch.testing.assert_close(exe(*args).double(), exact, atol=2e-4, rtol=1e-5)


def transposed(x, w):
    return x @ w.t()


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 13, 70])
@pytest.mark.parametrize(("inner", "columns"), [(256, 96), (130, 333), (1031, 64), (64, 1000)])
def test_transposed_copies_are_packed_instead(rows, inner, columns):
    """But for a few rows, which read the lines as they lie."""
    torch.manual_seed(0)
    x, w = torch.randn(rows, inner), torch.randn(columns, inner)
    exe = pipeline.compile(Function(transposed), (x, w))
    names = [kernel.name for kernel in exe.kernels]
    assert packed(exe) == names.count("pack_0") == int(any(name.startswith("pack") for name in names))
    assert packed(exe) == (rows > 4), names
    assert not any(name.startswith("transpose") for name in names)
    torch.testing.assert_close(exe(x, w).double(), x.double() @ w.double().t(), atol=2e-4, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64])
def test_types(dtype):
    for columns in (192, 345):
        check(transposed, values(19, 256, dtype=dtype), values(columns, 256, dtype=dtype))


@pytest.mark.parametrize("columns", [1024, 300, 1500])
def test_rows_that_conflict_or_are_far_apart(columns):
    torch.manual_seed(0)
    rows = 260 if columns == 1024 else 514
    check(torch.matmul, torch.randn(rows, 130), torch.randn(130, columns), kernels=1)
    exe = check(torch.matmul, torch.randn(200, 130), torch.randn(130, columns), kernels=0)
    assert any("rows of the other operand would pay for that, it has 200" in str(one) for one in exe.remarks)


def test_batches_and_heads():
    torch.manual_seed(0)
    check(lambda x, w: x @ w.transpose(1, 2), torch.randn(3, 33, 70), torch.randn(3, 260, 70))
    check(lambda x, w: torch.einsum("bmhk,bnhk->bmhn", x, w), torch.randn(2, 9, 4, 48), torch.randn(2, 130, 4, 48))
    check(lambda x, w: torch.einsum("mk,hnk->mhn", x, w), torch.randn(19, 48), torch.randn(6, 64, 48))


def test_behind_a_product():
    torch.manual_seed(0)
    check(lambda x, w, b: F.gelu(F.linear(x, w, b)), torch.randn(33, 128), torch.randn(257, 128), torch.randn(257))
    check(lambda x, w, b: x + F.linear(x, w, b), torch.randn(33, 256), torch.randn(256, 256), torch.randn(256))


def test_one_copy_for_two_products():
    torch.manual_seed(0)

    def both(x, y, w):
        return torch.cat((torch.relu(x @ w.t()), y @ w.t()), 0)

    args = torch.randn(33, 128), torch.randn(20, 128), torch.randn(320, 128)
    exe = check(both, *args, kernels=2)
    assert [kernel.name for kernel in exe.kernels].count("pack_0") == 1


def test_a_copy_that_is_a_result_too():
    torch.manual_seed(0)

    def both(x, w):
        copy = w.t().contiguous()
        return x @ copy, copy * 1

    x, w = torch.randn(33, 128), torch.randn(320, 128)
    exe = pipeline.compile(Function(both), (x, w))
    for found, expected in zip(exe(x, w), both(x, w), strict=True):
        torch.testing.assert_close(found, expected)


def test_aliased_and_strided_operands():
    torch.manual_seed(0)
    x = torch.randn(190, 200)
    check(lambda x: x @ x.t(), x)
    check(lambda x: x[:, ::2] @ x[1:, ::2].t(), x)
    exe = pipeline.compile(Function(transposed), (torch.randn(33, 100), torch.randn(130, 100)))
    args = torch.randn(33, 200)[:, ::2], torch.randn(130, 200)[:, 1::2]
    compare(exe, transposed, args)


def test_operands_of_size_zero():
    for rows, inner, columns in ((0, 128, 320), (33, 0, 320), (33, 128, 0)):
        x, w = torch.randn(rows, inner), torch.randn(columns, inner)
        torch.testing.assert_close(pipeline.compile(Function(transposed), (x, w))(x, w), transposed(x, w))


def test_in_a_loop_and_in_branches():
    torch.manual_seed(0)

    def loop(x, w):
        def step(i, x):
            return i + 1, torch.tanh(x @ w.t())

        zero = torch.zeros((), dtype=torch.int64)
        return torch.while_loop(lambda i, x: i < 3, step, (zero, x))[1]

    def branches(x, w):
        return torch.cond(x.sum() > 0, lambda x, w: x @ w.t(), lambda x, w: x - w.t()[:1], (x, w))

    args = torch.randn(33, 160), torch.randn(160, 160) / 160**0.5  # or rounds would make errors larger
    exe = pipeline.compile(Function(loop), args)
    assert packed(exe) == 1
    torch.testing.assert_close(exe(*args), loop(*args))
    exe = pipeline.compile(Function(branches), args)
    for x in (args[0], -args[0]):
        torch.testing.assert_close(exe(x, args[1]), branches(x, args[1]), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v3"])
def test_on_other_cpus(cpu):
    torch.manual_seed(0)
    check(transposed, torch.randn(33, 128), torch.randn(330, 128), cpu=cpu)


def test_on_two_threads():
    torch.manual_seed(0)
    check(transposed, torch.randn(65, 300), torch.randn(700, 300), num_threads=2)


def test_products_of_weights_in_prepare():
    """Two layers that become one: the product of their weights is computed by @prepare."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(320, 384), torch.nn.Linear(384, 300)).eval().requires_grad_(False)
    x = torch.randn(9, 320)
    exe = pipeline.compile(model, (x,))
    assert any(one.pass_name == "merge-linears" and one.kind == "passed" for one in exe.remarks)
    assert packed(exe)
    torch.testing.assert_close(exe(x), model(x), atol=1e-4, rtol=1e-4)
