"""What passes build ops with."""

from __future__ import annotations

from pipeline.ir.rewriting import build_generic, iterator_types
from pipeline.mlir import (
    arith,
    callee,
    calls_of,
    clone,
    context,
    function,
    ir,
    parse,
    refusal,
    seen_through,
    verify,
    walk,
)

MODULE = """
func.func @main(%x: tensor<4xf32>, %number: f32) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
"""

ON_BUFFERS = """
func.func @main(%x: memref<3x4xf32>, %sums: memref<3xf32>) {
  return
}
"""

CALLS = """
func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func private @g(tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = call @g(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %c = call @f(%b) : (tensor<4xf32>) -> tensor<4xf32>
  %d = tensor.expand_shape %c [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  %e = tensor.collapse_shape %d [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
  return %e : tensor<4xf32>
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
            iterator_types([False]),
            lambda elements: [arith.AddFOp(elements[0], elements[1]).result],
        )
    verify(module.operation)
    (generic,) = walk(module, "linalg.generic")
    assert [str(value.type) for value in generic.operands] == ["tensor<4xf32>", "f32", "tensor<4xf32>"]
    assert [str(value.type) for value in generic.results] == ["tensor<4xf32>"]


def test_build_generic_on_buffers_has_no_results() -> None:
    module = parse(ON_BUFFERS, context())
    block = function(module, "main").regions[0].blocks[0]
    x, sums = block.arguments
    with module.context, ir.Location.unknown(), ir.InsertionPoint.at_block_begin(block):
        row = ir.AffineMap.get(2, 0, [ir.AffineDimExpr.get(0)])
        build_generic(
            [x],
            [sums],
            [ir.AffineMap.get_identity(2), row],
            iterator_types([False, True]),
            lambda elements: [arith.AddFOp(elements[0], elements[1]).result],
        )
    verify(module.operation)
    (generic,) = walk(module, "linalg.generic")
    assert list(generic.results) == []
    kinds = [str(kind) for kind in generic.attributes["iterator_types"]]
    assert kinds == ["#linalg.iterator_type<parallel>", "#linalg.iterator_type<reduction>"]


def test_calls_and_what_lies_behind_views() -> None:
    module = parse(CALLS, context())
    calls = calls_of(module)
    assert {name: len(found) for name, found in calls.items()} == {"f": 2, "g": 1}
    (returned,) = walk(module, "func.return")
    last = calls["f"][1].results[0]
    assert seen_through(returned.operands[0], ("tensor.expand_shape", "tensor.collapse_shape")) == last
    assert seen_through(returned.operands[0], ("tensor.cast",)) == returned.operands[0]


def test_a_clone_reads_what_is_known() -> None:
    module = parse(CALLS, context())
    (x,) = function(module, "main").regions[0].blocks[0].arguments
    first, second = calls_of(module)["f"][0], calls_of(module)["g"][0]
    known = {first.results[0]: x}
    with module.context, ir.Location.unknown(), ir.InsertionPoint(second):
        copy = clone(second, known)
    assert callee(copy) == "g" and copy.operands[0] == x
    assert known[second.results[0]] == copy.results[0]
    verify(module.operation)


def test_a_refusal_names_the_line() -> None:
    source = 'func.func @f(%x: f32) {\n  %0 = arith.negf %x : f32 loc("model.py":12:3)\n  return\n}'
    (known,) = walk(parse(source, context()), "arith.negf")
    error = refusal(known, "no negation here")
    assert str(error) == "model.py:12: no negation here"
    assert [(one.file, one.line, one.message) for one in error.diagnostics] == [("model.py", 12, "no negation here")]
    (unknown,) = walk(parse(source.replace('"model.py":12:3', "unknown"), context()), "arith.negf")
    assert str(refusal(unknown, "no negation here")) == "no negation here"
