"""Builds convolutions of quantized images and weights: sums of products of bytes along windows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from pipeline.ir.constants import zero
from pipeline.ir.indexing_maps import loop_of
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.rewriting import build_generic, iterator_types, sizes_of
from pipeline.mlir import arith, defining_op, ir
from pipeline.passes.layout.dequantization import Source, squeezed
from pipeline.passes.layout.int8_product import Int8Product
from pipeline.passes.layout.quantized_factor import QuantizedFactor
from pipeline.passes.layout.quantized_image import QuantizedImage, padded
from pipeline.passes.layout.tensor_shapes import expand, transpose

#: How many bytes side by side a dot product takes.
_STEPS = 4

#: Zeros beside channels may be so many times the bytes of a weight.
_MOST_CHANNELS = 3


class Int8Convolution(Int8Product):
    """A convolution with factors (x - z) * s and (w - v) * t, of an image that is padded with z where it was with 0.

    Where a sum runs along channels, these are filled up to a multiple of four, with zeros in the weight.
    """

    def __init__(self, product: LinalgOp, image: QuantizedImage, weight: QuantizedFactor):
        super().__init__(product, [image.factor, weight])
        self._image = image

    def build(self, start: Source | None = None) -> ir.Value:
        """The result of the convolution, as `Int8Product.build` has it, added to `start`."""
        product, weight = self._product, self._factors[1]
        channels, missing = self._missing_channels()
        image = Source(self._image.build(channels, missing), tuple(product.maps[0].results))
        taps = shaped_like(weight.quantized, product)
        if missing:
            taps = Source(_filled(taps.value, taps.places, product.maps[0].results[channels], missing), taps.places)
        sources = [self._sum_of_products([image, taps])]
        summed: list[int | None] = [None, None]
        if not self._factors[1].is_centered:
            summed[0] = len(sources)
            sources.append(self._sum_of_windows(image, taps))
        if not self._factors[0].is_centered:
            summed[1] = len(sources)
            sources.append(self._sum(weight.quantized, weight.unsigned))
        starts = []
        for factor in self._factors:
            starts.append(len(sources) - 1)
            sources += factor.sources[1:]
        if start is not None:
            sources.append(start)
        return self._scaled(sources, summed, starts, None if start is None else len(sources) - 1)

    def _terms(self) -> int:
        """How many products a sum has, with those of the channels that are filled up."""
        dim, missing = self._missing_channels()
        if not missing:
            return super()._terms()
        channels = ir.RankedTensorType(self._product.operands[0].type).shape[dim]
        return super()._terms() // channels * (channels + missing)

    def _missing_channels(self) -> tuple[int, int]:
        """The dim of the image along which products are added up, and how many more channels fill whole groups."""
        product = self._product
        plain = [dim for dim, place in enumerate(product.maps[0].results) if loop_of(place) in product.summed]
        if len(plain) != 1 or self._image.border is None or _reshapes(self._image):
            return 0, 0
        channels = ir.RankedTensorType(product.operands[0].type).shape[plain[0]]
        missing = -channels % _STEPS
        return plain[0], missing if channels + missing <= _MOST_CHANNELS * channels else 0

    def _sum_of_windows(self, image: Source, taps: Source) -> Source:
        """The sums of the bytes of an image along windows: of all channels of a place first, then of these sums."""
        product = self._product
        kept = [place for place in product.maps[2].results if self._moves_image(loop_of(place))]
        sizes = zip(sizes_of(product.operands[2]), product.maps[2].results, strict=True)
        loops = [loop for loop in range(product.loops) if self._is_tap(loop) or ir.AffineDimExpr.get(loop) in kept]
        places = self._sum_of_channels(image)
        new = {loop: ir.AffineDimExpr.get(number) for number, loop in enumerate(loops)}
        zeros = [ir.AffineConstantExpr.get(0)] * product.loops
        inside = ir.AffineMap.get(len(loops), 0, [new.get(loop, zeros[loop]) for loop in range(product.loops)])
        maps = [
            ir.AffineMap.get(len(loops), 0, [place.compose(inside) for place in read])
            for read in (places.places, taps.places, kept)
        ]
        made = build_generic(
            [places.value, taps.value],
            [self._zeros([size for size, place in sizes if place in kept])],
            maps,
            iterator_types([product.reductions[loop] for loop in loops]),
            lambda elements: [arith.AddIOp(elements[2], elements[0]).result],
        )
        return Source(made.results[0], tuple(kept))

    def _sum_of_channels(self, image: Source) -> Source:
        """The sums of the bytes of an image along its dims that are loops of the sum."""
        rank = len(image.places)
        sums = [loop_of(place) in self._product.summed for place in image.places]
        own = [ir.AffineDimExpr.get(dim) for dim in range(rank)]
        kept = [dim for dim in range(rank) if not sums[dim]]
        extend = arith.ExtUIOp if self._factors[0].unsigned else arith.ExtSIOp
        sizes = sizes_of(image.value)
        made = build_generic(
            [image.value],
            [self._zeros([sizes[dim] for dim in kept])],
            [ir.AffineMap.get_identity(rank), ir.AffineMap.get(rank, 0, [own[dim] for dim in kept])],
            iterator_types(sums),
            lambda elements: [arith.AddIOp(elements[1], extend(self._i32, elements[0]).result).result],
        )
        return Source(made.results[0], tuple(image.places[dim] for dim in kept))

    def _is_tap(self, loop: int) -> bool:
        """Whether a loop is one of the window, not of channels."""
        return self._product.reductions[loop] and loop not in self._product.loops_read(0)

    def _moves_image(self, loop: int | None) -> bool:
        return loop is not None and self._product.moves(0, loop) != "fixed"


def shaped_like(source: Source, product: LinalgOp) -> Source:
    """A weight with the dims of the one that a convolution reads: some of size 1 may be elsewhere, or missing."""
    operand, places = product.operands[1], tuple(product.maps[1].results)
    shape = list(ir.RankedTensorType(operand.type).shape)
    given = list(ir.RankedTensorType(source.value.type).shape)
    if given == shape and all(
        place == own or size == 1 for place, own, size in zip(source.places, places, shape, strict=True)
    ):
        return Source(source.value, places)
    read = squeezed(source)
    order = [read.places.index(place) for place in places if place in read.places]
    value = transpose(read.value, order) if order != sorted(order) else read.value
    starts = [0, *[dim for dim, place in enumerate(places) if place in read.places][1:], len(places)]
    return Source(expand(value, shape, [range(*pair) for pair in itertools.pairwise(starts)]), places)


def start_of(product: LinalgOp) -> Source:
    """What the sums of a convolution begin with: where that is repeated, what is repeated, as of a bias."""
    value, places = product.operands[2], list(product.maps[2].results)
    repeats = structured(defining_op(value))
    if repeats is None or repeats.op.name != "linalg.broadcast":
        return Source(value, tuple(places))
    return Source(repeats.operands[0], tuple(places[loop] for loop in repeats.loops_read(0)))


def _reshapes(image: QuantizedImage) -> bool:
    return any(op.name != "tensor.pad" for op in image.moves)


def _filled(value: ir.Value, places: Sequence[ir.AffineExpr], channel: ir.AffineExpr, missing: int) -> ir.Value:
    """A weight with zeros behind its channels."""
    more = [missing if place == channel else 0 for place in places]
    return padded(value, [0] * len(more), more, zero(ir.RankedTensorType(value.type).element_type))
