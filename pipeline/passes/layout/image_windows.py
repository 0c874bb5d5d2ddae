"""Convolutions and pools of images [N, C, H, W] that are linalg.generics: told by their maps, for propagate-layouts."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.ir.indexing_maps import coefficient, loop_of
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.mlir import ir


@dataclass(frozen=True)
class ImageWindow:
    """A generic with data [N, C, h(H, R), w(W, S)], a weight [F, C, R, S] or [C, R, S], and a result [N, F, H, W].

    Attributes:
        view: the op.
        image: the loops of the result's dims.
        taps: the loops of the window's dims.
        channels: the loop that sums over the data's channels; None where each is computed by itself.
    """

    view: LinalgOp
    image: tuple[int, ...]
    taps: tuple[int, ...]
    channels: int | None

    def steps(self, dim: int) -> tuple[int, int]:
        """The stride and the dilation along a dim of the image: 2 or 3."""
        place = self.view.maps[0].results[dim]
        stride, dilation = (coefficient(place, loops[dim - 2]) for loops in (self.image[2:], self.taps))
        assert stride is not None and dilation is not None
        return stride, dilation


def image_window(op: ir.Operation) -> ImageWindow | None:
    """A generic as a convolution of images with channels first; None if it is something else."""
    view = structured(op) if op.name == "linalg.generic" and len(op.operands) == 3 else None
    if view is None or view.inputs != 2 or [len(view.maps[number].results) for number in (0, 2)] != [4, 4]:
        return None
    image, weight = view.loops_read(2), view.loops_read(1)
    if len(image) != 4 or len(weight) != len(view.maps[1].results) or len(set(weight)) != len(weight):
        return None
    channel = loop_of(view.maps[0].results[1])
    sums = channel is not None and view.reductions[channel]
    expected = [image[1], channel] if sums else [image[1]]
    taps = weight[len(expected) :]
    if weight[: len(expected)] != expected or len(taps) != 2 or not (sums or channel == image[1]):
        return None
    if {*image, channel, *taps} != set(range(view.loops)) or len(image) + len(taps) + sums != view.loops:
        return None
    found = ImageWindow(view, tuple(image), tuple(taps), channel if sums else None)
    return found if _reads_windows(found) else None


def _reads_windows(window: ImageWindow) -> bool:
    """Whether the data moves along its dims with the loops that belong to these, and with no others."""
    view, (n, _, h, w) = window.view, window.image
    if view.loops_read(0)[:1] != [n] or not all(view.reductions[loop] for loop in window.taps):
        return False
    for place, loops in zip(view.maps[0].results[2:], ({h, window.taps[0]}, {w, window.taps[1]}), strict=True):
        steps = [coefficient(place, loop) for loop in range(view.loops)]
        if None in steps or any((steps[loop] or 0) < 1 for loop in loops):
            return False
        if any(step for loop, step in enumerate(steps) if loop not in loops):
            return False
    return True
