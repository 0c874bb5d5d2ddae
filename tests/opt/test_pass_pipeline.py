"""Textual pass pipelines: syntax, nesting, options, running, and errors that come before anything runs."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline import remarks
from pipeline.errors import CompileError, OptionError
from pipeline.mlir import context, ir, parse, verify, walk
from pipeline.passes.tensor.drop_unread_fills import DropUnreadFills
from pipeline.passmanager import registry
from pipeline.passmanager.base import Pass
from pipeline.passmanager.pass_pipeline import PassPipeline
from pipeline.passmanager.pass_runner import Instrumentation

TWO_FUNCTIONS = """
func.func @f(%a: i32) -> i32 { return %a : i32 }
module @inner { func.func @g(%a: i32) -> i32 { return %a : i32 } }
"""


@dataclass(frozen=True)
class Mark(Pass):
    """Marks functions, or fails in the way that `fault` names."""

    name = "test-mark"
    anchor = "func.func"

    label: str = field(default="marked", metadata={"help": "name of the attribute"})
    fault: str = ""
    counts: tuple[int, ...] = ()
    scale: float = 1.0
    loud: bool = False

    def run(self, op):
        if self.fault == "fail":
            self.fail(op, "no such luck")
        if self.fault == "defect":
            {}["missing"]
        if self.fault == "invalid":
            op.attributes["function_type"] = ir.TypeAttr.parse("() -> ()")
        op.attributes[self.label] = ir.UnitAttr.get()
        self.passed(op, "marked")


@dataclass(frozen=True)
class ModuleMark(Pass):
    """Does nothing to a module."""

    name = "test-module-mark"

    def run(self, op):
        pass


@pytest.fixture(autouse=True)
def registered():
    registry.passes()
    registry._register({cls.name: cls for cls in (Mark, ModuleMark)}, "the tests")
    yield
    for cls in (Mark, ModuleMark):
        del registry._classes[cls.name], registry._owners[cls.name]


@pytest.fixture
def module():
    return parse(TWO_FUNCTIONS, context())


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", "builtin.module()"),
        ("builtin.module()", "builtin.module()"),
        ("any(cse)", "builtin.module(cse)"),
        (" canonicalize , cse ", "builtin.module(canonicalize,cse)"),
        ("func.func(canonicalize,test-mark),cse", "builtin.module(func.func(canonicalize,test-mark),cse)"),
        ("buffer-hoisting,func.func(cse)", "builtin.module(func.func(buffer-hoisting,cse))"),
        ("canonicalize{top-down=false}", "builtin.module(canonicalize{top-down=false})"),
        ("test-mark{label=x counts=1,2}", "builtin.module(test-mark{label=x counts={1,2}})"),
        ("test-mark{counts={1,2} loud label='a b'}", 'builtin.module(test-mark{label="a b" counts={1,2} loud=true})'),
    ],
)
def test_text_and_back(text, canonical):
    assert str(PassPipeline.parse(text)) == canonical
    assert str(PassPipeline.parse(canonical)) == canonical


_values = st.builds(
    Mark,
    label=st.text("ab '{},=").filter(lambda text: "'" not in text or '"' not in text),
    counts=st.lists(st.integers()).map(tuple),
    scale=st.floats(allow_nan=False),
    loud=st.booleans(),
)


@given(_values)
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # tables of characters are made once
def test_options_survive_text(pass_):
    (step,) = PassPipeline.parse(str(pass_)).steps
    assert step.pass_ == pass_


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("canonicalise", "column 1: unknown pass 'canonicalise'; did you mean 'canonicalize'?"),
        ("cse,test-marc", "column 5: unknown pass 'test-marc'; did you mean 'test-mark'?"),
        ("test-mark{lable=x}", "pass 'test-mark': no option 'lable'; did you mean 'label'?"),
        ("test-mark{counts=1,x}", "option 'counts' takes int,..., not 'x'"),
        ("test-mark{loud=maybe}", "option 'loud' takes bool, not 'maybe'"),
        ("canonicalize{max-iteration=1}", "no option 'max-iteration'; did you mean 'max-iterations'?"),
        ("canonicalize{max-iterations=x}", "'canonicalize' does not take the options 'max-iterations=x'"),
        ("cse,,cse", "column 5: expected the name of a pass or of an op"),
        ("builtin.module(cse", "column 19: expected ')'"),
        ("cse)", "column 4: expected ',' or the end"),
        ("any(cse),cse", "column 9: expected nothing more"),
        ("cse{a", "expected '}' to close the options"),
        ("test-mark{label='a}", "unbalanced quotes"),
        ("func.func(" * 100, "nested too deep"),
        ("func.func(test-module-mark)", "runs on 'builtin.module' and cannot be nested in 'func.func'"),
        ("fusion.group(test-mark)", "'test-mark' runs on 'func.func' and cannot be nested in 'fusion.group'"),
        ("func.func(one-shot-bufferize)", "runs on 'builtin.module' and cannot be nested in 'func.func'"),
        ("func.func(sparsifier)", "'sparsifier' runs on 'builtin.module' and cannot be nested in 'func.func'"),
    ],
)
def test_wrong_text_is_one_error(text, message):
    with pytest.raises(OptionError) as raised:
        PassPipeline.parse(text)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_nesting_in_no_op_is_refused_before_anything_runs(module):
    with pytest.raises(OptionError, match=r"nested in 'func\.fun', which is no op"):
        PassPipeline.parse("test-mark,func.fun(cse)").run(module)
    assert "marked" not in str(module)


def test_pass_runs_on_each_op_of_its_anchor(module):
    PassPipeline.parse("test-mark").run(module)
    assert str(module).count("marked") == 2


def test_explicit_nesting_is_exact(module):
    PassPipeline.parse("func.func(test-mark{label=outer}),builtin.module(func.func(test-mark{label=inner}))").run(
        module
    )
    outer, inner = module.body.operations[0], module.body.operations[1].body.operations[0]
    assert "outer" in outer.attributes and "inner" not in outer.attributes
    assert "inner" in inner.attributes and "outer" not in inner.attributes


def test_nesting_in_any_means_every_isolated_op(module):
    PassPipeline.parse("any(any(test-mark{label=shallow},any(test-mark{label=deep})))").run(module)
    outer, inner = module.body.operations[0], module.body.operations[1].body.operations[0]
    assert "shallow" in outer.attributes and "deep" not in outer.attributes
    assert "shallow" in inner.attributes and "deep" in inner.attributes


GROUP = """
func.func @f(%x: tensor<?xf32>, %n: index) -> (tensor<?xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %outside = arith.constant 2.0 : f32
  %loop = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> tensor<?xf32> {
    %r = "fusion.group"(%y) ({
    ^bb0(%a: tensor<?xf32>):
      %inside = arith.constant 2.0 : f32
      %four = arith.addf %inside, %inside : f32
      %z = linalg.fill ins(%four : f32) outs(%a : tensor<?xf32>) -> tensor<?xf32>
      "fusion.yield"(%z) : (tensor<?xf32>) -> ()
    }) {kind = "elementwise", label = "fill"} : (tensor<?xf32>) -> tensor<?xf32>
    scf.yield %r : tensor<?xf32>
  }
  return %loop, %outside : tensor<?xf32>, f32
}
"""


@pytest.mark.parametrize(
    "name",
    ["canonicalize", "cse", "sccp", "loop-invariant-code-motion", "control-flow-sink", "linalg-fuse-elementwise-ops"],
)
def test_passes_of_mlir_leave_groups_isolated(name):
    """MLIR does not know that groups are isolated from above; what it must not do is use that."""
    module = parse(GROUP, context())
    PassPipeline.parse(name).run(module)
    verify(module.operation)
    assert len(walk(module, "fusion.group")) == 1


def test_mlir_and_own_passes_run_in_order(module):
    source = "func.func @f() -> i32 { %a = arith.constant 1 : i32 \n %b = arith.addi %a, %a : i32 \n return %b : i32 }"
    module = parse(source, context())
    PassPipeline.parse("canonicalize,test-mark,func.func(cse)").run(module)
    assert "arith.addi" not in str(module) and "marked" in str(module)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("fail", "pass 'test-mark' failed on func.func @f: no such luck"),
        ("defect", "pass 'test-mark' failed on func.func @f: KeyError: 'missing'"),
        ("invalid", "pass 'test-mark' failed on func.func @f: it left invalid IR"),
    ],
)
def test_failure_names_pass_and_op_and_position(module, fault, message):
    with pytest.raises(CompileError) as raised:
        PassPipeline.parse(f"test-mark{{fault={fault}}}").run(module)
    assert message in str(raised.value)
    assert raised.value.diagnostics[0].line == 2


_LEFT_INVALID = "one of the passes fold-unit-transposes, drop-unread-fills left invalid IR (PIPELINE_VERIFY=each"


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("each", "pass 'drop-unread-fills' failed on func.func @f: it left invalid IR"),
        ("end", _LEFT_INVALID),
        ("", _LEFT_INVALID),
    ],
)
def test_when_the_passes_of_the_house_are_verified(module, monkeypatch, when, message):
    """Those of plugins always are; see the test above."""
    monkeypatch.setenv("PIPELINE_VERIFY", when)
    monkeypatch.setattr(DropUnreadFills, "run", lambda self, op: list(op.regions[0].blocks[0].operations)[-1].erase())
    with pytest.raises(CompileError) as raised:
        PassPipeline.parse("fold-unit-transposes,drop-unread-fills").run(module)
    assert message in str(raised.value)


def test_wrong_time_of_verification(module, monkeypatch):
    monkeypatch.setenv("PIPELINE_VERIFY", "often")
    with pytest.raises(OptionError, match="PIPELINE_VERIFY is 'often', expected one of each, end, never"):
        PassPipeline.parse("cse").run(module)


def test_invalid_ir_passes_where_verification_is_off(module):
    PassPipeline.parse("test-mark{fault=invalid}").run(module, verify="never")


def test_failure_of_mlir_pass_names_it(module):
    pipeline = PassPipeline.parse("cse,func.func(inline)")
    with pytest.raises(CompileError, match="inline"):
        pipeline.run(module)
    with pytest.raises(CompileError, match="pass 'inline' failed on func.func @f: .*does not define a symbol table"):
        pipeline.run(module, [Instrumentation()])


def test_disabled_pass_is_skipped_with_a_remark(module):
    with remarks.collect() as made:
        PassPipeline.parse("test-mark,cse").run(module, disable=frozenset({"test-mark", "cse"}))
    assert "marked" not in str(module)
    assert [(remark.pass_name, remark.reason) for remark in made] == [
        ("test-mark", "the pass is disabled"),
        ("cse", "the pass is disabled"),
    ]


def test_disabling_an_unknown_pass_is_an_error(module):
    with pytest.raises(OptionError, match="unknown pass 'test-marc'; did you mean 'test-mark'"):
        PassPipeline.parse("cse").run(module, disable=frozenset({"test-marc"}))


class Log(Instrumentation):
    def __init__(self):
        self.events = []

    def before(self, step, op):
        self.events.append(("before", step.pass_.name, op.name))

    def after(self, step, op):
        self.events.append(("after", step.pass_.name, op.name))

    def failed(self, step, op):
        self.events.append(("failed", step.pass_.name, op.name))


def test_instrumentation_sees_each_pass_on_each_op(module):
    log = Log()
    with pytest.raises(CompileError):
        PassPipeline.parse("cse,func.func(canonicalize),test-mark{fault=fail}").run(module, [log])
    assert log.events == [
        ("before", "cse", "builtin.module"),
        ("after", "cse", "builtin.module"),
        ("before", "canonicalize", "func.func"),
        ("after", "canonicalize", "func.func"),
        ("before", "test-mark", "func.func"),
        ("failed", "test-mark", "func.func"),
    ]
