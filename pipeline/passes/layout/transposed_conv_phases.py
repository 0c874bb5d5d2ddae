"""transposed-conv-phases: transposed convolutions multiply no zeros that lie between the elements of their data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.analysis.transposed_conv import TransposedConvolution, read_transposed
from pipeline.ir.linalg_op import any_structured
from pipeline.mlir import ir, walk
from pipeline.passes.layout.conv_by_phases import PhaseLoops
from pipeline.passmanager.base import Pass

#: How many times as large a weight may become: one of 3 x 3 x 3 taps is filled up to 4 x 4 x 4 for steps of two.
_MOST_GROWTH = 3


@dataclass(frozen=True)
class TransposedConvPhases(Pass):
    """Have transposed convolutions in steps compute each phase of their result from the elements and taps it needs.

    conv(insert(x, zeros, strides [2, 2]), w)  ->  collapse_shape(conv(pad(x), expand_shape(w)))

    With strides s, all results at s * block + phase multiply the same taps, every s-th one. So the phases become loops
    of the convolution, and dims of its result, [N, H / s, s, W / s, s, F]: with channels innermost that is how results
    lie anyway. The weight keeps its place, too. It is only filled up to whole steps where its taps do not come out
    even; an attribute says so, and `tile-and-vectorize` leaves those zeros out. Results with channels first get them
    innermost, and a transpose behind them; those of few channels are computed along rows, phase by phase, and then
    put side by side.
    """

    name: ClassVar[str] = "transposed-conv-phases"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Rewrites the transposed convolutions of one function whose weights are known."""
        inserts = walk(op, "tensor.insert_slice")
        readers = dict.fromkeys([reader for insert in inserts for reader in _readers(insert.results[0])])
        weights = ConstExprs(op) if readers else None
        for consumer in readers:
            view = any_structured(consumer)
            found = read_transposed(view) if view is not None else None
            if isinstance(found, TransposedConvolution) and weights is not None:
                found = _obstacle(found, weights) or found
            if isinstance(found, str):
                self.missed(consumer, f"the zeros between its data are multiplied: {found}")
            elif found is not None:
                strides = " x ".join(str(axis.stride) for axis in found.axes)
                self.passed(consumer, f"computes {strides} phases of its result, without zeros between its data")
                PhaseLoops(found).run()


def _readers(value: ir.Value) -> list[ir.Operation]:
    """The linalg ops that read a tensor, as it is or reshaped."""
    users = [use.owner.operation for use in value.uses]
    behind = [reader for user in users if user.name == "tensor.expand_shape" for reader in _readers(user.results[0])]
    return [user for user in users if user.name.startswith("linalg.")] + behind


def _obstacle(found: TransposedConvolution, weights: ConstExprs) -> str | None:
    """Why a transposed convolution stays as it is; None if nothing stands against its phases."""
    if found.view.op.operands[1] not in weights:
        return "its weight is computed"
    if found.growth > _MOST_GROWTH:
        return f"its weight would be {found.growth:.1f} times as large"
    if found.channel is None:
        return "its result has no channels of its own"
    if found.is_narrow and not found.can_have_rows:
        return "its few channels come from groups of data with channels last"
    if not found.is_narrow and not found.is_last and found.weight_channel is None:
        return "its weight lies in blocks, and its result does not"
    return None
