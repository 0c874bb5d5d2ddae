"""Passes that are patterns: what each rewrites is a method of one op, and one driver takes the ops to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.mlir import ir, walk
from pipeline.passmanager.base import Pass

#: Rewrites an op where it matches, and tells whether it did.
MatchAndRewrite = Callable[[Any, ir.Operation], bool]


@dataclass(frozen=True)
class RewritePattern:
    """A method of a pass that matches and rewrites one op; its docstring says before -> after.

    Attributes:
        roots: the names of the ops that it takes.
        users_first: whether ops come to it in reverse program order, users before producers, inner before outer.
    """

    match_and_rewrite: MatchAndRewrite
    roots: tuple[str, ...]
    users_first: bool

    def sweep(self, pass_: Pass, root: ir.Operation) -> bool:
        """Takes each op in `root` to the pattern, once; returns whether one matched.

        The roots are those that are there when the sweep begins; what rewrites make waits for the next sweep. A pattern
        may erase the op that it is given and roots that came before, but none that is still to come: the bindings do
        not say of an op that it is gone.
        """
        found = walk(root, *self.roots)
        ordered = reversed(found) if self.users_first else found
        matched = [self.match_and_rewrite(pass_, op) for op in ordered]
        return any(matched)


def pattern(*roots: str, users_first: bool = False) -> Callable[[MatchAndRewrite], RewritePattern]:
    """Makes a method a pattern of its pass for ops that are called one of `roots`."""
    return lambda method: RewritePattern(method, roots, users_first)


@dataclass(frozen=True)
class PatternPass(Pass):
    """A pass that is its patterns, applied one after the other in the order in which they are written.

    Class attributes:
        sweeps: how often at most; the last is the one in which nothing matches.
    """

    sweeps: ClassVar[int] = 1

    def run(self, op: ir.Operation) -> None:
        """Applies the patterns to what is inside `op`."""
        for _ in range(self.sweeps):
            matched = [pattern.sweep(self, op) for pattern in self.patterns()]
            if not any(matched):
                return

    @classmethod
    def patterns(cls) -> list[RewritePattern]:
        """The patterns, in the order in which they are applied."""
        return [member for member in vars(cls).values() if isinstance(member, RewritePattern)]
