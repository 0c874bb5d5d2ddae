import numpy as np
import pytest

import pipeline
from pipeline.errors import PipelineError, UnsupportedOpError, UnsupportedTypeError
from pipeline.frontend.mlir_formats.reading import inner_bytecode
from pipeline.mlir import bytecode, context, ir, register_stablehlo

RNG = np.random.default_rng(0)

LAYER = """
module @jit_f {
  func.func public @main(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %b: tensor<6xf32>) -> (tensor<4xf32> {jax.result_info = "r"}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<6xf32>) -> tensor<4x6xf32>
    %2 = stablehlo.add %0, %1 : tensor<4x6xf32>
    %3 = func.call @act(%2) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
    return %4 : tensor<4xf32>
  }
  func.func private @act(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = stablehlo.tanh %x : tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  }
}
"""

FLOW = """
func.func @main(%x: tensor<3xf32>, %n: tensor<i32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %unit = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<3xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %j = stablehlo.add %i, %unit : tensor<i32>
      %w = stablehlo.add %v, %v : tensor<3xf32>
      stablehlo.return %j, %w : tensor<i32>, tensor<3xf32>
    }
  %1 = "stablehlo.case"(%n) ({
    %a = stablehlo.negate %x : tensor<3xf32>
    stablehlo.return %a : tensor<3xf32>
  }, {
    %b = stablehlo.multiply %x, %x : tensor<3xf32>
    stablehlo.return %b : tensor<3xf32>
  }, {
    %d = stablehlo.add %x, %x : tensor<3xf32>
    stablehlo.return %d : tensor<3xf32>
  }) : (tensor<i32>) -> tensor<3xf32>
  return %0#1, %1 : tensor<3xf32>, tensor<3xf32>
}
"""

TOSA = """
func.func @net(%a: tensor<2x4x8xf32>, %b: tensor<2x8x5xf32>, %c: tensor<1x1x5xf32>) -> tensor<2x4x5xf32> {
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %0 = tosa.matmul %a, %b, %z, %z : (tensor<2x4x8xf32>, tensor<2x8x5xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x4x5xf32>
  %1 = tosa.add %0, %c : (tensor<2x4x5xf32>, tensor<1x1x5xf32>) -> tensor<2x4x5xf32>
  %2 = tosa.sigmoid %1 : (tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  %3 = tosa.reduce_sum %2 {axis = 2 : i32} : (tensor<2x4x5xf32>) -> tensor<2x4x1xf32>
  %4 = tosa.sub %2, %3 : (tensor<2x4x5xf32>, tensor<2x4x1xf32>) -> tensor<2x4x5xf32>
  return %4 : tensor<2x4x5xf32>
}
"""


def arrays(*shapes):
    return [RNG.standard_normal(shape).astype(np.float32) for shape in shapes]


def as_bytecode(source):
    ctx = context()
    register_stablehlo(ctx)
    return bytecode(ir.Module.parse(source, ctx).operation)


def test_stablehlo_as_text_and_bytecode(tmp_path):
    x, w, b = arrays((4, 8), (8, 6), (6,))
    expected = np.tanh(x @ w + b).sum(1)
    (tmp_path / "f.mlir").write_text(LAYER)
    (tmp_path / "f.mlirbc").write_bytes(as_bytecode(LAYER))
    for given in (LAYER, tmp_path / "f.mlir", str(tmp_path / "f.mlirbc"), as_bytecode(LAYER)):
        np.testing.assert_allclose(pipeline.compile(given)(x, w, b), expected, rtol=1e-5, atol=1e-5)


def test_loops_and_branches_of_stablehlo():
    executable = pipeline.compile(FLOW)
    (x,) = arrays((3,))
    for n, branch in ((0, -x), (1, x * x), (2, 2 * x), (7, 2 * x), (-1, 2 * x)):
        looped, chosen = executable(x, np.array(n, np.int32))
        np.testing.assert_allclose(looped, x * 2.0 ** max(n, 0), rtol=1e-6)
        np.testing.assert_allclose(chosen, branch, rtol=1e-6)


def test_tosa():
    a, b, c = arrays((2, 4, 8), (2, 8, 5), (1, 1, 5))
    s = 1 / (1 + np.exp(-(a @ b + c)))
    for given in (TOSA, as_bytecode(TOSA)):
        found = pipeline.compile(given)(a, b, c)
        np.testing.assert_allclose(found, s - s.sum(2, keepdims=True), rtol=1e-5, atol=1e-5)


def test_bytes_keep_their_sign():
    source = """func.func @main(%x: tensor<4xui8>) -> tensor<4xui8> {
      %c = stablehlo.constant dense<2> : tensor<4xui8>
      %0 = stablehlo.divide %x, %c : tensor<4xui8>
      return %0 : tensor<4xui8>
    }"""
    x = np.array([0, 3, 200, 255], np.uint8)
    found = pipeline.compile(source)(x)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, x // 2)


def test_the_bytecode_inside_of_what_jax_serializes():
    data = as_bytecode(LAYER)
    around = b"\0" * 12 + len(data).to_bytes(4, "little") + data + b"\0" * 8
    assert inner_bytecode(around) == data
    assert inner_bytecode(around[:-20]) is None
    assert inner_bytecode(b"nothing") is None


@pytest.mark.parametrize("data", [b"ML\xefR", b"ML\xefR garbage", as_bytecode(LAYER)[:200]])
def test_damaged_bytecode(data):
    with pytest.raises(PipelineError, match="damaged, or of another version"):
        pipeline.compile(data)


def test_ops_that_no_pass_lowers_are_named():
    source = """func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
      %0 = stablehlo.cholesky %x, lower = true : tensor<4x4xf32>
      return %0 : tensor<4x4xf32>
    }"""
    with pytest.raises(UnsupportedOpError, match="stablehlo.cholesky"):
        pipeline.compile(source)


THROUGH = """
#same = affine_map<(d0) -> (d0)>
func.func @main(%a: tensor<5xf32>) -> tensor<5xf32> {
  %one = arith.constant 1.0 : TYPE
  %e = tensor.empty() : tensor<5xf32>
  %r = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel"]} ins(%a : tensor<5xf32>) outs(%e : tensor<5xf32>) {
  ^bb0(%x: f32, %o: f32):
    %w = arith.INTO %x : f32 to TYPE
    %s = arith.addf %w, %one : TYPE
    %t = arith.BACK %s : TYPE to f32
    linalg.yield %t : f32
  } -> tensor<5xf32>
  return %r : tensor<5xf32>
}
"""


def through(kind, widens):
    into, back = ("extf", "truncf") if widens else ("truncf", "extf")
    return THROUGH.replace("TYPE", kind).replace("INTO", into).replace("BACK", back)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f64"])
def test_floats_inside(kind):
    x = np.arange(5, dtype=np.float32)
    assert np.array_equal(pipeline.compile(through(kind, kind == "f64"))(x), x + 1)


@pytest.mark.parametrize("kind", ["f128", "f80", "tf32", "f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f6E3M2FN", "f4E2M1FN"])
def test_floats_that_are_not_computed_with_are_refused(kind):
    """LLVM ends the process over some of them."""
    with pytest.raises(UnsupportedTypeError, match=rf"arith.constant has an element of type {kind}, .* convert to f16"):
        pipeline.compile(through(kind, kind in ("f128", "f80")))
    for made in (
        "%e = tensor.empty() : tensor<4x",
        "%e = tensor.empty(%n) : tensor<?x",
        "%e = tensor.empty() : tensor<",
    ):
        inside = f"func.func @main(%n: index) -> index {{ {made}{kind}> return %n : index }}"
        with pytest.raises(UnsupportedTypeError, match=f"tensor.empty has an element of type {kind},"):
            pipeline.compile(inside)
    only_said = f"// Not {kind}." + through("f64", True)
    assert pipeline.compile(only_said)(np.zeros(5, np.float32))[0] == 1
