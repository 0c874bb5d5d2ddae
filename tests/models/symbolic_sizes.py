"""A model of the zoo compiled for sizes that change: which of its sizes may, and how far off it is at others."""

from __future__ import annotations

from typing import Any

import torch
from compare import relative_error
from torch.export import Dim
from torch.utils import _pytree as pytree
from zoo import VOCABULARY, Arguments, Entry

import pipeline

#: What the dimensions of an argument are by their number; those without a name are the model's.
_DIMENSIONS = {2: ("batch", "length"), 3: ("batch", "length", None), 4: ("batch", None, "height", "width")}

#: What is added to the sizes that a model is compiled with. Images stay divisible by the patches of all models.
_STEPS = {"batch": (2, -1), "length": (-5, 17), "height": (32, 64), "width": (64, 32)}


def symbolic_error(entry: Entry) -> tuple[str, float]:
    """The dimensions that stay symbolic, e.g. `batch, length`, and the largest error at three sizes of them.

    torch.export finds out which do: a model may ask for the one size of images that it was made for.
    """
    model, args, kwargs = entry.create()
    example = _resized(entry, (args, kwargs), {"batch": 3})
    shapes = pytree.tree_map_only(torch.Tensor, lambda x: _automatic(entry, x), example)
    compiled = pipeline.compile(model, *example, dynamic_shapes=(*shapes[0], *shapes[1].values()))
    (argument,) = (one for one in compiled.signature.arguments if one.kind == "tensor")
    shape = zip(_names(entry, len(argument.type.shape)), argument.type.shape, strict=True)
    sizes = {name: 0 for name, size in shape if name and isinstance(size, str)}
    error = 0.0
    for step in (None, 0, 1):
        given = example if step is None else _grown(entry, example, {name: _STEPS[name][step] for name in sizes})
        with torch.no_grad():
            want = model(*given[0], **given[1])
        error = max(error, relative_error(compiled(*given[0], **given[1]), want))
    return ", ".join(sizes), error


def _names(entry: Entry, rank: int) -> tuple[str | None, ...]:
    return entry.dimensions or _DIMENSIONS[rank]


def _automatic(entry: Entry, x: torch.Tensor) -> dict[int, Any]:
    return {number: Dim.AUTO for number, name in enumerate(_names(entry, x.dim())) if name}


def _resized(entry: Entry, given: Arguments, sizes: dict[str | None, int]) -> Arguments:
    """New values for the arguments, in the given sizes where they have such dimensions."""

    def new(x: torch.Tensor) -> torch.Tensor:
        shape = [sizes.get(name, size) for name, size in zip(_names(entry, x.dim()), x.shape, strict=True)]
        return torch.randn(shape) if x.is_floating_point() else torch.randint(3, VOCABULARY, shape)

    return pytree.tree_map_only(torch.Tensor, new, given)


def _grown(entry: Entry, given: Arguments, steps: dict[str, int]) -> Arguments:
    (x,) = pytree.tree_leaves(given)
    named = dict(zip(_names(entry, x.dim()), x.shape, strict=True))
    return _resized(entry, given, {name: named[name] + step for name, step in steps.items()})
