"""Which programs are lowered without a process of their own, and that nothing is told of them otherwise."""

import os

import pytest
import torch
from function_model import Function

import pipeline
from pipeline.frontend.importer.harmless_ops import is_harmless
from pipeline.frontend.importer.supervised_lowering import lower_supervised
from pipeline.frontend.shapes.promises import Promises
from pipeline.mlir import context, ir

NO_PROMISES = Promises([], [], {}, False)

DIVISION = """
func.func @main(%x: !torch.vtensor<[2],si64>) -> !torch.vtensor<[2],si64> {
  %floor = torch.constant.str "floor"
  %y = torch.aten.div.Tensor_mode %x, %x, %floor : !torch.vtensor<[2],si64>, !torch.vtensor<[2],si64>, !torch.str
    -> !torch.vtensor<[2],si64>
  return %y : !torch.vtensor<[2],si64>
}
"""

LOOP = """
func.func @main(%x: !torch.vtensor<[2],f32>, %n: !torch.int) -> !torch.vtensor<[2],f32> {
  %true = torch.constant.bool true
  %y = torch.prim.Loop %n, %true, init(%x) {
  ^bb0(%i: !torch.int, %z: !torch.vtensor<[2],f32>):
    torch.prim.Loop.condition %true, iter(%z : !torch.vtensor<[2],f32>)
  } : (!torch.int, !torch.bool, !torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32>
  return %y : !torch.vtensor<[2],f32>
}
"""


def program(op: str, kind: str = "!torch.vtensor<[2,4],f32>") -> ir.Module:
    """A function of one op that takes a tensor and gives one of the same type."""
    source = f"func.func @main(%x: {kind}) -> {kind} {{ %y = {op} %x : {kind} -> {kind} return %y : {kind} }}"
    return ir.Module.parse(source.replace("return", "\n return"), context())


@pytest.mark.parametrize("kind", ["[2,4],f32", "[],si64", "[1],i1", "[3,1,10],bf16", "[?,4],f32", "[?,?],si8"])
def test_known_ops_of_sizes_above_0_or_unknown_are_harmless(kind: str) -> None:
    assert is_harmless(program("torch.aten.relu", f"!torch.vtensor<{kind}>"))


@pytest.mark.parametrize("kind", ["[0,4],f32", "[4,0],f32", "[?,0],f32", "[2,4],complex<f32>", "[20,0,3],f32"])
def test_other_sizes_and_types_are_not(kind: str) -> None:
    assert not is_harmless(program("torch.aten.relu", f"!torch.vtensor<{kind}>"))


@pytest.mark.parametrize(("first", "expected"), [("[2,4]", True), ("[0,4]", False), ("[?,4]", True)])
def test_tensors_in_lists_count(first: str, expected: bool) -> None:
    x, y = f"!torch.vtensor<{first},f32>", "!torch.vtensor<[2,4],f32>"
    source = f"""
    func.func @main(%x: {x}, %y: {y}) -> !torch.vtensor<[4,4],f32> {{
      %zero = torch.constant.int 0
      %l = torch.prim.ListConstruct %x, %y : ({x}, {y}) -> !torch.list<vtensor>
      %z = torch.aten.cat %l, %zero : !torch.list<vtensor>, !torch.int -> !torch.vtensor<[4,4],f32>
      return %z : !torch.vtensor<[4,4],f32>
    }}"""
    assert is_harmless(ir.Module.parse(source, context())) is expected


@pytest.mark.parametrize(("kind", "expected"), [("[8]", True), ("[?]", False)])
def test_views_of_unknown_sizes_are_not(kind: str, expected: bool) -> None:
    source = f"""
    func.func @main(%x: !torch.vtensor<[2,4],f32>) -> !torch.vtensor<{kind},f32> {{
      %all = torch.constant.int -1
      %l = torch.prim.ListConstruct %all : (!torch.int) -> !torch.list<int>
      %y = torch.aten.view %x, %l : !torch.vtensor<[2,4],f32>, !torch.list<int> -> !torch.vtensor<{kind},f32>
      return %y : !torch.vtensor<{kind},f32>
    }}"""
    assert is_harmless(ir.Module.parse(source, context())) is expected


@pytest.mark.parametrize(("kind", "expected"), [("si64", True), ("si32", True), ("i1", False), ("ui8", False)])
def test_selections_by_masks_are_not(kind: str, expected: bool) -> None:
    index = f"!torch.vtensor<[3],{kind}>"
    source = f"""
    func.func @main(%x: !torch.vtensor<[3],f32>, %i: {index}) -> !torch.vtensor<[3],f32> {{
      %l = torch.prim.ListConstruct %i : ({index}) -> !torch.list<vtensor>
      %y = torch.aten.index.Tensor %x, %l : !torch.vtensor<[3],f32>, !torch.list<vtensor> -> !torch.vtensor<[3],f32>
      return %y : !torch.vtensor<[3],f32>
    }}"""
    assert is_harmless(ir.Module.parse(source, context())) is expected


@pytest.mark.parametrize(("divisor", "expected"), [("%two", True), ("%zero", False), ("%n", False)])
def test_quotients_of_sizes_by_what_may_be_0_are_not(divisor: str, expected: bool) -> None:
    source = f"""
    func.func @main(%n: !torch.int) -> !torch.int {{
      %two = torch.constant.int 2
      %zero = torch.constant.int 0
      %m = torch.aten.floordiv.int %n, {divisor} : !torch.int, !torch.int -> !torch.int
      return %m : !torch.int
    }}"""
    assert is_harmless(ir.Module.parse(source, context())) is expected


def test_other_ops_are_not() -> None:
    assert not is_harmless(program("torch.aten.trunc"))
    assert not is_harmless(ir.Module.parse(DIVISION, context()))
    assert not is_harmless(ir.Module.parse(LOOP, context()))


def test_all_are_supervised_where_that_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_SUPERVISE", "all")
    assert not is_harmless(program("torch.aten.relu"))


def test_only_the_others_have_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    forks = []
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: forks.append(1) or fork())
    x = torch.randn(3, 5)
    for function, children in ((lambda x: (x @ x.t()).relu() + 1, 0), (lambda x: x.remainder(3), 1)):
        executable = pipeline.compile(Function(function), (x,))
        torch.testing.assert_close(executable(x), function(x))
        assert len(forks) == children


def test_a_harmless_op_that_cannot_be_lowered_is_refused_by_name() -> None:
    with pytest.raises(pipeline.UnsupportedOpError, match="aten.bitwise_not"):
        lower_supervised(program("torch.aten.bitwise_not"), lambda *_: None, NO_PROMISES)
