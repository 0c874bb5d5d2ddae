"""The words that kernels are named after."""

from __future__ import annotations

import pytest

from pipeline.analysis.op_naming import op_label
from pipeline.mlir import context, ir, parse, walk


def label(body: str) -> list[str]:
    source = f"""
    #id = affine_map<(d0) -> (d0)>
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %zero = arith.constant 0.0 : f32
      %r = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel"]}}
          ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) {{
      ^bb0(%in: f32, %out: f32):
        {body}
        linalg.yield %r0 : f32
      }} -> tensor<4xf32>
      return %r : tensor<4xf32>
    }}"""
    with context() as ctx, ir.Location.unknown():
        module = parse(source, ctx)
        (generic,) = walk(module, "linalg.generic")
        return op_label(generic)


@pytest.mark.parametrize(
    ("predicate", "other", "word"),
    [
        ("ogt", "%zero", "relu"),
        ("ugt", "%zero", "relu"),
        ("olt", "%zero", "select"),
        ("ogt", "%in", "select"),
    ],
)
def test_a_relu_is_what_is_greater_than_zero_or_zero(predicate: str, other: str, word: str) -> None:
    compare = f"%c = arith.cmpf {predicate}, %in, {other} : f32"
    assert label(f"{compare}\n%r0 = arith.select %c, %in, %zero : f32") == [word]


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "rem"])
def test_arithmetic_is_called_by_its_name(op: str) -> None:
    assert label(f"%r0 = arith.{op}f %in, %in : f32") == [op]
