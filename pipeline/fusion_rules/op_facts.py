"""What a predicate of a user's may ask about an op: its words, its kind, the PyTorch op and line that it comes from."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from pipeline.analysis.op_naming import group_kind, op_label
from pipeline.fusion_rules.op_words import MOVES
from pipeline.ir.locations import torch_op
from pipeline.mlir import ir, position


@dataclass(frozen=True)
class OpFacts:
    """An op as a predicate sees it.

    Attributes:
        op: the operation itself, for what is not here.
    """

    op: ir.Operation

    @property
    def name(self) -> str:
        """Its MLIR name, e.g. `linalg.generic`."""
        return self.op.name

    @cached_property
    def words(self) -> tuple[str, ...]:
        """What it computes, in order, as in kernels' names: `("add", "relu")`."""
        return tuple(op_label(self.op))

    @cached_property
    def kind(self) -> str:
        """The kind of group that it would be the anchor of, e.g. `matmul`."""
        return group_kind([self.op])

    @cached_property
    def torch_op(self) -> str | None:
        """The op of the model that it comes from, e.g. `conv2d`, `softmax`; None where nothing says so."""
        return torch_op(self.op.location)

    @cached_property
    def source(self) -> str | None:
        """The PyTorch source line that it comes from, `file.py:12`."""
        file, line, _ = position(self.op.location)
        return f"{file}:{line}" if line else None

    @cached_property
    def dtype(self) -> str:
        """The element type of its first result, as MLIR spells it: `f32`, `i64`; empty where it has no result."""
        if not self.op.results:
            return ""
        kind = self.op.results[0].type
        return str(ir.ShapedType(kind).element_type if isinstance(kind, ir.ShapedType) else kind)

    def is_called(self, names: Collection[str]) -> bool:
        """Whether one of `names` is that of the PyTorch op, or all that it computes is among them.

        What only moves elements for a PyTorch op, such as the transpose of a weight, does not count as that op.
        """
        moves = all(word in MOVES for word in self.words)
        return (self.torch_op in names and not moves) or all(word in names for word in self.words)
