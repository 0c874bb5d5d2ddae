"""What passes build ops with."""

from __future__ import annotations

from pipeline.mlir import arith, context, function, ir, parse, verify, walk
from pipeline.passes.rewriting import build_generic

MODULE = """
func.func @main(%x: tensor<4xf32>, %number: f32) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
"""


def test_build_generic_takes_numbers_beside_tensors() -> None:
    module = parse(MODULE, context())
    block = function(module, "main").regions[0].blocks[0]
    x, number = block.arguments
    with module.context, ir.Location.unknown(), ir.InsertionPoint.at_block_begin(block):
        each, none = ir.AffineMap.get_identity(1), ir.AffineMap.get(1, 0, [])
        build_generic(
            [x, number],
            [x],
            [each, none, each],
            [ir.Attribute.parse("#linalg.iterator_type<parallel>")],
            lambda elements: [arith.AddFOp(elements[0], elements[1]).result],
        )
    verify(module.operation)
    (generic,) = walk(module, "linalg.generic")
    assert [str(value.type) for value in generic.operands] == ["tensor<4xf32>", "f32", "tensor<4xf32>"]
