"""torch.vmap around an executable: a call for each sample, since the code is made for one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from pipeline.errors import ArgumentError


def is_vmapped(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether torch.vmap stands in for an argument, and no other transformation around it does."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves((args, dict(kwargs))) if isinstance(leaf, torch.Tensor)]
    wrapped = [leaf for leaf in leaves if torch._C._functorch.is_functorch_wrapped_tensor(leaf)]
    return bool(wrapped) and all(map(torch._C._functorch.is_batchedtensor, wrapped))


def call_each(call: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """What `call` gives for each sample, its tensors stacked along a first dimension that vmap takes away.

    Results that are no tensors are those of the first sample. For a batch of none there is nothing to know them from.

    Raises:
        ArgumentError: of the calls.
    """
    import torch
    from torch.utils import _pytree as pytree

    leaves, structure = pytree.tree_flatten((args, dict(kwargs)))
    first: list[tuple[list[Any], Any]] = []

    def tensors(*flat: Any) -> tuple[Any, ...]:
        positional, keywords = pytree.tree_unflatten(list(flat), structure)
        results, kind = pytree.tree_flatten(call(*positional, **keywords))
        first.append((results, kind))
        return tuple(result for result in results if isinstance(result, torch.Tensor))

    class EachSample(torch.autograd.Function):
        @staticmethod
        def forward(*flat: Any) -> tuple[Any, ...]:
            return tensors(*flat)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            raise ArgumentError("an executable has no gradient: compile the function that torch.func gives")

        @staticmethod
        def vmap(info: Any, in_dims: tuple[int | None, ...], *flat: Any) -> tuple[tuple[Any, ...], tuple[int, ...]]:
            samples = (
                [leaf if dim is None else leaf.select(dim, sample) for leaf, dim in zip(flat, in_dims, strict=True)]
                for sample in range(info.batch_size)
            )
            stacked = tuple(
                torch.stack(parts) for parts in zip(*(EachSample.apply(*one) for one in samples), strict=True)
            )
            return stacked, (0,) * len(stacked)

    found = iter(EachSample.apply(*leaves))
    results, kind = first[0]
    whole = [next(found) if isinstance(result, torch.Tensor) else result for result in results]
    return pytree.tree_unflatten(whole, kind)
