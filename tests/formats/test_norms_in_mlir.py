"""Norms in MLIR text, in many forms and behind many ops, are folded into what is in front of them, as torch's are."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import pipeline
from pipeline.errors import PipelineError

STATISTICS = ("m", "v", "g", "b")
EPSILON = 1e-3


@dataclass(frozen=True)
class Op:
    """An op of data and a weight: its text, the shapes of data, weight and result, where the result has channels."""

    text: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    y: tuple[int, ...]
    channel: int
    compute: Callable[[np.ndarray, np.ndarray], np.ndarray]


def windows(x, k, dims):
    """All windows of k * k elements along two dims, as two further ones behind."""
    return np.lib.stride_tricks.sliding_window_view(x, (k, k), dims)


PRODUCT = """linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
    affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    IN { ^bb0(%p: f32, %q: f32, %o: f32):
      %pq = arith.mulf %p, %q : f32
      %r = arith.addf %o, %pq : f32
      linalg.yield %r : f32 }"""

OPS = {
    "matmul": Op("linalg.matmul IN", (5, 8), (8, 6), (5, 6), 1, lambda x, w: x @ w),
    "weight first": Op("linalg.matmul SWAPPED", (8, 5), (6, 8), (6, 5), 0, lambda x, w: w @ x),
    "batch_matmul": Op("linalg.batch_matmul IN", (2, 5, 8), (2, 8, 6), (2, 5, 6), 2, lambda x, w: x @ w),
    "generic": Op(PRODUCT, (5, 8), (8, 6), (5, 6), 1, lambda x, w: x @ w),
    "1x1": Op(
        "linalg.conv_2d_nchw_fchw IN",
        (2, 3, 5, 7),
        (6, 3, 1, 1),
        (2, 6, 5, 7),
        1,
        lambda x, w: np.einsum("nchw,fc->nfhw", x, w[:, :, 0, 0]),
    ),
    "3x3": Op(
        "linalg.conv_2d_nchw_fchw IN",
        (2, 3, 6, 7),
        (6, 3, 3, 3),
        (2, 6, 4, 5),
        1,
        lambda x, w: np.einsum("nchwij,fcij->nfhw", windows(x, 3, (2, 3)), w),
    ),
    "nhwc": Op(
        "linalg.conv_2d_nhwc_hwcf IN",
        (2, 6, 7, 3),
        (3, 3, 3, 6),
        (2, 4, 5, 6),
        3,
        lambda x, w: np.einsum("nhwcij,ijcf->nhwf", windows(x, 3, (1, 2)), w),
    ),
    "depthwise": Op(
        "linalg.depthwise_conv_2d_nchw_chw IN",
        (2, 6, 6, 7),
        (6, 3, 3),
        (2, 6, 4, 5),
        1,
        lambda x, w: np.einsum("nchwij,cij->nchw", windows(x, 3, (2, 3)), w),
    ),
    "depthwise nhwc": Op(
        "linalg.depthwise_conv_2d_nhwc_hwc IN",
        (2, 6, 7, 6),
        (3, 3, 6),
        (2, 4, 5, 6),
        3,
        lambda x, w: np.einsum("nhwcij,ijc->nhwc", windows(x, 3, (1, 2)), w),
    ),
}

ROOT = "%e = arith.addf %v, %eps : f32\n%s = math.rsqrt %e : f32\n"
FORMS = {
    "rsqrt": ROOT + "%0 = arith.subf %x, %m : f32\n%1 = arith.mulf %0, %s : f32\n%2 = arith.mulf %1, %g : f32\n"
    "%y = arith.addf %2, %b : f32",
    "sqrt": "%e = arith.addf %v, %eps : f32\n%s = math.sqrt %e : f32\n%0 = arith.subf %x, %m : f32\n"
    "%1 = arith.divf %0, %s : f32\n%2 = arith.mulf %1, %g : f32\n%y = arith.addf %2, %b : f32",
    "merged": ROOT + "%0 = arith.mulf %g, %s : f32\n%1 = arith.mulf %m, %0 : f32\n%2 = arith.subf %b, %1 : f32\n"
    "%3 = arith.mulf %0, %x : f32\n%y = arith.addf %2, %3 : f32",
    "fma": ROOT + "%0 = arith.mulf %g, %s : f32\n%1 = arith.subf %x, %m : f32\n%y = math.fma %1, %0, %b : f32",
    "negated": ROOT + "%0 = arith.subf %m, %x : f32\n%1 = arith.mulf %0, %s : f32\n%2 = arith.mulf %1, %g : f32\n"
    "%y = arith.subf %b, %2 : f32",
    "power": "%h = arith.constant -0.5 : f32\n%e = arith.addf %v, %eps : f32\n%s = math.powf %e, %h : f32\n"
    "%0 = arith.subf %x, %m : f32\n%1 = arith.mulf %0, %s : f32\n%2 = arith.mulf %g, %1 : f32\n"
    "%y = arith.addf %b, %2 : f32",
    "relu": ROOT + "%0 = arith.subf %x, %m : f32\n%1 = arith.mulf %0, %s : f32\n%2 = arith.mulf %1, %g : f32\n"
    "%3 = arith.addf %2, %b : f32\n%low = arith.constant 0.0 : f32\n%y = arith.maximumf %3, %low : f32",
}


def kind(shape):
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def arrays_for(op):
    rng = np.random.default_rng(0)
    x, w, m, g, b = (rng.standard_normal(s).astype(np.float32) for s in (op.x, op.w, *[(op.y[op.channel],)] * 3))
    return {"x": x, "w": w, "m": m, "v": rng.uniform(0.3, 2, b.shape).astype(np.float32), "g": g, "b": b}


def text_of(op, form, arrays, weights, constants=()):
    """A module; arguments are x and all that are no constants, with marks on `weights`."""
    arguments = [name for name in arrays if name not in constants]
    marks = {name: f' {{pipeline.weight = "{name}"}}' if name in weights else "" for name in arguments}
    signature = ", ".join(f"%{name}: {kind(arrays[name].shape)}{marks[name]}" for name in arguments)
    given = "\n".join(
        f"%{name} = arith.constant dense<{arrays[name].tolist()}> : {kind(arrays[name].shape)}" for name in constants
    )
    y, loops = kind(op.y), ", ".join(f"d{n}" for n in range(len(op.y)))
    ins = [f"ins({a}, {b} : {c}, {d}) outs(%i : {y})" for a, c, b, d in _orders(op)]
    product = op.text.replace("IN", ins[0]).replace("SWAPPED", ins[1])
    row = f"affine_map<({loops}) -> (d{op.channel})>"
    maps = [f"affine_map<({loops}) -> ({loops})>", *[row] * 4, f"affine_map<({loops}) -> ({loops})>"]
    iterators = ", ".join(['"parallel"'] * len(op.y))
    vector = kind((op.y[op.channel],))
    return f"""func.func @main({signature}) -> {y} {{
      {given}
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : {y}
      %i = linalg.fill ins(%zero : f32) outs(%empty : {y}) -> {y}
      %xw = {product} -> {y}
      %eps = arith.constant {EPSILON} : f32
      %norm = linalg.generic {{indexing_maps = [{", ".join(maps)}], iterator_types = [{iterators}]}}
        ins(%xw, %m, %v, %g, %b : {y}, {", ".join([vector] * 4)}) outs(%empty : {y}) {{
      ^bb0(%x_: f32, %m_: f32, %v_: f32, %g_: f32, %b_: f32, %out: f32):
        {re.sub("%([xmvgb])(?![a-z])", "%" + chr(92) + "1_", FORMS[form])}
        linalg.yield %y : f32
      }} -> {y}
      return %norm : {y}
    }}"""


def _orders(op):
    x, w = ("%x", kind(op.x)), ("%w", kind(op.w))
    return [(*x, *w), (*w, *x)]


def expected(op, form, arrays):
    a = {name: array.astype(np.float64) for name, array in arrays.items()}
    m, v, g, b = (a[n].reshape([-1 if d == op.channel else 1 for d in range(len(op.y))]) for n in STATISTICS)
    y = (op.compute(a["x"], a["w"]) - m) / np.sqrt(v + EPSILON) * g + b
    return np.maximum(y, 0) if form == "relu" else y


def folds(executable):
    return sum(r.pass_name == "fold-batch-norm" and r.kind == "passed" for r in executable.remarks)


def per_call(executable):
    """What @main computes."""
    return re.split(r"(?=func\.func )", executable.ir("fused").split("func.func @main", 1)[1])[0]


def assert_folded(executable, form):
    assert folds(executable) == 1
    text = per_call(executable)
    assert text.count("fusion.group") == 1
    assert not re.search(r"sqrt|powf|subf|divf|fma", text)
    assert text.count("arith.addf") <= 2 and text.count("arith.mulf") <= 1  # the product's, and the shift


@pytest.mark.parametrize("given", ["marked", "constants"])
@pytest.mark.parametrize("op", OPS)
def test_behind_each_op(op, given):
    op, arrays = OPS[op], arrays_for(OPS[op])
    names = ("w", *STATISTICS)
    if given == "marked":
        text = text_of(op, "relu", arrays, names)
        executable = pipeline.compile(text, kwargs={name: arrays[name] for name in names})
    else:
        executable = pipeline.compile(text_of(op, "relu", arrays, (), names))
    assert_folded(executable, "relu")
    np.testing.assert_allclose(executable(arrays["x"]), expected(op, "relu", arrays), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("op", ["matmul", "3x3"])
@pytest.mark.parametrize("form", FORMS)
def test_each_form(form, op):
    op, arrays = OPS[op], arrays_for(OPS[op])
    executable = pipeline.compile(text_of(op, form, arrays, (), ("w", *STATISTICS)))
    assert_folded(executable, form)
    np.testing.assert_allclose(executable(arrays["x"]), expected(op, form, arrays), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("op", ["matmul", "generic", "3x3", "depthwise nhwc"])
@pytest.mark.parametrize("data", [("v",), ("w",), ("m", "v"), ("w", *STATISTICS)])
def test_what_depends_on_a_call_is_not_folded(op, data):
    op, arrays = OPS[op], arrays_for(OPS[op])
    weights = [name for name in ("w", *STATISTICS) if name not in data]
    text = text_of(op, "rsqrt", arrays, weights)
    executable = pipeline.compile(text, kwargs={name: arrays[name] for name in weights})
    for scale in (1, 3):
        now = {name: array * np.float32(scale) if name in data else array for name, array in arrays.items()}
        found = executable(now["x"], *(now[name] for name in now if name in data))
        np.testing.assert_allclose(found, expected(op, "rsqrt", now), rtol=1e-3, atol=1e-3)
    if "w" in data or "v" in data:
        assert folds(executable) == 0


def test_weights_that_change_are_folded_anew():
    op, arrays = OPS["matmul"], arrays_for(OPS["matmul"])
    names = ("w", *STATISTICS)
    executable = pipeline.compile(text_of(op, "rsqrt", arrays, names), kwargs={name: arrays[name] for name in names})
    executable(arrays["x"])
    arrays["w"] *= 2
    arrays["v"] += 1
    executable.refresh()
    np.testing.assert_allclose(executable(arrays["x"]), expected(op, "rsqrt", arrays), rtol=1e-4, atol=1e-4)


def test_marks_without_arrays_are_arguments():
    op, arrays = OPS["matmul"], arrays_for(OPS["matmul"])
    executable = pipeline.compile(text_of(op, "rsqrt", arrays, ("w", *STATISTICS)))
    assert folds(executable) == 0
    np.testing.assert_allclose(executable(*arrays.values()), expected(op, "rsqrt", arrays), rtol=1e-4, atol=1e-4)


def test_weights_of_stablehlo():
    source = """func.func @main(%w: tensor<8x6xf32> {pipeline.weight = "w"}, %x: tensor<4x8xf32>) -> tensor<4x6xf32> {
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
          : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
      return %0 : tensor<4x6xf32>
    }"""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, 8), (8, 6)))
    executable = pipeline.compile(source, kwargs={"w": w})
    assert list(executable.weights) == ["w"]
    np.testing.assert_allclose(executable(x), x @ w, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"q": np.zeros(3, np.float32)}, 'q is given: 0 arguments of @main are marked pipeline.weight = "q", not 1'),
        ({"w": np.zeros((6, 8), np.float32)}, r"w: @main takes float32 \[8, 6\], given is float32 \[6, 8\]"),
        ({"w": np.zeros((8, 6))}, r"w: @main takes float32 \[8, 6\], given is float64"),
        ({"w": 3}, "no NumPy array"),
    ],
)
def test_wrong_weights(given, message):
    arrays = arrays_for(OPS["matmul"])
    with pytest.raises(PipelineError, match=message):
        pipeline.compile(text_of(OPS["matmul"], "rsqrt", arrays, ("w", *STATISTICS)), kwargs=given)
