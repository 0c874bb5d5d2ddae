"""Rewriting helpers that the lit tests of passes do not show in full."""

from __future__ import annotations

import pytest

from pipeline.ir.rewriting import before, build_generic, producer_through_reshapes, replace
from pipeline.mlir import arith, constant_integer, context, defining_op, ir, parse, walk

RESHAPES = """
func.func @f(%x: tensor<4x8xf32>) -> (tensor<2x16xf32>, tensor<?x?xf32>) {
  %e = math.exp %x : tensor<4x8xf32>
  %flat = tensor.collapse_shape %e [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  %wide = tensor.expand_shape %flat [[0, 1]] output_shape [2, 16] : tensor<32xf32> into tensor<2x16xf32>
  %any = tensor.cast %x : tensor<4x8xf32> to tensor<?x?xf32>
  return %wide, %any : tensor<2x16xf32>, tensor<?x?xf32>
}
"""


def test_producer_through_reshapes():
    module = parse(RESHAPES, context())
    wide, of_argument = walk(module, "func.return")[0].operands
    producer, reshapes = producer_through_reshapes(wide)
    assert producer.name == "math.exp"
    assert [op.name for op in reshapes] == ["tensor.collapse_shape", "tensor.expand_shape"]
    assert producer_through_reshapes(producer.results[0]) == (producer, [])
    producer, reshapes = producer_through_reshapes(of_argument)
    assert producer is None and [op.name for op in reshapes] == ["tensor.cast"]


def test_build_generic_with_a_transposed_input():
    source = "func.func @f(%x: tensor<4x8xf32>, %y: tensor<8x4xf32>) -> tensor<8x4xf32> { return %y : tensor<8x4xf32> }"
    module = parse(source, context())
    (end,) = walk(module, "func.return")
    function = module.body.operations[0]
    with module.context, before(end):
        parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
        generic = build_generic(
            [function.arguments[0]],
            [function.arguments[1]],
            [ir.AffineMap.get_permutation([1, 0]), ir.AffineMap.get_identity(2)],
            [parallel, parallel],
            lambda elements: [arith.addf(*elements)],
        )
        end.operands[0] = generic.results[0]
    assert module.operation.verify()
    assert generic.location == end.location
    assert "affine_map<(d0, d1) -> (d1, d0)>" in str(module)
    assert [op.operation.name for op in generic.regions[0].blocks[0].operations] == ["arith.addf", "linalg.yield"]


@pytest.mark.parametrize(
    ("constant", "number"),
    [
        ("true", 1),
        ("false", 0),
        ("-3 : index", -3),
        ("7 : i64", 7),
        ("1.0 : f32", None),
        ("dense<1> : tensor<2xi32>", None),
    ],
)
def test_constant_integer(constant, number):
    module = parse(f"func.func @f() {{ %c = arith.constant {constant} \n return }}", context())
    assert constant_integer(walk(module, "arith.constant")[0].results[0]) == number


def test_replace():
    module = parse(RESHAPES, context())
    (cast,) = walk(module, "tensor.expand_shape")
    (end,) = walk(module, "func.return")
    with module.context, before(cast):
        constant = arith.ConstantOp(cast.results[0].type, ir.DenseElementsAttr.parse("dense<0.0> : tensor<2x16xf32>"))
    replace(cast, [constant.result])
    assert defining_op(end.operands[0]) == constant.operation
    assert not walk(module, "tensor.expand_shape")
