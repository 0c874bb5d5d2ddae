"""torch.vmap around an executable: a call for each sample, since the code is made for one."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any

from pipeline.errors import ArgumentError


def is_vmapped(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether torch.vmap stands in for arguments, and nothing else of torch.func does."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves((args, dict(kwargs))) if isinstance(leaf, torch.Tensor)]
    wrapped = [leaf for leaf in leaves if torch._C._functorch.is_functorch_wrapped_tensor(leaf)]
    return bool(wrapped) and all(map(torch._C._functorch.is_batchedtensor, wrapped))


def call_each(call: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """What `call` gives for each sample, its tensors stacked along a first dimension that vmap takes away.

    Results that are no tensors are those of the first sample.

    Raises:
        ArgumentError: of the calls.
    """
    torch = sys.modules["torch"]  # the caller has loaded it
    pytree = torch.utils._pytree
    leaves, structure = pytree.tree_flatten((args, dict(kwargs)))
    first: list[tuple[list[Any], Any]] = []

    def tensors(*flat: Any) -> tuple[Any, ...]:
        positional, keywords = pytree.tree_unflatten(list(flat), structure)
        results, kind = pytree.tree_flatten(call(*positional, **keywords))
        first.append((results, kind))
        return tuple(result for result in results if isinstance(result, torch.Tensor))

    found = iter(_each_sample().apply(tensors, *leaves))
    results, kind = first[0]
    return pytree.tree_unflatten(
        [next(found) if isinstance(result, torch.Tensor) else result for result in results], kind
    )


@functools.cache
def _each_sample() -> Any:
    """An autograd.Function of a function and its arguments that vmap knows how to batch."""
    torch: Any = sys.modules["torch"]

    class EachSample(torch.autograd.Function):
        @staticmethod
        def forward(function: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
            return function(*arguments)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            """Keeps nothing: there is no backward."""

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            raise ArgumentError("an executable has no gradient: compile the function that torch.func gives")

        @staticmethod
        def vmap(info: Any, in_dims: Any, function: Callable[..., Any], *arguments: Any) -> Any:
            def sample(number: int) -> tuple[Any, ...]:
                pairs = zip(arguments, in_dims[1:], strict=True)
                return EachSample.apply(function, *(x if dim is None else x.select(dim, number) for x, dim in pairs))

            samples = [sample(number) for number in range(info.batch_size)]
            stacked = tuple(map(torch.stack, zip(*samples, strict=True)))
            return stacked, (0,) * len(stacked)

    return EachSample
