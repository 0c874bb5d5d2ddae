"""The driver of patterns: which ops it takes to them, in which order and how often."""

from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from pipeline.mlir import context, defining_op, ir, parse, walk
from pipeline.passmanager.patterns import PatternPass, pattern

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


def test_patterns_are_applied_in_the_order_they_are_written() -> None:
    assert [found.match_and_rewrite.__name__ for found in Watching.patterns()] == ["forward", "backward"]
