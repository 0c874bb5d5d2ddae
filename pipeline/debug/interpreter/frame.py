"""A call of a function: the values that it has computed, and how its regions run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipeline.debug.interpreter.handlers import HANDLERS, Handler
from pipeline.debug.interpreter.number_types import Precision
from pipeline.errors import PipelineError
from pipeline.mlir import ir
from pipeline.remarks import source_line


class UnknownOp(PipelineError):
    """The interpreter does not know an op."""


class FailedCheck(PipelineError):
    """What the program asserts does not hold, or it reads what is not there."""


@dataclass(frozen=True)
class _KnownOp:
    """An op with what is looked up about it once."""

    handler: Handler
    op: ir.Operation
    operands: tuple[ir.Value, ...]
    results: tuple[ir.Value, ...]


@dataclass
class Interpretation:
    """What all frames of an interpretation share.

    Attributes:
        functions: those of the module, by name.
        precision: in which dtypes floats are held.
        places: in buffers of bytes: by buffer, offset and type the buffer and what lies there.
    """

    functions: Mapping[str, ir.Operation]
    precision: Precision
    places: dict[tuple[int, int, str], tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    _resources: dict[str, bytes] | None = None
    _blocks: dict[tuple[ir.Operation, int], tuple[list[_KnownOp], ir.Operation, tuple[ir.Value, ...]]] = field(
        default_factory=dict
    )

    def call(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        """What a function gives for these arguments."""
        return self.traced(name, arguments)[0]

    def traced(self, name: str, arguments: Sequence[Any]) -> tuple[list[Any], dict[ir.Value, Any]]:
        """The same, and all values that the function computed on the way."""
        called = self.functions.get(name)
        if called is None or not len(called.regions[0].blocks):
            raise UnknownOp(f"the interpreter cannot call @{name}: the module has no body of it")
        frame = Frame(self)
        _, results = frame.run(called, 0, arguments)
        return results, frame.values

    def resources(self, op: ir.Operation) -> dict[str, bytes]:
        """The constants that a module keeps beside its ops, by name; the bindings read them in its text alone."""
        if self._resources is None:
            root = op
            while root.parent is not None:
                root = root.parent.operation
            found = re.findall(r'([\w.]+): "0x([0-9A-Fa-f]*)"', root.get_asm().rpartition("{-#")[2])
            self._resources = {name: bytes.fromhex(digits)[4:] for name, digits in found}  # behind the alignment
        return self._resources

    def steps(self, op: ir.Operation, region: int) -> tuple[list[_KnownOp], ir.Operation, tuple[ir.Value, ...]]:
        """The ops of a region, its terminator and what that hands out."""
        key = (op, region)
        known = self._blocks.get(key)
        if known is None:
            blocks = op.regions[region].blocks
            if len(blocks) != 1:
                raise UnknownOp(f"the interpreter does not know a region of {len(blocks)} blocks, in {op.name}")
            *ops, end = (inner.operation for inner in blocks[0].operations)
            steps = [_KnownOp(_handler(inner), inner, tuple(inner.operands), tuple(inner.results)) for inner in ops]
            known = self._blocks[key] = steps, end, tuple(end.operands)
        return known


def _handler(op: ir.Operation) -> Handler:
    found = HANDLERS.get(op.name) or HANDLERS.get(f"{op.name.partition('.')[0]}.*")
    if found is None:
        line = source_line(op.location)
        raise UnknownOp(f"the interpreter does not know the op '{op.name}'{f' at {line}' if line else ''}")
    return found


@dataclass
class Frame:
    """See the module's docstring.

    Attributes:
        values: of the ops and block arguments that have been reached; arrays, of no dims for numbers.
        indices: in the body of a linalg op, for each of its loops the iterations that run at once.
    """

    interpretation: Interpretation
    values: dict[ir.Value, Any] = field(default_factory=dict)
    indices: list[np.ndarray] = field(default_factory=list)

    @property
    def precision(self) -> Precision:
        """In which dtypes floats are held."""
        return self.interpretation.precision

    def run(
        self, op: ir.Operation, region: int, arguments: Sequence[Any], skipped: frozenset[ir.Operation] = frozenset()
    ) -> tuple[ir.Operation, list[Any]]:
        """Runs a region of one block: its terminator, and the values that this hands out; None for what is `skipped`.

        Args:
            skipped: ops of the region that are left out.
        """
        steps, end, handed_out = self.interpretation.steps(op, region)
        self.values.update(zip(op.regions[region].blocks[0].arguments, arguments, strict=True))
        for step in steps:
            if skipped and step.op in skipped:
                continue
            results = step.handler(self, step.op, [self.values[value] for value in step.operands])
            self.values.update(zip(step.results, results, strict=True))
        return end, [self.values.get(value) for value in handed_out]
