"""Contractions of bf16: `precision="bf16"` and models in bf16, against float64 with the operands rounded.

On a CPU without dot products of bf16 the option rounds nothing; the tests then expect that.
"""

from __future__ import annotations

import copy

import ml_dtypes
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from function_model import Function
from host import VECTOR_BYTES
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import pipeline
from pipeline.runtime.native.cpu_features import host_features
from pipeline.targets.cpu.isa import isa

DOTS = isa("native").bf16_dots

_PRODUCT = """
#a = affine_map<(m, n, k) -> ({a})>
#b = affine_map<(m, n, k) -> ({b})>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @main(%x: tensor<{x}xbf16>, %w: tensor<{w}xbf16>) -> tensor<{m}x{n}xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{m}x{n}xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %p = linalg.generic {{indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %w : tensor<{x}xbf16>, tensor<{w}xbf16>) outs(%f : tensor<{m}x{n}xf32>) {{
  ^bb0(%i: bf16, %j: bf16, %o: f32):
    %ii = arith.extf %i : bf16 to f32
    %jj = arith.extf %j : bf16 to f32
    %m = arith.mulf %ii, %jj : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }} -> tensor<{m}x{n}xf32>
  return %p : tensor<{m}x{n}xf32>
}}
"""


def check_product(m, n, k, transposed_x=False, transposed_w=False):
    """A product of bf16 written as MLIR, with operands in either order of their dims, against float64."""
    rng = np.random.default_rng(m * 10007 + n * 101 + k)
    x, w = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (k, n)))
    exact = x.astype(np.float64) @ w.astype(np.float64)
    sizes = np.abs(x.astype(np.float64)) @ np.abs(w.astype(np.float64))
    given_x, given_w = (x.T if transposed_x else x).copy(), (w.T if transposed_w else w).copy()
    source = _PRODUCT.format(
        a="k, m" if transposed_x else "m, k",
        b="n, k" if transposed_w else "k, n",
        x="x".join(map(str, given_x.shape)),
        w="x".join(map(str, given_w.shape)),
        m=m,
        n=n,
    )
    executable = pipeline.compile(source)
    found = executable(given_x, given_w)
    assert found.shape == (m, n)
    assert (np.abs(found - exact) <= (k + 2) * 2.0**-23 * sizes).all()
    return executable


@pytest.mark.parametrize("k", [1, 2, 3, 16, 31, 64])
@pytest.mark.parametrize(("m", "n"), [(1, 16), (5, 33), (14, 32), (3, 1), (23, 40)])
def test_products(m, n, k):
    check_product(m, n, k)


@pytest.mark.parametrize(("m", "n", "k"), [(0, 4, 4), (4, 0, 4), (4, 4, 0), (1, 1, 1)])
def test_products_of_size_0_and_1(m, n, k):
    check_product(m, n, k)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    m=st.integers(1, 19),
    n=st.integers(1, 70),
    k=st.integers(1, 40),
    transposed_x=st.booleans(),
    transposed_w=st.booleans(),
)
def test_products_of_random_sizes(m, n, k, transposed_x, transposed_w):
    check_product(m, n, k, transposed_x, transposed_w)


def test_the_instruction_is_there_if_the_cpu_has_it():
    for cpu, there in (("native", DOTS), ("x86-64", False)):
        source = _PRODUCT.format(a="m, k", b="k, n", x="4x6", w="6x32", m=4, n=32)
        assert ("dpbf16ps" in pipeline.compile(source, cpu=cpu).ir("llvm")) == there


def rounded(tensor):
    """In float64, what the dot products read."""
    return tensor.bfloat16().double() if DOTS else tensor.double()


def check(model, x, expected, **options):
    """Compiles a model with operands rounded to bf16, and compares; returns the executable."""
    executable = pipeline.compile(model, (x,), precision="bf16", **options)
    found = executable(x)
    assert found.dtype == x.dtype
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)
    assert ("dpbf16ps" in executable.ir("llvm")) == DOTS
    return executable


@pytest.mark.parametrize("rows", [1, 5, 14, 33])
@pytest.mark.parametrize(("inner", "columns"), [(256, 128), (257, 96), (64, 1024), (65, 33), (1030, 64)])
def test_linear(rows, inner, columns):
    torch.manual_seed(0)
    model, x = nn.Linear(inner, columns).requires_grad_(False), torch.randn(rows, inner)
    expected = rounded(x) @ rounded(model.weight).T + model.bias.double()
    check(model, x, expected)


def test_one_column_is_not_rounded():
    torch.manual_seed(0)
    model, x = nn.Linear(512, 1).requires_grad_(False), torch.randn(5, 512)
    plain, small = (pipeline.compile(model, (x,), precision=one) for one in ("f32", "bf16"))
    assert torch.equal(plain(x), small(x))


def test_weights_lie_in_pairs_and_are_refreshed():
    torch.manual_seed(0)
    model, x = nn.Linear(256, 128).requires_grad_(False), torch.randn(9, 256)
    executable = check(model, x, rounded(x) @ rounded(model.weight).T + model.bias.double())
    packed = [one.reason for one in executable.remarks if one.pass_name == "pack-weights" and one.kind == "passed"]
    assert packed == [f"reads its weight in panels of {VECTOR_BYTES // 2} columns" + " of pairs" * DOTS]
    model.weight.mul_(-2)
    executable.refresh()
    expected = rounded(x) @ rounded(model.weight).T + model.bias.double()
    torch.testing.assert_close(executable(x).double(), expected, rtol=1e-4, atol=1e-4)


def test_an_odd_number_of_rows_is_packed_without_pairs():
    torch.manual_seed(0)
    model, x = nn.Linear(257, 128).requires_grad_(False), torch.randn(9, 257)
    executable = check(model, x, rounded(x) @ rounded(model.weight).T + model.bias.double())
    assert not any("of pairs" in one.reason for one in executable.remarks)


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("rows", [1, 16, 37])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int8])
def test_one_column_that_changes_stays_as_it_is(dtype, rows, batch):
    """Sums of products with one column run along rows, which pairs of them would scatter."""
    torch.manual_seed(0)
    made = (torch.randint(-9, 9, (*batch, *sizes)) for sizes in ((rows, 50), (50, 1)))
    x, column = (numbers.to(dtype) for numbers in made)
    wide = torch.int32 if dtype == torch.int8 else dtype
    model = Function(lambda x, column: x.to(wide) @ column.to(wide))
    executable = pipeline.compile(model, (x, column))
    exact = (x.double() @ column.double()).to(wide)
    torch.testing.assert_close(executable(x, column), exact, rtol=1e-2, atol=0.0)
    assert not any("pairs" in one.reason or "quads" in one.reason for one in executable.remarks)
    assert not any("no loop runs along the innermost" in one.reason for one in executable.remarks)


@pytest.mark.parametrize("shape", [(3, 17, 20), (1, 16, 32), (2, 2, 64), (0, 5, 24)])
def test_batches(shape):
    class Scores(nn.Module):
        def forward(self, x):
            return x @ x.transpose(-1, -2)

    torch.manual_seed(0)
    x = torch.randn(shape)
    wide = rounded(x)
    executable = pipeline.compile(Scores(), (x,), precision="bf16")
    torch.testing.assert_close(executable(x).double(), wide @ wide.transpose(-1, -2), rtol=1e-4, atol=1e-4)


def test_sizes_known_at_run_time_only():
    torch.manual_seed(0)
    model = nn.Linear(40, 48).requires_grad_(False)
    rows = torch.export.Dim("rows", min=1, max=100)
    executable = pipeline.compile(model, (torch.randn(7, 40),), dynamic_shapes=({0: rows},), precision="bf16")
    for count in (1, 2, 13, 40):
        x = torch.randn(count, 40)
        expected = rounded(x) @ rounded(model.weight).T + model.bias.double()
        torch.testing.assert_close(executable(x).double(), expected, rtol=1e-4, atol=1e-4)


class Gram(nn.Module):
    """x^T x: the sum is over a size that is not known."""

    def forward(self, x):
        return x.t() @ x


def test_sums_of_a_length_known_at_run_time_only():
    rows = torch.export.Dim("rows", min=1, max=100)
    executable = pipeline.compile(Gram(), (torch.randn(8, 24),), dynamic_shapes=({0: rows},), precision="bf16")
    for count in (1, 2, 7, 64):
        x = torch.randn(count, 24)
        torch.testing.assert_close(executable(x).double(), rounded(x).T @ rounded(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("channels", "features", "kernel", "options", "size"),
    [
        (16, 32, 3, {"padding": 1}, 9),
        (3, 64, 7, {"padding": 3, "stride": 2}, 30),
        (30, 50, 3, {"padding": 1}, 17),
        (64, 128, 1, {}, 7),
        (64, 64, 3, {"padding": 1}, 14),
        (64, 64, 3, {"padding": 2, "dilation": 2}, 8),
        (32, 64, 3, {"groups": 2, "padding": 1}, 8),
        (33, 32, 3, {"padding": 1}, 10),
    ],
)
def test_convolutions(channels, features, kernel, options, size):
    torch.manual_seed(0)
    model = nn.Conv2d(channels, features, kernel, **options).requires_grad_(False)
    x = torch.randn(2, channels, size, size)
    rest = {name: getattr(model, name) for name in ("stride", "padding", "dilation", "groups")}
    expected = F.conv2d(rounded(x), rounded(model.weight), model.bias.double(), **rest)
    check(nn.Sequential(model, nn.ReLU()), x, expected.relu())


@pytest.mark.parametrize(
    ("dims", "channels", "features", "kernel", "options"),
    [
        (2, 3, 64, 14, {"stride": 14}),  # what vision transformers begin with
        (2, 3, 64, 4, {"stride": 4, "padding": 1}),
        (2, 1, 70, 7, {"stride": 3, "padding": 3, "dilation": 2}),
        (2, 6, 64, (3, 16), {"stride": (1, 2), "groups": 2}),
        (1, 1, 64, 400, {"stride": 160}),  # a spectrogram's
        (1, 80, 64, 3, {"padding": 1}),
        (3, 3, 64, (2, 8, 8), {"stride": (2, 8, 8)}),  # a video's
    ],
)
@pytest.mark.parametrize("cpu", ["native", "x86-64-v3"])
@pytest.mark.parametrize("form", ["rounded", "bf16"])
def test_windows(dims, channels, features, kernel, options, cpu, form):
    """The innermost sum of these runs along the window, not along channels."""
    torch.manual_seed(0)
    model = getattr(nn, f"Conv{dims}d")(channels, features, kernel, **options).requires_grad_(False)
    x = torch.randn(2, channels, *(2 * size + 3 for size in model.kernel_size))
    if form == "bf16":
        model, x = model.bfloat16(), x.bfloat16()
    executable = pipeline.compile(model, (x,), cpu=cpu, precision="bf16" if form == "rounded" else "f32")
    exact = copy.deepcopy(model).double()(x.double())
    assert (executable(x).double() - exact).abs().max() < 2.0**-7 * exact.abs().max()


@settings(max_examples=8, deadline=None, derandomize=True)
@given(channels=st.integers(2, 40), features=st.integers(1, 70), size=st.integers(3, 12), batch=st.integers(1, 2))
def test_convolutions_of_random_sizes(channels, features, size, batch):
    torch.manual_seed(channels * 100 + features)
    model = nn.Conv2d(channels, features, 3, padding=1).requires_grad_(False)
    x = torch.randn(batch, channels, size, size)
    executable = pipeline.compile(model, (x,), precision="bf16")
    expected = F.conv2d(rounded(x), rounded(model.weight), model.bias.double(), padding=1)
    torch.testing.assert_close(executable(x).double(), expected, rtol=1e-4, atol=1e-4)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(64, 64) for _ in range(4))

    def forward(self, x):
        q, k, v = (layer(x).unflatten(-1, (2, 32)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("length", [1, 7, 32])
def test_attention_is_about_as_exact_as_bf16(length):
    torch.manual_seed(0)
    model, x = Attention().requires_grad_(False), torch.randn(2, length, 64)
    executable = pipeline.compile(model, (x,), precision="bf16")
    exact = copy.deepcopy(model).double()(x.double())
    assert (executable(x).double() - exact).abs().max() < 1e-2 * exact.abs().max()


class NoContraction(nn.Module):
    def forward(self, x):
        return F.layer_norm(F.softmax(x * 3, -1) + F.gelu(x), x.shape[-1:]).sum(-1) / x.exp().mean(-1)


def test_nothing_but_contractions_is_rounded():
    torch.manual_seed(0)
    x = torch.randn(9, 40)
    plain, small = (pipeline.compile(NoContraction(), (x,), precision=one) for one in ("f32", "bf16"))
    assert torch.equal(plain(x), small(x))


def test_a_depthwise_convolution_is_not_rounded():
    torch.manual_seed(0)
    model, x = nn.Conv2d(8, 8, 3, groups=8).requires_grad_(False), torch.randn(1, 8, 9, 9)
    plain, small = (pipeline.compile(model, (x,), precision=one) for one in ("f32", "bf16"))
    assert torch.equal(plain(x), small(x))


def test_a_cpu_without_dot_products_computes_in_f32_and_says_so():
    torch.manual_seed(0)
    model, x = nn.Linear(64, 32).requires_grad_(False), torch.randn(5, 64)
    plain, small = (pipeline.compile(model, (x,), precision=one, cpu="x86-64") for one in ("f32", "bf16"))
    assert torch.equal(plain(x), small(x))
    reasons = [one.reason for one in small.remarks if one.pass_name == "contract-in-bf16"]
    assert reasons == ["computed in f32: the processor has no dot products of bf16"]


def test_infinities_and_nan_get_through():
    model = nn.Linear(32, 32, bias=False).requires_grad_(False)
    model.weight.fill_(1.0)
    x = torch.zeros(4, 32)
    x[0, 3], x[1, 4], x[2, 5] = float("inf"), float("nan"), 3.4e38  # the last one rounds to infinity
    found = pipeline.compile(model, (x,), precision="bf16")(x)
    assert found[0].eq(float("inf")).all() and found[1].isnan().all() and (found[3] == 0).all()
    assert found[2].eq(float("inf") if DOTS else 3.4e38).all()


@pytest.mark.parametrize(("rows", "inner", "columns"), [(1, 64, 32), (7, 65, 33), (16, 256, 128), (9, 2, 5)])
def test_models_in_bf16(rows, inner, columns):
    torch.manual_seed(0)
    model = nn.Linear(inner, columns).bfloat16().requires_grad_(False)
    x = torch.randn(rows, inner).bfloat16()
    executable = pipeline.compile(model, (x,))
    found = executable(x)
    assert found.dtype == torch.bfloat16
    exact = x.double() @ model.weight.double().T + model.bias.double()
    torch.testing.assert_close(found.double(), exact, rtol=2.0**-8, atol=1e-4)
    assert ("dpbf16ps" in executable.ir("llvm")) == (DOTS and inner >= 16)


@pytest.mark.parametrize("padding", [0, 1])
def test_convolutions_in_bf16(padding):
    torch.manual_seed(0)
    model = nn.Conv2d(32, 48, 3, padding=padding).bfloat16().requires_grad_(False)
    x = torch.randn(1, 32, 11, 11).bfloat16()
    executable = pipeline.compile(model, (x,))
    exact = F.conv2d(x.double(), model.weight.double(), model.bias.double(), padding=padding)
    torch.testing.assert_close(executable(x).double(), exact, rtol=2.0**-7, atol=1e-3)
    assert ("dpbf16ps" in executable.ir("llvm")) == DOTS


class Sides(nn.Module):
    """Convolutions of one channels-first image each, with widths around those of tiles."""

    def __init__(self, dtype):
        super().__init__()
        widths = [(16, 16, 1), (24, 48, 1), (32, 40, 3), (64, 256, 1), (33, 64, 1), (48, 96, 3)]
        self.convolutions = nn.ModuleList(nn.Conv2d(c, o, k, padding=k // 2, dtype=dtype) for c, o, k in widths)

    def forward(self, *images):
        return tuple(torch.relu(conv(x)) for conv, x in zip(self.convolutions, images, strict=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("cpu", ["native", "x86-64-v3"])
@pytest.mark.parametrize("size", [(1, 1), (7, 7), (5, 13), (16, 28)])
def test_narrow_results_of_convolutions_lie_channels_first(size, cpu, dtype):
    if not set(isa(cpu).required) <= host_features():
        cpu = "native"
    torch.manual_seed(0)
    model = Sides(dtype).eval().requires_grad_(False)
    images = [torch.randn(2, conv.in_channels, *size, dtype=dtype) for conv in model.convolutions]
    found = pipeline.compile(model, tuple(images), cpu=cpu)(*images)
    exact = copy.deepcopy(model).double()(*(image.double() for image in images))
    for mine, wanted in zip(found, exact, strict=True):
        assert mine.dtype == dtype
        torch.testing.assert_close(mine.double(), wanted, rtol=0.01, atol=0.01)


def test_a_narrow_result_across_its_tile_is_stored_by_the_tile():
    model = nn.Conv2d(64, 256, 1).bfloat16().eval()
    executable = pipeline.compile(model, (torch.randn(1, 64, 56, 56).bfloat16(),))
    assert any("with 1 epilogues" in remark.reason for remark in executable.remarks)


def test_products_of_bf16_stay_that_with_a_norm_in_their_weights():
    torch.manual_seed(0)
    model = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 32)).eval().requires_grad_(False)
    model[0].weight.uniform_(0.5, 2)
    model[0].bias.uniform_(-1, 1)
    model.bfloat16()
    x = torch.randn(2, 5, 64).bfloat16()
    executable = pipeline.compile(model, (x,))
    said = [one.reason for one in executable.remarks if one.pass_name == "fold-scale-shift-forward"]
    assert said == ["folded 2 operations per element into the weights of matmul after"]
    assert ("dpbf16ps" in executable.ir("llvm")) == DOTS
    exact = copy.deepcopy(model).double()(x.double())
    errors = [(result.double() - exact).abs().max() for result in (executable(x), model(x))]
    assert errors[0] < 1.5 * errors[1]
