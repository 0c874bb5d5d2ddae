"""The driver of patterns: which ops it takes to them, in which order and how often."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import pytest

from pipeline.mlir import context, defining_op, ir, parse, walk
from pipeline.passmanager.patterns import PatternPass, RewritePattern, pattern

CHAIN = """
func.func @main(%x: f32, %c: i1) -> f32 {
  %a = arith.negf %x : f32
  %b = scf.if %c -> f32 {
    %n = arith.negf %a : f32
    scf.yield %n : f32
  } else {
    scf.yield %a : f32
  }
  %d = arith.addf %b, %x : f32
  %e = arith.negf %d : f32
  %f = arith.negf %e : f32
  return %f : f32
}
"""


@dataclass(frozen=True)
class Watching(PatternPass):
    """Rewrites nothing."""

    name: ClassVar[str] = "watching"
    seen: list[str] = field(default_factory=list)

    @pattern("arith.negf", "arith.addf")
    def forward(self, op: ir.Operation) -> bool:
        """x -> x"""
        self.seen.append(op.name)
        return False

    @pattern("arith.negf", "scf.if", users_first=True)
    def backward(self, op: ir.Operation) -> bool:
        """x -> x"""
        self.seen.append(f"{op.name} of {len(list(op.operands[0].uses))}")
        return False


@dataclass(frozen=True)
class CancelNegations(PatternPass):
    """Takes two negations away at a time."""

    name: ClassVar[str] = "cancel-negations"
    sweeps: ClassVar[int] = 5
    calls: list[ir.Operation] = field(default_factory=list)

    @pattern("arith.negf")
    def cancel(self, negation: ir.Operation) -> bool:
        """negf(negf(x)) -> x"""
        self.calls.append(negation)
        inner = defining_op(negation.operands[0])
        if inner is None or inner.name != "arith.negf":
            return False
        negation.results[0].replace_all_uses_with(inner.operands[0])
        negation.erase()
        if not list(inner.results[0].uses):
            inner.erase()
        return True


@dataclass(frozen=True)
class ShareNegations(PatternPass):
    """Computes each negation once, if it was seen before."""

    name: ClassVar[str] = "share-negations"
    sweeps: ClassVar[int] = 5
    analyzed: list[str] = field(default_factory=list)

    def analyze(self, op: ir.Operation) -> dict[ir.Value, ir.Value]:
        """The negations of values; the pattern adds to it."""
        self.analyzed.append(op.name)
        return {}

    @pattern("arith.negf")
    def share(self, negation: ir.Operation, known: dict[ir.Value, ir.Value]) -> bool:
        """negf(x), negf(x) -> negf(x)"""
        value = known.setdefault(negation.operands[0], negation.results[0])
        if value == negation.results[0]:
            return False
        negation.results[0].replace_all_uses_with(value)
        negation.erase()
        return True


def roots_of(found: RewritePattern, module: ir.Module) -> list[str]:
    """The names of the ops that a pattern takes."""
    names: list[str] = []
    replace(found, match_and_rewrite=lambda _, op: names.append(op.name)).sweep(Watching(), module.operation)
    return names


@pytest.fixture
def module() -> ir.Module:
    """Negations in a row and in a branch."""
    return parse(CHAIN, context())


def run(pass_: PatternPass, module: ir.Module) -> None:
    """Runs a pass on the whole module."""
    with module.context:
        pass_.run(module.operation)


def test_roots_come_in_program_order_and_in_reverse(module: ir.Module) -> None:
    watching = Watching()
    run(watching, module)
    assert watching.seen[:5] == ["arith.negf", "arith.negf", "arith.addf", "arith.negf", "arith.negf"]
    assert watching.seen[5:] == [
        "arith.negf of 1",  # %f
        "arith.negf of 1",  # %e
        "arith.negf of 2",  # %n, inside the branch
        "scf.if of 1",
        "arith.negf of 2",  # %a
    ]


def test_nothing_matched_ends_the_sweeps(module: ir.Module) -> None:
    watching = Watching()
    run(watching, module)
    assert len(watching.seen) == 10  # one sweep of both


def test_sweeps_go_on_until_nothing_matches(module: ir.Module) -> None:
    cancelling = CancelNegations()
    run(cancelling, module)
    assert len(walk(module, "arith.negf")) == 1  # the branch's other arm reads %a
    assert len(cancelling.calls) == 4 + 1  # %a, %n, %e and %f, then %a alone
    assert module.operation.verify()


def test_what_is_analyzed_once_is_known_to_all_roots_of_all_sweeps() -> None:
    module = parse(
        """
        func.func @main(%x: f32) -> (f32, f32, f32) {
          %a = arith.negf %x : f32
          %b = arith.negf %x : f32
          %c = arith.negf %a : f32
          %d = arith.negf %b : f32
          return %b, %c, %d : f32, f32, f32
        }
        """,
        context(),
    )
    sharing = ShareNegations()
    run(sharing, module)
    assert sharing.analyzed == ["builtin.module"]
    assert len(walk(module, "arith.negf")) == 2
    assert module.operation.verify()


def test_a_dialect_is_a_root(module: ir.Module) -> None:
    expected = ["scf.if", "scf.yield", "scf.yield"]
    assert roots_of(pattern("scf.*")(lambda *_: False), module) == expected
    assert roots_of(pattern("scf.*", users_first=True)(lambda *_: False), module) == expected[::-1]
    assert not roots_of(pattern("sc.*", "scf", "*")(lambda *_: False), module)


def test_what_a_function_says_is_a_root(module: ir.Module) -> None:
    two_operands = pattern(lambda op: len(op.operands) == 2, "scf.if")(lambda *_: False)
    assert roots_of(two_operands, module) == ["scf.if", "arith.addf"]


def test_outermost_roots_hide_what_is_inside_of_them(module: ir.Module) -> None:
    assert roots_of(pattern("scf.*", outermost=True)(lambda *_: False), module) == ["scf.if"]
    negations = pattern("scf.if", "arith.negf", outermost=True)(lambda *_: False)
    assert roots_of(negations, module) == ["arith.negf", "scf.if", "arith.negf", "arith.negf"]


def test_patterns_are_applied_in_the_order_they_are_written() -> None:
    assert [found.match_and_rewrite.__name__ for found in Watching.patterns()] == ["forward", "backward"]
