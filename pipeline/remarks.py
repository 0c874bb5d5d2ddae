"""Remarks: structured records of what a pass decided and why.

A pass calls `passed`, `missed` or `analysis`; whoever runs passes collects with `with collect() as remarks:`. Outside
of a collection remarks are dropped.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["passed", "missed", "analysis"]


@dataclass(frozen=True)
class Remark:
    """One decision.

    Attributes:
        pass_name: the pass that decided.
        kind: `passed` (done), `missed` (refused), `analysis` (a fact worth knowing).
        op: the name of the op that it is about, e.g. `linalg.matmul`.
        reason: the decision and its reason, one sentence.
        source: the PyTorch source line, `file.py:12`, where known.
    """

    pass_name: str
    kind: Kind
    op: str
    reason: str
    source: str | None = None

    def __str__(self) -> str:
        where = f"{self.source}: " if self.source else ""
        return f"{where}{self.kind}: {self.reason} [{self.pass_name}, {self.op}]"


_log: contextvars.ContextVar[list[Remark] | None] = contextvars.ContextVar("pipeline_remarks", default=None)


@contextlib.contextmanager
def collect() -> Iterator[list[Remark]]:
    """Collects the remarks made inside the `with` block (in this thread) into the list that it yields.

    A collection around this one gets them too, when the block ends.
    """
    remarks: list[Remark] = []
    outer = _log.get()
    token = _log.set(remarks)
    try:
        yield remarks
    finally:
        _log.reset(token)
        if outer is not None:
            outer += remarks


def passed(pass_name: str, op: Any, reason: str) -> None:
    """Records that the pass did something to `op` (an `ir.Operation` or `ir.OpView`)."""
    _record(pass_name, "passed", op, reason)


def missed(pass_name: str, op: Any, reason: str) -> None:
    """Records that the pass left `op` alone, and why."""
    _record(pass_name, "missed", op, reason)


def analysis(pass_name: str, op: Any, reason: str) -> None:
    """Records a fact about `op`."""
    _record(pass_name, "analysis", op, reason)


def note(pass_name: str, kind: Kind, op: str, reason: str) -> None:
    """Records a decision about no op in particular; `op` is the name of the kind of op that it is about."""
    log = _log.get()
    if log is not None:
        log.append(Remark(pass_name, kind, op, reason))


def repeat(remark: Remark) -> None:
    """Records a remark that was made before."""
    log = _log.get()
    if log is not None:
        log.append(remark)


def _record(pass_name: str, kind: Kind, op: Any, reason: str) -> None:
    log = _log.get()
    if log is None:
        return
    operation = op.operation
    log.append(Remark(pass_name, kind, operation.name, reason, source_line(operation.location)))


def source_line(location: Any) -> str | None:
    """The `file:line` of an MLIR location, see `pipeline.mlir.position`; None where it names no file."""
    from pipeline.mlir import position

    file, line, _ = position(location)
    return f"{file}:{line}" if line else None
