"""compute-channels-last: convolutions of groups, lines and volumes compute their channels innermost where that pays."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.ir.element_types import element_type
from pipeline.ir.indexing_maps import coefficient
from pipeline.ir.linalg_op import LinalgOp, any_structured
from pipeline.ir.rewriting import before, build_generic, copy_attributes, copy_body, iterator_types, read_by
from pipeline.mlir import defining_op, ir, linalg, tensor, walk
from pipeline.passes.layout.layout_cost import FLOPS, conversion_time, filled, is_made, one_vector
from pipeline.passes.layout.tensor_shapes import transpose
from pipeline.passmanager.base import Pass

#: Convolutions with channels first, and which dim of their result has the channels.
_CHANNELS = {"linalg.conv_1d_ncw_fcw": 1, "linalg.conv_2d_ngchw_gfchw": 2, "linalg.conv_3d_ncdhw_fcdhw": 1}

#: How much of the speed with channels first is left where neighbours of a row read data that are steps apart.
_STRIDED = 0.7


@dataclass(frozen=True)
class ComputeChannelsLast(Pass):
    """Let convolutions of groups, lines and volumes compute a result with channels innermost.

    conv(x: [N, C, D, H, W], w)  ->  transpose(conv(x, transpose(w)): [N, D, H, W, F])

    The vectors of their tiles run along the channels then, not along rows, which may be short: the planes of a late
    layer, the frames of a video. Data are read as they are; the weight, which has to be one of the model, is transposed
    by @prepare; and what reads the result element by element reads it in its new order. It pays where lanes that are
    filled save more than a transpose takes. What propagate-layouts does for images, whose layers hand each other
    channels last, is left to it.
    """

    name: ClassVar[str] = "compute-channels-last"
    anchor: ClassVar[str] = "func.func"

    always: bool = field(default=False, metadata={"help": "whatever it costs"})

    def run(self, op: ir.Operation) -> None:
        """Rewrites the convolutions of one function."""
        weights = ConstExprs(op)
        for conv in [found for name in _CHANNELS for found in walk(op, name)]:
            view = any_structured(conv)
            if view is not None and conv.operands[1] in weights and conv.results[0] not in weights:
                self._rewrite(conv, view)

    def _rewrite(self, conv: ir.Operation, view: LinalgOp) -> None:
        reason = _why_not(view)
        if reason is None and not self.always:
            saved, cost = _saved(view, _CHANNELS[conv.name]), conversion_time(conv.results[0])
            times = f"it saves about {round(saved / 1000)} us, and a transpose takes {round(cost / 1000)}"
            reason = times if saved <= cost else None
        if reason is not None:
            self.missed(conv, f"channels stay first: {reason}")
            return
        self.passed(conv, "computes channels last")
        with before(conv):
            new, order = _channels_last(view, _CHANNELS[conv.name])
        copy_attributes(conv, new, "pipeline.")
        _serve(conv.results[0], new.results[0], order)
        conv.erase()


def _why_not(view: LinalgOp) -> str | None:
    if None in view.sizes or not all(ir.RankedTensorType(one.type).has_static_shape for one in view.operands):
        return "sizes are not known"
    if element_type(view.operands[0]) != ir.F32Type.get() or element_type(view.operands[1]) != ir.F32Type.get():
        return "it is not in f32"
    return None if is_made(view.operands[2]) else "it adds to what there is"


def _saved(view: LinalgOp, channel: int) -> float:
    """The nanoseconds that it takes less with channels last."""
    shape = ir.RankedTensorType(view.operands[2].type).shape
    first, last = FLOPS
    last *= filled(shape[channel]) * one_vector(shape[channel])
    first *= filled(shape[-1])
    row = view.loops_read(2)[-1]
    if coefficient(view.maps[0].results[-1], row) != 1:
        first *= _STRIDED
    operations = 2 * prod(size or 0 for size in view.sizes)
    return operations / first - operations / last


def _channels_last(view: LinalgOp, channel: int) -> tuple[ir.Operation, list[int]]:
    """The convolution, and the dims of the result in their new order.

    Its loops go along the result as it lies, and then along the sum, first of all channels of the data.
    """
    data, weight, output = view.operands
    rank = ir.RankedTensorType(output.type).rank
    order = [*(dim for dim in range(rank) if dim != channel), channel]
    places, dims = view.loops_read(2), view.loops_read(1)
    loops = [*(places[dim] for dim in order), *view.summed]
    numbers = [ir.AffineDimExpr.get(loops.index(loop)) for loop in range(len(loops))]
    taps = [*(dim for dim, loop in enumerate(dims) if loop != places[channel]), dims.index(places[channel])]
    read, weights, written = (list(indexing.results) for indexing in view.maps)
    maps = [read, [weights[dim] for dim in taps], [written[dim] for dim in order]]
    renumbered = ir.AffineMap.get(len(loops), 0, numbers)
    fill = defining_op(output)
    assert fill is not None
    into = _made(fill, order)
    new = build_generic(
        [data, transpose(weight, taps)],
        [into],
        [ir.AffineMap.get(len(loops), 0, [place.compose(renumbered) for place in results]) for results in maps],
        iterator_types([False] * rank + [True] * len(view.summed)),
        lambda elements: copy_body(view, elements),
    )
    return new, order


def _made(maker: ir.Operation, order: list[int]) -> ir.Value:
    """A tensor.empty or a linalg.fill of one, with its dims in another order."""
    kind = ir.RankedTensorType(maker.results[0].type)
    empty = tensor.EmptyOp([kind.shape[dim] for dim in order], kind.element_type).result
    return linalg.fill(maker.operands[0], outs=[empty]) if maker.name == "linalg.fill" else empty


def _serve(old: ir.Value, new: ir.Value, order: list[int]) -> None:
    """Has generics read the new result element by element, and others its transpose."""
    first = None
    for use in list(old.uses):
        user = use.owner.operation
        if user.name == "linalg.generic" and use.operand_number < len(user.operands) - len(user.results):
            indexing = ir.AffineMapAttr(user.attributes["indexing_maps"][use.operand_number]).value
            places = [indexing.results[dim] for dim in order]
            read_by(user, use.operand_number, new, ir.AffineMap.get(indexing.n_dims, 0, places))
            continue
        if first is None:
            producer = defining_op(new)
            assert producer is not None
            with producer.location, ir.InsertionPoint.after(producer):
                first = transpose(new, [order.index(dim) for dim in range(len(order))])
        user.operands[use.operand_number] = first
