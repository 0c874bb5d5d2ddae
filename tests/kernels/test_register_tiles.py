"""Kernels of register tiles against float64: odd sizes, edges, strides; test_schedules.py has every ISA."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from function_model import Function

import pipeline
from pipeline.runtime.native.cpu_features import host_features
from pipeline.targets.cpu.isa import isa

CPUS = [cpu for cpu in ("native", "x86-64", "x86-64-v3", "x86-64-v4") if set(isa(cpu).required) <= host_features()]


def check(function, *args, cpu="native", dynamic_shapes=None, others=()):
    """Compiles for `args`, and compares with float64 on them and on the other arguments."""
    module = Function(function)
    shapes = None if dynamic_shapes is None else (dynamic_shapes,)
    executable = pipeline.compile(module, args, cpu=cpu, dynamic_shapes=shapes)
    for inputs in (args, *others):
        exact = function(*(x.double() if x.is_floating_point() else x for x in inputs))
        result = executable(*inputs)
        assert result.shape == exact.shape
        torch.testing.assert_close(result.double(), exact, rtol=2e-5, atol=2e-5)
    return executable


SIZES = (0, 1, 2, 7, 16, 17, 33, 70)


def test_matmul_of_odd_sizes():
    torch.manual_seed(0)
    chosen = list(itertools.product(SIZES, repeat=3))[::37]

    def all_products(*matrices):
        return [left @ right for left, right in zip(matrices[::2], matrices[1::2], strict=True)]

    matrices = [torch.randn(size) for m, n, k in chosen for size in ((m, k), (k, n))]
    results = pipeline.compile(Function(all_products), tuple(matrices))(*matrices)
    for result, left, right in zip(results, matrices[::2], matrices[1::2], strict=True):
        torch.testing.assert_close(result.double(), left.double() @ right.double(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("cpu", CPUS)
def test_matmul_of_dynamic_sizes(cpu):
    torch.manual_seed(0)
    dim = torch.export.Dim
    m, n, k = dim("m"), dim("n"), dim("k")
    pairs = [(torch.randn(m, k), torch.randn(k, n)) for m, n, k in [(5, 70, 9), (1, 3, 2), (64, 64, 64), (17, 33, 1)]]
    check(torch.matmul, *pairs[0], cpu=cpu, dynamic_shapes=({0: m, 1: k}, {0: k, 1: n}), others=pairs[1:])


def test_matmul_in_float64_and_int32():
    torch.manual_seed(0)
    check(torch.matmul, torch.randn(9, 21).double(), torch.randn(21, 19).double())
    left, right = torch.randint(-9, 9, (9, 21), dtype=torch.int32), torch.randint(-9, 9, (21, 19), dtype=torch.int32)
    result = pipeline.compile(Function(torch.matmul), (left, right))(left, right)
    assert torch.equal(result, left @ right)


def test_batched_matmul():
    torch.manual_seed(0)
    check(torch.bmm, torch.randn(3, 13, 5), torch.randn(3, 5, 35))


CONVOLUTIONS = [
    # channels in, channels out, kernel, stride, padding, dilation, groups, height, width
    (3, 8, 3, 1, 1, 1, 1, 9, 17),
    (3, 8, 7, 2, 3, 1, 1, 23, 23),
    (5, 9, 1, 1, 0, 1, 1, 7, 7),
    (5, 9, 1, 2, 0, 1, 1, 8, 7),
    (4, 6, 3, 1, 2, 2, 1, 12, 40),
    (6, 6, 3, 1, 1, 1, 6, 14, 14),
    (6, 12, 3, 2, 1, 1, 6, 15, 33),
    (4, 8, 3, 1, 0, 1, 2, 8, 8),
    (4, 8, 4, 4, 0, 1, 1, 16, 36),
    (512, 32, 3, 1, 1, 1, 1, 7, 7),
    (2, 33, 3, 3, 1, 1, 1, 16, 16),
]


def test_convolutions():
    torch.manual_seed(0)
    inputs, calls = [], []
    for c, f, k, stride, padding, dilation, groups, h, w in CONVOLUTIONS:
        weight = torch.randn(f, c // groups, k, k) / (c // groups * k * k) ** 0.5
        inputs += [torch.randn(2, c, h, w), weight]
        calls.append((stride, padding, dilation, groups))

    def all_convolutions(*tensors):
        pairs = zip(tensors[::2], tensors[1::2], calls, strict=True)
        return [F.conv2d(x, weight, None, *call) for x, weight, call in pairs]

    results = pipeline.compile(Function(all_convolutions), tuple(inputs))(*inputs)
    exact = all_convolutions(*(x.double() for x in inputs))
    for result, wanted in zip(results, exact, strict=True):
        torch.testing.assert_close(result.double(), wanted, rtol=1e-5, atol=1e-5)


def test_pooling():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 17, 35)

    def pools(x):
        return [F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2, 2), F.max_pool2d(x, 2, 1), F.adaptive_avg_pool2d(x, 1)]

    for result, wanted in zip(pipeline.compile(Function(pools), (x,))(x), pools(x.double()), strict=True):
        torch.testing.assert_close(result.double(), wanted, rtol=1e-5, atol=1e-5)


def test_row_reductions():
    torch.manual_seed(0)
    inputs = tuple(torch.randn(size) for size in [(3, 1), (4, 17), (5, 64), (2, 3, 130), (6, 1000), (7, 0), (0, 5)])

    def reductions(*tensors):
        sums = [x.sum(-1) for x in tensors] + [x.sum() for x in tensors] + [x.sum((0, -1)) for x in tensors]
        return sums + [x.amax(-1) for x in tensors[:5]] + [x.amin(-1, keepdim=True) for x in tensors[:5]]

    results = pipeline.compile(Function(reductions), inputs)(*inputs)
    for result, wanted in zip(results, reductions(*(x.double() for x in inputs)), strict=True):
        torch.testing.assert_close(result.double(), wanted, rtol=1e-5, atol=1e-4)


def test_row_reductions_of_integers_and_dynamic_sizes():
    torch.manual_seed(0)
    dim = torch.export.Dim("n", max=5000)

    def reductions(x):
        return x.sum(-1), x.amax(-1), x.amin(-1), x.prod(-1)

    sizes = [100, 5, 17, 4097]
    tensors = [torch.randint(-(2**40), 2**40, (3, size)) for size in sizes]
    executable = pipeline.compile(Function(reductions), (tensors[0],), dynamic_shapes=(({1: dim},),))
    for x in tensors:
        for result, wanted in zip(executable(x), reductions(x), strict=True):
            assert torch.equal(result, wanted)


def test_row_maximum_keeps_nan():
    x = torch.randn(3, 100)
    x[1, 37] = float("nan")
    result = pipeline.compile(Function(lambda x: x.amax(-1)), (x,))(x)
    torch.testing.assert_close(result, x.amax(-1), equal_nan=True, rtol=0, atol=0)


def test_multiplication_and_addition_stay_two_roundings():
    """Only a contraction's accumulation is fused; x * y + z of the model's own rounds twice, as in PyTorch."""
    torch.manual_seed(0)
    x, y, z = torch.randn(3, 1000)
    result = pipeline.compile(Function(lambda x, y, z: x * y + z), (x, y, z))(x, y, z)
    assert torch.equal(result, x * y + z)


def test_nan_and_infinity_pass_through():
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0] * 7)
    result = pipeline.compile(Function(lambda x: (torch.relu(x), x * 0, x + 1)), (x,))(x)
    for got, wanted in zip(result, (torch.relu(x), x * 0, x + 1), strict=True):
        torch.testing.assert_close(got, wanted, equal_nan=True, rtol=0, atol=0)


def test_what_is_not_vectorized_leaves_a_remark():
    executable = pipeline.compile(Function(lambda x: x[:, ::2] + 1), (torch.randn(40, 50),))
    remarks = [remark for remark in executable.remarks if remark.pass_name == "tile-and-vectorize"]
    assert ["innermost dimension is strided" in one.reason for one in remarks if one.kind == "missed"] == [True]


def test_a_loop_of_one_iteration_becomes_no_vector():
    """A column copied element by element with masked vectors took LLVM minutes in models of many small slices."""
    executable = check(lambda x, y: torch.cat([x[:, 2:3] + 0, y], 1), torch.randn(64, 14), torch.randn(64, 3))
    tiles = [remark.reason for remark in executable.remarks if remark.pass_name == "tile-and-vectorize"]
    assert any("no loop runs along" in reason or "no parallel loop runs along" in reason for reason in tiles)


KINDS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.float32, torch.float64)
KINDS += (torch.uint8, torch.bool, torch.float16, torch.bfloat16)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_nothing_is_written_behind_a_result(kind):
    """The result is a slice of a larger tensor whose other elements must stay; LLVM once stored too much there."""
    sizes = (1, 3, 9, 16, 17, 23, 65)
    inputs = [torch.arange(2 * size).reshape(2, size).to(other) for other in KINDS for size in sizes]

    def function(*tensors):
        return [(x + 1).to(kind) for x in tensors]

    wholes = [torch.full((x.numel() + 64,), 77, dtype=kind) for x in inputs]
    outs = [whole[16 : 16 + x.numel()].view(x.shape) for whole, x in zip(wholes, inputs, strict=True)]
    pipeline.compile(Function(function), tuple(inputs))(*inputs, out=outs)
    for x, whole, out, wanted in zip(inputs, wholes, outs, function(*inputs), strict=True):
        assert torch.equal(out, wanted), (x.dtype, x.shape)
        border = torch.tensor(77).to(kind)
        assert (whole[:16] == border).all() and (whole[16 + x.numel() :] == border).all(), (x.dtype, x.shape)
