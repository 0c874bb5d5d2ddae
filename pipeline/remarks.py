"""Remarks: structured records of what a pass decided and why.

A pass calls `passed`, `missed` or `analysis`; whoever runs passes collects with `with collect() as remarks:`. Outside
of a collection remarks are dropped.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from pipeline import logs
from pipeline.fusion_rules.reasons import REASONS, Reason
from pipeline.runtime.interface.code import place_of

Kind = Literal["passed", "missed", "analysis"]


@dataclass(frozen=True)
class Subject:
    """An op that a remark is about.

    Attributes:
        op: its name, e.g. `linalg.generic`.
        label: what it computes, as in kernels' names, e.g. `fused_add_relu`.
        source: the PyTorch source line, `file.py:12`, where known.
        names: the words of the label, all of them, and the PyTorch ops that it comes from.
        module: the path of the module of the model, e.g. `encoder.layer.3`, where known.
        nodes: the nodes of the captured graph that it comes from; subjects that differ in these alone are equal.
    """

    op: str
    label: str
    source: str | None = None
    names: tuple[str, ...] = ()
    module: str | None = None
    nodes: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        place = place_of(self.source, self.module)
        return f"{self.label} at {place}" if place else self.label


@dataclass(frozen=True)
class Remark:
    """One decision.

    Attributes:
        pass_name: the pass that decided.
        kind: `passed` (done), `missed` (refused), `analysis` (a fact worth knowing).
        op: the name of the op that it is about, e.g. `linalg.matmul`.
        reason: the decision and its reason, one sentence.
        source: the PyTorch source line, `file.py:12`, where known.
        key: the reason's key in `pipeline.fusion_rules.reasons`, where it is one of those.
        edge: for a decision on the edge between two ops: the producer and the consumer.
        module: the path of the module of the model, e.g. `encoder.layer.3`, where known.
        kernel: the kernel that the op was in; remarks that differ in this alone are equal.
    """

    pass_name: str
    kind: Kind
    op: str
    reason: str
    source: str | None = None
    key: str | None = None
    edge: tuple[Subject, Subject] | None = None
    module: str | None = None
    kernel: str | None = field(default=None, compare=False)

    @property
    def change(self) -> str | None:
        """What would change the decision, where the reason is a listed one."""
        return REASONS[self.key].change if self.key else None

    def __str__(self) -> str:
        place = place_of(self.source, self.module)
        where = f"{place}: " if place else ""
        about = ", ".join(filter(None, (self.pass_name, self.op, self.key)))
        edge = f"; {self.edge[0]} -> {self.edge[1]}" if self.edge else ""
        return f"{where}{self.kind}: {self.reason} [{about}{edge}]"


_told = logs.log("remarks")

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


@contextlib.contextmanager
def dropped() -> Iterator[None]:
    """Drops the remarks made inside the `with` block."""
    token = _log.set(None)
    try:
        yield
    finally:
        _log.reset(token)


def passed(pass_name: str, op: Any, reason: str, producer: Any = None) -> None:
    """Records that the pass did something to `op` (an `ir.Operation` or `ir.OpView`), with `producer` if it fused."""
    _record(pass_name, "passed", op, reason, None, producer)


def missed(pass_name: str, op: Any, reason: str, why: Reason | None = None, producer: Any = None) -> None:
    """Records that the pass left `op` alone, and why.

    With `why`, a listed reason, and `producer` it says that the edge from `producer` to `op` was not fused.
    """
    _record(pass_name, "missed", op, reason, why, producer)


def analysis(pass_name: str, op: Any, reason: str) -> None:
    """Records a fact about `op`."""
    _record(pass_name, "analysis", op, reason, None, None)


def note(pass_name: str, kind: Kind, op: str, reason: str, source: str | None = None) -> None:
    """Records a decision about no op of a module's; `op` is the name of the kind of op that it is about."""
    _add(Remark(pass_name, kind, op, reason, source))


def repeat(remark: Remark) -> None:
    """Records a remark that was made before."""
    _add(remark)


def _record(pass_name: str, kind: Kind, op: Any, reason: str, why: Reason | None, producer: Any) -> None:
    if _log.get() is None:
        return
    operation = op.operation
    edge = None if producer is None else (_subject(producer.operation), _subject(operation))
    key = why.key if why else None
    source, module = place(operation.location)
    _add(Remark(pass_name, kind, operation.name, reason, source, key, edge, module, _kernel(operation)))


def _add(remark: Remark) -> None:
    """Collects a remark, and says it in the log of its pass."""
    log = _log.get()
    if log is None:
        return
    log.append(remark)
    level = logging.INFO if remark.kind == "missed" else logging.DEBUG
    if _told.isEnabledFor(level):
        _told.getChild(remark.pass_name).log(level, "%s", remark)


def _kernel(op: Any) -> str | None:
    """The name of the kernel that an op is in, or is; None where it is in none."""
    while op is not None and op.name not in ("func.func", "llvm.func"):
        op = op.parent
    name = None if op is None else str(op.attributes["sym_name"]).strip('"')
    return None if name in ("main", "prepare") else name


def _subject(op: Any) -> Subject:
    from pipeline.analysis.op_naming import label_of, op_label
    from pipeline.ir.locations import node_names, origins

    called = [origin.op for origin in origins([op]) if origin.op is not None]
    source, module = place(op.location)
    words = op_label(op)
    return Subject(op.name, label_of(words), source, (*words, *called), module, tuple(node_names(op.location)))


def place(location: Any) -> tuple[str | None, str | None]:
    """Source line and module of a location, as far as it has them."""
    from pipeline.ir.locations import module_path

    return source_line(location), module_path(location)


def source_line(location: Any) -> str | None:
    """The `file:line` of an MLIR location, see `pipeline.mlir.position`; None where it names no file."""
    from pipeline.mlir import position

    file, line, _ = position(location)
    return f"{file}:{line}" if line else None
