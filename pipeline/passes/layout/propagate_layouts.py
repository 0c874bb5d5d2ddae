"""propagate-layouts: images get their channels innermost where the convolutions between them gain by that."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.analysis.const_expr import ConstExprs
from pipeline.ir.linalg_op import LinalgOp, any_structured
from pipeline.ir.rewriting import before, build_generic, copy_attributes, copy_body, is_unused, iterator_types, read_by
from pipeline.mlir import defining_op, ir, linalg, tensor
from pipeline.passes.layout.image_windows import ImageWindow, image_window
from pipeline.passes.layout.layout_cost import (
    BLOCK,
    CONVOLUTIONS,
    FIRST,
    LAST,
    WINDOWS,
    Component,
    components,
    is_made,
    pays_for_data,
    reads_image,
    tied,
)
from pipeline.passes.layout.tensor_shapes import transpose
from pipeline.passes.layout.window_steps import window_steps
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class PropagateLayouts(Pass):
    """Hold images with channels innermost: [N, C, H, W] becomes [N, H, W, C] between convolutions and pools.

    conv_nchw(x, w)  ->  transpose(conv_nhwc(transpose(x), transpose(w)))

    The tensors that pads, zeros between elements, pools, depthwise convolutions and elementwise ops connect have one
    layout. It changes where the convolutions and pools among them save more time than it takes to convert what comes in
    from and goes out to other ops (by an estimate, in `passes/layout/layout_cost.py`). A convolution may read data
    with channels first and write its result with channels last, as the first one of a network does; a reduction
    reads either. Weights are transposed, too, which is @prepare's work. With `for-convolutions` no estimate is asked:
    tensor cores read the channels of an image 16 bytes at a time where they lie side by side, and one by one where not.
    """

    name: ClassVar[str] = "propagate-layouts"
    anchor: ClassVar[str] = "func.func"

    always: bool = field(default=False, metadata={"help": "convert whatever it costs"})
    for_convolutions: bool = field(default=False, metadata={"help": "convert what convolutions compute, and no more"})

    def run(self, op: ir.Operation) -> None:
        """Converts what pays in one function."""
        weights = ConstExprs(op)
        chosen = [component for component in components(op, weights) if self._pays(component)]
        if chosen:
            _Rewriter(weights, {value for component in chosen for value in component.values}).run(op)

    def _pays(self, component: Component) -> bool:
        if self.for_convolutions:
            found = any(_has_window(op) for op in map(defining_op, component.values) if op is not None)
            said = (
                "channels last: a window moves over them" if found else "channels stay first: no window sums over them"
            )
            (self.passed if found else self.missed)(component.first, said)
            return found
        times = (component.gain + component.spared, component.cost)
        gain, cost = (round(time / 1000) for time in times)
        reason = f"it saves about {gain} us, and conversions take {cost}"
        if times[0] < 0:
            reason = f"its kernels would take {-gain} us more, few lanes of vectors being channels"
        if self.always or component.pays():
            self.passed(component.first, f"channels last: {reason}")
            return True
        self.missed(component.first, f"channels stay first: {reason}")
        return False


def _has_window(op: ir.Operation) -> bool:
    """Whether an op is a convolution, and no product of matrices as it is, which 1 x 1 ones are with steps of one."""
    if op.name not in CONVOLUTIONS:
        return False
    window = ir.RankedTensorType(op.operands[1].type).shape[2:]
    return any(size != 1 for size in (*window, *window_steps(op, "strides")))


class _Rewriter:
    """Builds the ops of some tensors anew, with channels last.

    Attributes of a tensor's layouts: `_last` has, for tensors with channels first, the same with channels last.
    """

    def __init__(self, weights: ConstExprs, chosen: set[ir.Value]):
        self._weights = weights
        self._chosen = chosen
        self._last: dict[ir.Value, ir.Value] = {}
        self._old: list[ir.Operation] = []

    def run(self, function: ir.Operation) -> None:
        """Rewrites the ops that compute chosen tensors, then those that read them."""
        self._visit(function)
        for value in [result for op in self._old for result in op.results]:
            self._serve(value)
        for op in reversed(self._old):
            assert all(map(is_unused, op.results)), f"{op.name} is still used"
            op.erase()

    def _visit(self, parent: ir.Operation) -> None:
        for region in parent.regions:
            for block in region.blocks:
                for op in [child.operation for child in block.operations]:
                    if op.results and op.results[0] in self._chosen and tied(op, self._weights):
                        self._rewrite(op)
                    elif not op.name.startswith(("linalg.", "tensor.")):
                        self._visit(op)

    def _rewrite(self, op: ir.Operation) -> None:
        with before(op):
            window = image_window(op)
            if window is not None:
                new = self._window_of_generic(window)
            elif op.name in CONVOLUTIONS:
                new = self._convolution(op)
            elif op.name in WINDOWS:
                new = self._window(op)
            elif op.name == "tensor.pad":
                new = self._pad(op)
            elif op.name == "tensor.insert_slice":
                new = self._insert(op)
            elif op.name == "tensor.extract_slice":
                new = self._extract(op)
            elif op.name == "tensor.concat":
                new = self._concat(op)
            else:
                new = self._pointwise(op)
        copy_attributes(op, new, "pipeline.")
        self._last.update(zip(op.results, new.results, strict=True))
        self._old.append(op)

    def _convolution(self, op: ir.Operation) -> ir.Operation:
        data, weight, output = op.operands
        is_last = data in self._chosen or pays_for_data(op)
        view = any_structured(op)
        assert view is not None
        n, h, w, f, *sums = (ir.AffineDimExpr.get(loop) for loop in range(7))
        r, s, c = sums if is_last else [*sums[1:], sums[0]]  # the innermost loop is along rows of the data
        strides, dilations = list(window_steps(op, "strides")), list(window_steps(op, "dilations"))
        first = [n, c, h * strides[0] + r * dilations[0], w * strides[1] + s * dilations[1]]
        taps, places = _pack(weight, [f, c, r, s], [2, 3, 1] if is_last else [1, 2, 3])
        results = [_permuted(first, LAST) if is_last else first, places, [n, h, w, f]]
        return build_generic(
            [self._in_last(data) if is_last else data, taps],
            [self._in_last(output)],
            [ir.AffineMap.get(7, 0, indices) for indices in results],
            iterator_types([False] * 4 + [True] * 3),
            lambda elements: copy_body(view, elements),
        )

    def _window_of_generic(self, window: ImageWindow) -> ir.Operation:
        """Loops along the image, then along windows, then along the channels of a sum."""
        op, view = window.view.op, window.view
        data, weight, output = op.operands
        sums = [*window.taps, *([] if window.channels is None else [window.channels])]
        order = [*_permuted(window.image, LAST), *sums]
        loops = ir.AffineMap.get(len(order), 0, [ir.AffineDimExpr.get(order.index(loop)) for loop in range(len(order))])
        dims = view.loops_read(1)
        inner = [dims.index(loop) for loop in (*sums, window.image[1])]
        return build_generic(
            [self._in_last(data), transpose(weight, inner)],
            [self._in_last(output)],
            [
                ir.AffineMap.get(len(order), 0, [place.compose(loops) for place in places])
                for places in (
                    _permuted(view.maps[0].results, LAST),
                    _permuted(view.maps[1].results, inner),
                    _permuted(view.maps[2].results, LAST),
                )
            ],
            iterator_types([False] * 4 + [True] * len(sums)),
            lambda elements: copy_body(view, elements),
        )

    def _window(self, op: ir.Operation) -> ir.Operation:
        data, taps, output = op.operands
        if ir.RankedTensorType(taps.type).rank == 3:
            taps = transpose(taps, (1, 2, 0))
        return _named(WINDOWS[op.name], op, [self._in_last(data), taps, self._in_last(output)])

    def _pad(self, op: ir.Operation) -> ir.Operation:
        attributes = {name: op.attributes[name] for name in op.attributes}
        for name in ("static_low", "static_high"):
            sizes = list(ir.DenseI64ArrayAttr(attributes[name]))
            attributes[name] = ir.DenseI64ArrayAttr.get(_permuted(sizes, LAST))
        source, number = self._in_last(op.operands[0]), op.regions[0].blocks[0].operations[0].operation.operands[0]
        kind = _permuted_type(op.results[0].type, LAST)
        pad = ir.Operation.create("tensor.pad", [kind], [source], attributes, regions=1)
        block = ir.Block.create_at_start(pad.regions[0], [ir.IndexType.get()] * 4)
        with ir.InsertionPoint(block):
            tensor.YieldOp(number)
        return pad

    def _insert(self, op: ir.Operation) -> ir.Operation:
        """insert_slice(x, y), to places that are known; sizes may not be."""
        static = list(ir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
        given = iter(list(op.operands)[2:])
        sizes = [next(given) if size == ir.ShapedType.get_dynamic_size() else None for size in static]
        operands = [self._in_last(op.operands[0]), self._in_last(op.operands[1])]
        operands += [size for size in _permuted(sizes, LAST) if size is not None]
        return ir.Operation.create("tensor.insert_slice", [operands[1].type], operands, _place_in_last(op))

    def _extract(self, op: ir.Operation) -> ir.Operation:
        """extract_slice(x), of a place that is known."""
        kind = _permuted_type(op.results[0].type, LAST)
        return ir.Operation.create("tensor.extract_slice", [kind], [self._in_last(op.operands[0])], _place_in_last(op))

    def _concat(self, op: ir.Operation) -> ir.Operation:
        dim = LAST.index(ir.IntegerAttr(op.attributes["dim"]).value)
        parts = [self._in_last(part) for part in op.operands]
        return tensor.ConcatOp(_permuted_type(op.results[0].type, LAST), dim, parts).operation

    def _pointwise(self, op: ir.Operation) -> ir.Operation:
        view = any_structured(op)
        assert view is not None
        operands = [self._operand(view, number) for number in range(len(op.operands))]
        values = [value for value, _ in operands]
        to_last = ir.AffineMap.get(4, 0, _permuted(ir.AffineMap.get_identity(4).results, FIRST))
        maps = [
            ir.AffineMap.get(4, 0, [expression.compose(to_last) for expression in read.results]) for _, read in operands
        ]
        return build_generic(
            values[: view.inputs],
            values[view.inputs :],
            maps,
            list(op.attributes["iterator_types"]),
            lambda elements: copy_body(view, elements, lambda loop: linalg.IndexOp(LAST.index(loop)).result),
        )

    def _operand(self, view: LinalgOp, number: int) -> tuple[ir.Value, ir.AffineMap]:
        """An operand as it is now, and its map from the loops of channels first."""
        value, indexing = view.op.operands[number], view.maps[number]
        if value in self._chosen or reads_image(view, number):
            return self._in_last(value), ir.AffineMap.get(4, 0, _permuted(indexing.results, LAST))
        return value, indexing

    def _in_last(self, value: ir.Value) -> ir.Value:
        """A tensor with channels last."""
        if value not in self._last:
            producer = defining_op(value)
            if producer is not None and is_made(value):
                self._last[value] = self._made(producer)
            else:
                with _behind(value):
                    self._last[value] = transpose(value, LAST)
        return self._last[value]

    def _made(self, producer: ir.Operation) -> ir.Value:
        """A tensor.empty or a linalg.fill of one."""
        if producer.name == "linalg.fill":
            number, output = producer.operands
            into = self._in_last(output)
            with _behind(producer.results[0]):
                return linalg.fill(number, outs=[into])
        kind = ir.RankedTensorType(producer.results[0].type)
        sizes = iter(producer.operands)
        shape = [next(sizes) if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim) for dim in range(4)]
        with _behind(producer.results[0]):
            return tensor.EmptyOp(_permuted(shape, LAST), kind.element_type).result

    def _serve(self, value: ir.Value) -> None:
        """Has the ops that have not been rewritten read a tensor with channels last, or its transpose."""
        last, first = self._last[value], None
        for use in list(value.uses):
            user = use.owner.operation
            if user in self._old:
                continue
            if user.name == "linalg.generic" and use.operand_number < len(user.operands) - len(user.results):
                _read_last(user, use.operand_number, last)
                continue
            if first is None:
                with _behind(last):
                    first = transpose(last, FIRST)
            user.operands[use.operand_number] = first


def _place_in_last(op: ir.Operation) -> dict[str, ir.Attribute]:
    """The attributes of an op on a part of an image, with channels last."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    for name in ("static_offsets", "static_sizes", "static_strides"):
        attributes[name] = ir.DenseI64ArrayAttr.get(_permuted(list(ir.DenseI64ArrayAttr(attributes[name])), LAST))
    return attributes


def _named(name: str, op: ir.Operation, operands: Sequence[ir.Value]) -> ir.Operation:
    """A named linalg op with the strides and dilations of another."""
    build = getattr(linalg, name.partition(".")[2])
    data, taps, output = operands
    strides, dilations = window_steps(op, "strides"), window_steps(op, "dilations")
    result = build(data, taps, outs=[output], strides=strides, dilations=dilations)
    return result.owner.operation if isinstance(result, ir.Value) else result.operation


def _pack(weight: ir.Value, loops: Sequence[ir.AffineExpr], order: list[int]) -> tuple[ir.Value, list[ir.AffineExpr]]:
    """A weight [F, C, R, S] with the dims of the sum in an order, F behind them; and where the loops are in it.

    F is split into blocks where that goes, [F / block, .., block]: what a tile reads lies in one piece then.
    """
    kind = ir.RankedTensorType(weight.type)
    size = kind.get_dim_size(0)
    places = _permuted(loops, [*order, 0])
    if kind.is_dynamic_dim(0) or size % BLOCK or not isinstance(kind.element_type, (ir.F32Type, ir.F64Type)):
        return transpose(weight, [*order, 0]), places
    shape = [size // BLOCK, BLOCK, *kind.shape[1:]]
    split = tensor.ExpandShapeOp(
        ir.RankedTensorType.get(shape, kind.element_type), weight, [[0, 1], [2], [3], [4]], [], shape
    ).result
    block = ir.AffineExpr.get_floor_div(loops[0], BLOCK), ir.AffineExpr.get_mod(loops[0], BLOCK)
    return transpose(split, [0, *(dim + 1 for dim in order), 1]), [block[0], *places[:-1], block[1]]


def _read_last(generic: ir.Operation, number: int, value: ir.Value) -> None:
    """Has an op read the same tensor with channels last."""
    indexing = ir.AffineMapAttr(generic.attributes["indexing_maps"][number]).value
    read_by(generic, number, value, ir.AffineMap.get(indexing.n_dims, 0, _permuted(indexing.results, LAST)))


@contextlib.contextmanager
def _behind(value: ir.Value) -> Iterator[None]:
    """Builds ops right behind what defines a value."""
    producer = defining_op(value)
    if producer is None:
        with ir.Location.unknown(), ir.InsertionPoint.at_block_begin(value.owner):
            yield
    else:
        with producer.location, ir.InsertionPoint.after(producer):
            yield


def _permuted(values: Sequence, permutation: Sequence[int]) -> list:
    return [values[dim] for dim in permutation]


def _permuted_type(kind: ir.Type, permutation: Sequence[int]) -> ir.Type:
    old = ir.RankedTensorType(kind)
    return ir.RankedTensorType.get(_permuted(old.shape, permutation), old.element_type)
