"""Sizes of images that are known while a model is traced, so that it may make numbers of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes


class SizeTensor(torch.Tensor):
    """What is computed of these alone is computed at once; beside other tensors they are constants of the graph."""

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """See the class."""
        leaves, structure = pytree.tree_flatten((args, dict(kwargs or {})))
        is_known = all(isinstance(leaf, SizeTensor) for leaf in leaves if isinstance(leaf, torch.Tensor))

        def called(convert: Callable[[Any], Any]) -> Any:
            args, kwargs = pytree.tree_unflatten([convert(leaf) for leaf in leaves], structure)
            return func(*args, **kwargs)

        with torch._C.DisableTorchFunctionSubclass():
            if is_known:
                with _disable_current_modes():
                    found = called(_plain)
                    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.as_subclass(cls), found)
            try:
                return called(_number)
            except TypeError:  # it takes a tensor there
                return called(_constant)


def size_tensor(values: Sequence[Any]) -> SizeTensor:
    """Whole numbers as such a tensor."""
    with _disable_current_modes():
        return torch.tensor(values, dtype=torch.int64).as_subclass(SizeTensor)


def _plain(value: Any) -> Any:
    return value.as_subclass(torch.Tensor) if isinstance(value, SizeTensor) else value


def _number(value: Any) -> Any:
    """A number for a tensor of one, which is the same beside other tensors, and may be a size."""
    if not isinstance(value, SizeTensor) or value.ndim:
        return _constant(value)
    with _disable_current_modes():
        return _plain(value).item()


def _constant(value: Any) -> Any:
    if not isinstance(value, SizeTensor):
        return value
    with _disable_current_modes():
        numbers = _plain(value).tolist()
    return torch.tensor(numbers, dtype=value.dtype)
