"""Passes over regions: programs in MLIR give the same results with each of them as with none."""

from __future__ import annotations

import numpy as np
import pytest

import pipeline

PASSES = (
    "inline-constant-regions",
    "remove-unused-iter-args",
    "scalarize-unit-tensors",
    "gathers-to-slices",
    "sink-slices-into-groups",
    "merge-equal-conditions",
    "hoist-common-ops",
    "hoist-loop-invariants",
    "sink-into-branches",
    "sink-consumers-into-branches",
    "branches-to-selects",
    "expand-tensor-selects",
    "share-branch-destinations",
    "double-buffer-iter-args",
    "align-while-iter-args",
    "plan-memory",
    "uplift-while-to-for",
    "outline-loops",
    "scratch-to-stack",
    "inline-kernels",
)

HEADER = """
#id = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
"""


def elementwise(result: str, body: str, *inputs: str, size: int = 37) -> str:
    """A linalg.generic over vectors: `body` computes %v from the elements %a, %b, ..."""
    kind = f"tensor<{size}xf32>"
    elements = ", ".join(f"%{name}: f32" for name in "abcdef"[: len(inputs)])
    maps = ", ".join(["#id"] * (len(inputs) + 1))
    return f"""
    {result}_e = tensor.empty() : {kind}
    {result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
        ins({", ".join(inputs)} : {", ".join([kind] * len(inputs))}) outs({result}_e : {kind}) {{
    ^bb0({elements}, %o: f32):
      {body}
      linalg.yield %v : f32
    }} -> {kind}
"""


def total(result: str, source: str, size: int = 37) -> str:
    """The sum of a vector, as a number."""
    return f"""
    {result}_z = arith.constant 0.0 : f32
    {result}_e = tensor.empty() : tensor<f32>
    {result}_f = linalg.fill ins({result}_z : f32) outs({result}_e : tensor<f32>) -> tensor<f32>
    {result}_t = linalg.generic {{indexing_maps = [#id, #none], iterator_types = ["reduction"]}}
        ins({source} : tensor<{size}xf32>) outs({result}_f : tensor<f32>) {{
    ^bb0(%a: f32, %o: f32):
      %v = arith.addf %a, %o : f32
      linalg.yield %v : f32
    }} -> tensor<f32>
    {result} = tensor.extract {result}_t[] : tensor<f32>
"""


ADD, SUB, MUL = (f"%v = arith.{op} %a, %b : f32" for op in ("addf", "subf", "mulf"))
NEG, EXP, SIN, TANH = (f"%v = {op} %a : f32" for op in ("arith.negf", "math.exp", "math.sin", "math.tanh"))
KIND = "tensor<37xf32>"

#: The forms of loops and branches, each the body of @main(%x, %y, %n) with what it returns.
PROGRAMS = {
    # both branches, their consumer, what only one of them needs, what both need
    "branches": (
        elementwise("%p", EXP, "%y")
        + elementwise("%q", SIN, "%x")
        + total("%s", "%x")
        + f"""
    %zero = arith.constant 0.0 : f32
    %c = arith.cmpf ogt, %s, %zero : f32
    %r = scf.if %c -> {KIND} {{
    {elementwise("%t1", MUL, "%p", "%q")}
      scf.yield %t1 : {KIND}
    }} else {{
    {elementwise("%t2", SUB, "%q", "%x")}
      scf.yield %t2 : {KIND}
    }}"""
        + elementwise("%z", ADD, "%r", "%y"),
        ["%z"],
    ),
    # two branches on one condition, the second on the first's result; one hands on an argument
    "conditions": (
        total("%s", "%x")
        + f"""
    %zero = arith.constant 0.0 : f32
    %c = arith.cmpf ogt, %s, %zero : f32
    %r:2 = scf.if %c -> ({KIND}, {KIND}) {{
    {elementwise("%t1", EXP, "%x")}
      scf.yield %t1, %y : {KIND}, {KIND}
    }} else {{
    {elementwise("%t2", TANH, "%x")}
      scf.yield %x, %t2 : {KIND}, {KIND}
    }}
    %u = scf.if %c -> {KIND} {{
    {elementwise("%t3", MUL, "%r#0", "%r#1")}
      scf.yield %t3 : {KIND}
    }} else {{
      scf.yield %r#1 : {KIND}
    }}""",
        ["%u", "%r#0"],
    ),
    # a, b = b, a + b
    "fibonacci": (
        f"""
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x, %g = %y) -> ({KIND}, {KIND}) {{
    {elementwise("%t", ADD, "%h", "%g")}
    {elementwise("%k", TANH, "%t")}
      scf.yield %g, %k : {KIND}, {KIND}
    }}""",
        ["%r#0", "%r#1"],
    ),
    # two carries take over one value, a third is exchanged, a fourth stays
    "copies": (
        elementwise("%w", NEG, "%x")
        + f"""
    %r:5 = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x, %g = %y, %k = %w, %l = %x, %m = %y)
        -> ({KIND}, {KIND}, {KIND}, {KIND}, {KIND}) {{
    {elementwise("%t", ADD, "%h", "%g")}
    {elementwise("%v0", SIN, "%t")}
      scf.yield %v0, %h, %h, %l, %v0 : {KIND}, {KIND}, {KIND}, {KIND}, {KIND}
    }}""",
        ["%r#0", "%r#1", "%r#2", "%r#3", "%r#4", "%w"],
    ),
    # the same, with an op in between that the second needs, and one that needs the first
    "apart": (
        total("%s", "%x")
        + f"""
    %zero = arith.constant 0.0 : f32
    %c = arith.cmpf ogt, %s, %zero : f32
    %r = scf.if %c -> {KIND} {{
    {elementwise("%t1", EXP, "%x")}
      scf.yield %t1 : {KIND}
    }} else {{
      scf.yield %x : {KIND}
    }}"""
        + elementwise("%p", SIN, "%y")
        + elementwise("%q", NEG, "%r")
        + f"""
    %u = scf.if %c -> {KIND} {{
    {elementwise("%t3", MUL, "%r", "%p")}
      scf.yield %t3 : {KIND}
    }} else {{
    {elementwise("%t4", SUB, "%r", "%p")}
      scf.yield %t4 : {KIND}
    }}""",
        ["%u", "%q"],
    ),
    # a branch in a loop that keeps the state, invariants in the branch and in the loop
    "early-exit": (
        f"""
    %zero = arith.constant 3.0 : f32
    %r:2 = scf.while (%k = %x, %i = %zero64) : ({KIND}, tensor<i64>) -> ({KIND}, tensor<i64>) {{
      %iv = tensor.extract %i[] : tensor<i64>
      %goes_on = arith.cmpi slt, %iv, %n64 : i64
      scf.condition(%goes_on) %k, %i : {KIND}, tensor<i64>
    }} do {{
    ^bb0(%k: {KIND}, %i: tensor<i64>):
    {total("%s", "%k")}
    {elementwise("%inv", EXP, "%y")}
      %c = arith.cmpf olt, %s, %zero : f32
      %next = scf.if %c -> {KIND} {{
    {elementwise("%t1", ADD, "%k", "%inv")}
        scf.yield %t1 : {KIND}
      }} else {{
        scf.yield %k : {KIND}
      }}
      %iv = tensor.extract %i[] : tensor<i64>
      %one = arith.constant 1 : i64
      %iv2 = arith.addi %iv, %one : i64
      %i2 = tensor.from_elements %iv2 : tensor<i64>
      scf.yield %next, %i2 : {KIND}, tensor<i64>
    }}""",
        ["%r#0", "%r#1"],
    ),
    # a loop in a loop, both carry; the inner starts from the outer's state and keeps a captured tensor
    "nested": (
        f"""
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> {KIND} {{
      %q:2 = scf.for %j = %c0 to %i step %c1 iter_args(%g = %h, %k = %y) -> ({KIND}, {KIND}) {{
    {elementwise("%t", ADD, "%g", "%h")}
    {elementwise("%u", SIN, "%t")}
        scf.yield %u, %g : {KIND}, {KIND}
      }}
    {elementwise("%w", SUB, "%q#0", "%q#1")}
      scf.yield %w : {KIND}
    }}""",
        ["%r"],
    ),
    # a cache that is filled in place beside a state that is computed, and read in each round
    "cache": (
        f"""
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%cache = %x, %h = %y) -> ({KIND}, {KIND}) {{
      %part = tensor.extract_slice %h[0] [3] [1] : {KIND} to tensor<3xf32>
      %at = arith.remui %i, %c9 : index
      %old = tensor.extract %cache[%at] : {KIND}
      %new = tensor.insert_slice %part into %cache[%at] [3] [1] : tensor<3xf32> into {KIND}
    {elementwise("%t", MUL, "%h", "%new")}
    {elementwise("%u", SIN, "%t")}
      %v0 = tensor.insert %old into %u[%c1] : {KIND}
      scf.yield %new, %v0 : {KIND}, {KIND}
    }}""",
        ["%r#0", "%r#1"],
    ),
    # branches that only hand on what there is: of a loop's state, of arguments, twice in a row
    "choices": (
        total("%s", "%x")
        + f"""
    %zero = arith.constant 0.0 : f32
    %c = arith.cmpf ogt, %s, %zero : f32
    %q = scf.if %c -> {KIND} {{
      scf.yield %x : {KIND}
    }} else {{
      scf.yield %y : {KIND}
    }}
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%h = %q, %g = %y) -> ({KIND}, {KIND}) {{
    {elementwise("%t", ADD, "%h", "%g")}
    {elementwise("%u", SIN, "%t")}
      %d = arith.cmpi ugt, %i, %c1 : index
      %next:2 = scf.if %d -> ({KIND}, {KIND}) {{
        scf.yield %u, %h : {KIND}, {KIND}
      }} else {{
        scf.yield %h, %u : {KIND}, {KIND}
      }}
      %w = tensor.insert %zero into %next#0[%c0] : {KIND}
      scf.yield %w, %next#1 : {KIND}, {KIND}
    }}
    %z = scf.if %c -> {KIND} {{
      scf.yield %r#0 : {KIND}
    }} else {{
      scf.yield %x : {KIND}
    }}""",
        ["%z", "%r#1", "%q"],
    ),
    # loops in a branch, whose results leave it, and a loop after another
    "leaves": (
        total("%s", "%x")
        + f"""
    %zero = arith.constant 0.0 : f32
    %c = arith.cmpf ogt, %s, %zero : f32
    %r:2 = scf.if %c -> ({KIND}, {KIND}) {{
      %l:2 = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x, %g = %y) -> ({KIND}, {KIND}) {{
    {elementwise("%t", ADD, "%h", "%g")}
    {elementwise("%k", TANH, "%t")}
        scf.yield %g, %k : {KIND}, {KIND}
      }}
      %m:2 = scf.for %i = %c0 to %n step %c1 iter_args(%h = %l#1, %g = %l#0) -> ({KIND}, {KIND}) {{
    {elementwise("%t0", SUB, "%h", "%g")}
        scf.yield %g, %t0 : {KIND}, {KIND}
      }}
      scf.yield %m#0, %m#1 : {KIND}, {KIND}
    }} else {{
      scf.yield %x, %y : {KIND}, {KIND}
    }}""",
        ["%r#0", "%r#1"],
    ),
    # an element at a place that the loop counts, as a tensor without dimensions
    "places": (
        f"""
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> {KIND} {{
      %at = arith.remui %i, %c9 : index
      %one = tensor.extract_slice %h[%at] [1] [1] : {KIND} to tensor<1xf32>
      %flat = tensor.collapse_shape %one [] : tensor<1xf32> into tensor<f32>
      %e = tensor.empty() : {KIND}
      %t = linalg.generic {{indexing_maps = [#none, #id, #id], iterator_types = ["parallel"]}}
          ins(%flat, %h : tensor<f32>, {KIND}) outs(%e : {KIND}) {{
      ^bb0(%a: f32, %b: f32, %o: f32):
        %v = arith.addf %a, %b : f32
        linalg.yield %v : f32
      }} -> {KIND}
      scf.yield %t : {KIND}
    }}""",
        ["%r"],
    ),
    # one condition of each element, with what it guards
    "elements": (
        elementwise(
            "%r",
            """%z = arith.constant 0.0 : f32
      %c = arith.cmpf ogt, %a, %z : f32
      %v = scf.if %c -> f32 {
        %s = math.sqrt %a : f32
        %l = math.log %s : f32
        scf.yield %l : f32
      } else {
        %s = arith.divf %b, %a : f32
        scf.yield %s : f32
      }""",
            "%x",
            "%y",
        ),
        ["%r"],
    ),
}


def text(name: str, size: int = 37) -> str:
    body, results = PROGRAMS[name]
    kinds = ", ".join("tensor<i64>" if name == "early-exit" and result == "%r#1" else KIND for result in results)
    return f"""{HEADER}
func.func @main(%x: {KIND}, %y: {KIND}, %count: tensor<i64>) -> ({kinds}) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c9 = arith.constant 9 : index
    %zero64 = arith.constant dense<0> : tensor<i64>
    %n64 = tensor.extract %count[] : tensor<i64>
    %n = arith.index_cast %n64 : i64 to index
    {body}
    return {", ".join(results)} : {kinds}
}}
""".replace("37x", f"{size}x")


def check(name: str, executable, plain, size: int, counts=(0, 1, 2, 5)) -> None:
    """Two executables of a program: the same results, for several numbers of rounds and several arguments."""
    for count in counts:
        for seed in (0, 1):
            random = np.random.default_rng(seed)
            x, y = (random.standard_normal(size).astype(np.float32) for _ in range(2))
            for got, wanted in zip(*(_tuple(one(x, y, np.array(count))) for one in (executable, plain)), strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5, err_msg=name)


def _tuple(results):
    return results if isinstance(results, tuple | list) else (results,)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("size", [0, 1, 37, 5000])
def test_passes_keep_results(name, size):
    """Small tensors and large ones, for the passes go by cost."""
    if (name in ("cache", "places") and size < 37) or (name == "choices" and not size):
        return  # they write to places that are not there
    plain = pipeline.compile(text(name, size), disable=list(PASSES))
    check(name, pipeline.compile(text(name, size)), plain, size)


@pytest.mark.parametrize("left_out", PASSES)
def test_each_pass_can_be_left_out(left_out):
    for name in ("apart", "early-exit"):
        plain = pipeline.compile(text(name), disable=list(PASSES))
        check(name, pipeline.compile(text(name), disable=[left_out]), plain, 37, counts=(3,))


@pytest.mark.parametrize("name", ["fibonacci", "copies", "early-exit", "nested", "cache"])
def test_loops_allocate_nothing(name):
    """What a loop carries and its temporaries lie in the workspace, which is there before the call."""
    for size in (37, 5000):
        assert "@aligned_alloc" not in pipeline.compile(text(name, size)).ir("llvm")
    assert "@aligned_alloc" in pipeline.compile(text(name), disable=list(PASSES)).ir("llvm")
