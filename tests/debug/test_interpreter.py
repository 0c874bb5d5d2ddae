"""The interpreter gives what eager gives: for the op tables, for branches and loops; and says what it does not know."""

from __future__ import annotations

import copy
import re

import numpy as np
import pytest
import torch
from branch_models import BRANCHES
from elementwise import ELEMENTWISE
from groups import Functions, eager_has, in_double
from loop_models import LOOPS
from movement import MOVEMENT
from numerics import differences
from structured import STRUCTURED

import pipeline
from pipeline import debug
from pipeline.compiler import captured_source
from pipeline.debug.program_call import ProgramCall
from pipeline.debug.tracing import trace
from pipeline.options import Options
from pipeline.runtime.interface.pytree import unflatten

GROUPS = {**ELEMENTWISE, **MOVEMENT, **STRUCTURED}


def interpreted(model, arguments):
    """The results of a model as imported, in the dtypes of its IR."""
    source = captured_source(model, arguments, None, None, Options())
    called = ProgramCall(source.program(lambda stage, code: None), arguments, {})
    results = trace(called.program.module, called.call, exact=True).results
    signature = called.signature
    leaves = [_leaf(result, results, arguments) for result in signature.results]
    return unflatten(signature.result_tree, iter(leaves))


def _leaf(result, results, arguments):
    if result.kind == "constant":
        return result.value
    if result.kind == "argument":
        return arguments[result.index]
    array = results[result.index]
    if result.type is None:
        return array.item()
    made = torch.empty(array.shape, dtype=getattr(torch, result.type.dtype))
    if array.size:
        made.view(-1).view(torch.uint8).numpy()[...] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return made if result.permutation is None else made.permute(result.permutation)


@pytest.mark.parametrize(
    ("key", "dtype"),
    [
        ("arithmetic", torch.bfloat16),
        ("division", torch.uint8),
        ("bitwise", torch.bool),
        ("shifts", torch.int32),
        ("math", torch.float32),
        ("indexing", torch.int64),
        ("shapes", torch.float16),
        ("matmul", torch.int64),
        ("conv2d", torch.float32),
        ("pooling", torch.float32),
        ("reductions", torch.float32),
    ],
)
def test_ops(key, dtype):
    group = GROUPS[key]
    inputs = group.inputs(dtype)
    functions = {name: one for name, one in group.functions.items() if eager_has(one, inputs)}
    got = interpreted(Functions(functions), inputs)
    found = {
        name: problems
        for name, one in functions.items()
        if (problems := differences(got[name], one(*copy.deepcopy(inputs)), in_double(one, inputs, dtype)))
    }
    assert not found, found


def test_branches_and_loops():
    torch.manual_seed(0)
    models = {**BRANCHES, **LOOPS}
    for name in ("TwoResults", "Nested", "CondInWhile", "WhileInWhile", "Newton"):
        kind, argument_sets = models[name]
        model = kind().eval()
        for arguments in argument_sets[:2]:
            with torch.no_grad():
                assert differences(interpreted(model, arguments), model(*arguments)) == [], name


SOFT = """
#rows = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<2x3xbf16>) -> (tensor<2xbf16>, index) {
  %zero = arith.constant 0.0 : bf16
  %empty = tensor.empty() : tensor<2xbf16>
  %start = linalg.fill ins(%zero : bf16) outs(%empty : tensor<2xbf16>) -> tensor<2xbf16>
  %sum = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<2x3xbf16>) outs(%start : tensor<2xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %next = arith.addf %in, %out : bf16
    linalg.yield %next : bf16
  } -> tensor<2xbf16>
  %c1 = arith.constant 1 : index
  %size = tensor.dim %x, %c1 : tensor<2x3xbf16>
  return %sum, %size : tensor<2xbf16>, index
}
"""


def test_each_op_rounds_unless_floats_are_wide():
    x = torch.tensor([[256.0, 1.0, 1.0], [1.0, 1.0, 256.0]], dtype=torch.bfloat16)
    exact, size = debug.interpret(SOFT, x)
    assert exact.tolist() == [256, 258] and int(size) == 3
    assert debug.interpret(SOFT, x, exact=False)[0].tolist() == [258, 258]


def test_affine_indices_in_bodies():
    text = """
    #id = affine_map<(i) -> (i)>
    func.func @main(%x: tensor<5xi64>) -> tensor<5xi64> {
      %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%x : tensor<5xi64>) {
      ^bb0(%out: i64):
        %i = linalg.index 0 : index
        %j = affine.apply affine_map<(i) -> ((i * 2 + 1) mod 5)>(%i)
        %k = affine.min affine_map<(i) -> (i, 3)>(%j)
        %e = tensor.extract %x[%k] : tensor<5xi64>
        linalg.yield %e : i64
      } -> tensor<5xi64>
      return %r : tensor<5xi64>
    }"""
    assert debug.interpret(text, torch.arange(10, 15))[0].tolist() == [11, 13, 10, 12, 13]


def test_an_op_that_is_not_known_is_named():
    text = SOFT.replace("tensor.dim %x, %c1 : tensor<2x3xbf16>", "vector.vscale")
    with pytest.raises(pipeline.PipelineError, match="the interpreter does not know the op 'vector.vscale'"):
        debug.interpret(text, torch.ones(2, 3, dtype=torch.bfloat16))


def test_what_does_not_fit_is_said():
    with pytest.raises(pipeline.PipelineError, match=re.escape("expected tensor<2x3xbf16>, got float32[2, 2]")):
        debug.interpret(SOFT, torch.ones(2, 2))
    with pytest.raises(pipeline.PipelineError, match="argument 0 of @main: no value is given for it"):
        debug.interpret(SOFT)
