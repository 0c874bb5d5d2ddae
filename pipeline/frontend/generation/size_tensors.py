"""Sizes of images that are known while a model is traced, so that it may make numbers of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from pipeline.errors import CaptureError

#: The attribute of a tensor in a graph whose elements are known: a tensor that has them.
_KNOWN = "pipeline_known"

#: What Python calls that writes to a tensor.
_WRITING = {"__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__"}
_WRITING |= {"__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__"}

#: What makes tensors of numbers.
_OF_NUMBERS = {torch.tensor, torch.arange}


class SizesKnown(TorchFunctionMode):
    """Knows what is computed of known tensors and numbers alone: a constant of the graph, which can be looked into."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """See the class."""
        leaves, structure = pytree.tree_flatten((args, dict(kwargs or {})))
        leaves = [slice(*map(_number, _ends(leaf))) if isinstance(leaf, slice) else leaf for leaf in leaves]
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        known = [leaf for leaf in tensors if is_known(leaf)]

        def called(convert: Callable[[Any], Any]) -> Any:
            args, kwargs = pytree.tree_unflatten([convert(leaf) for leaf in leaves], structure)
            return func(*args, **kwargs)

        of_numbers = func in _OF_NUMBERS and not any(isinstance(leaf, torch.SymInt) for leaf in leaves)
        if not known and (tensors or not of_numbers):
            return called(_same)
        if known and known[0] is leaves[0] and _is_in_place(func):
            raise CaptureError(f"{func.__name__} writes to numbers that are known when the model is compiled")
        if len(known) == len(tensors):
            with _disable_current_modes(), torch._C.DisableTorchFunction():
                found = called(_elements)
            return pytree.tree_map_only(torch.Tensor, _traced, found)
        try:
            return called(_number)
        except TypeError:  # it takes a tensor there
            return called(_same)


def size_tensor(values: Sequence[Any]) -> torch.Tensor:
    """Whole numbers as a tensor of the graph whose elements are known within `SizesKnown`."""
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        elements = torch.tensor(values, dtype=torch.int64)
    return _traced(elements)


def is_known(value: Any) -> bool:
    """Whether a value is a tensor whose elements are known."""
    return isinstance(value, torch.Tensor) and _KNOWN in value.__dict__


def known_numbers(tensor: torch.Tensor) -> Any:
    """The elements of such a tensor: a number, or lists of them."""
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        return _elements(tensor).tolist()


def _traced(elements: torch.Tensor) -> torch.Tensor:
    """A constant of the graph that has these elements."""
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        numbers, shape = elements.tolist(), tuple(elements.shape)
    tensor = torch.tensor(numbers, dtype=elements.dtype).reshape(shape)
    tensor.__dict__[_KNOWN] = elements
    return tensor


def _is_in_place(func: Callable[..., Any]) -> bool:
    name = getattr(func, "__name__", "")
    return name in _WRITING or (name.endswith("_") and not name.endswith("__"))


def _ends(place: slice) -> tuple[Any, Any, Any]:
    return place.start, place.stop, place.step


def _same(value: Any) -> Any:
    return value


def _elements(value: Any) -> Any:
    return value.__dict__[_KNOWN] if is_known(value) else value


def _number(value: Any) -> Any:
    """A number for a known tensor of one, which is the same beside other tensors, and may be a size."""
    return known_numbers(value) if is_known(value) and not value.ndim else value
