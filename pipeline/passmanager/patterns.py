"""Passes that are patterns: what each rewrites is a method of one op, and one driver takes the ops to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline.mlir import ir, may_be_in_bodies, walk_where
from pipeline.passmanager.base import Pass

#: Rewrites an op where it matches, and tells whether it did. Takes the pass, the op, and what the pass has analyzed.
MatchAndRewrite = Callable[..., bool]

#: Tells of an op whether it is looked for.
Predicate = Callable[[ir.Operation], bool]


@dataclass(frozen=True)
class RewritePattern:
    """A method of a pass that matches and rewrites one op; its docstring says before -> after.

    Attributes:
        is_root: whether it takes an op.
        users_first: whether ops come to it in reverse program order, users before producers, inner before outer.
        outermost: whether no ops come to it that are inside of one that does.
        in_bodies: whether what it takes may be inside of linalg ops.
    """

    match_and_rewrite: MatchAndRewrite
    is_root: Predicate
    users_first: bool
    outermost: bool
    in_bodies: bool

    def sweep(self, pass_: Pass, root: ir.Operation, *analyzed: Any) -> bool:
        """Takes each op in `root` to the pattern, once; returns whether one matched.

        The roots are those that are there when the sweep begins; what rewrites make waits for the next sweep. A pattern
        may erase the op that it is given and roots that came before, but none that is still to come: the bindings do
        not say of an op that it is gone.
        """
        found = walk_where(root, self.is_root, self.outermost, self.in_bodies)
        ordered = reversed(found) if self.users_first else found
        matched = [self.match_and_rewrite(pass_, op, *analyzed) for op in ordered]
        return any(matched)


def pattern(
    *roots: str | Predicate, users_first: bool = False, outermost: bool = False
) -> Callable[[MatchAndRewrite], RewritePattern]:
    """Makes a method a pattern of its pass for ops that are one of `roots`.

    A root is the name of an op, that of a dialect with a star (`linalg.*`), or a function that tells of an op whether
    it is one. With `outermost`, what is inside of a root is left out.
    """
    names = [root for root in roots if isinstance(root, str)]
    in_bodies = len(names) < len(roots) or may_be_in_bodies(*names)
    return lambda method: RewritePattern(method, _any_of(roots), users_first, outermost, in_bodies)


def _any_of(roots: tuple[str | Predicate, ...]) -> Predicate:
    names = frozenset(root for root in roots if isinstance(root, str))
    dialects = tuple(name.removesuffix("*") for name in names if name.endswith(".*"))
    predicates = [root for root in roots if not isinstance(root, str)]

    def has_name(op: ir.Operation) -> bool:
        name = op.name
        return name in names or name.startswith(dialects)

    return has_name if not predicates else lambda op: has_name(op) or any(predicate(op) for predicate in predicates)


@dataclass(frozen=True)
class PatternPass(Pass):
    """A pass that is its patterns, applied one after the other in the order in which they are written.

    Class attributes:
        sweeps: how often at most; the last is the one in which nothing matches.
    """

    sweeps: ClassVar[int] = 1

    def run(self, op: ir.Operation) -> None:
        """Applies the patterns to what is inside `op`."""
        if not self.concerns(op):
            return
        analysis = self.analyze(op)
        analyzed = () if analysis is None else (analysis,)
        for _ in range(self.sweeps):
            matched = [pattern.sweep(self, op, *analyzed) for pattern in self.patterns()]
            if not any(matched):
                return

    def concerns(self, op: ir.Operation) -> bool:
        """Whether a pattern may match anything inside `op`: for passes that most programs have nothing for."""
        return True

    def analyze(self, op: ir.Operation) -> Any:
        """What the patterns have to know of all of `op`, worked out once for a run: they take it after their own op.

        None if there is nothing. A pattern that changes what the analysis says of the program keeps it true.
        """
        return None

    @classmethod
    def patterns(cls) -> list[RewritePattern]:
        """The patterns, in the order in which they are applied."""
        return [member for member in vars(cls).values() if isinstance(member, RewritePattern)]
