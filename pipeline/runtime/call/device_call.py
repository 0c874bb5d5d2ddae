"""The short way of a call on a device: torch tensors that lie there, by position; everything else goes the long way.

What a call costs besides its launches is a microsecond for each tensor, as for calls on the CPU (`fast_path`). Whatever
it does not expect it leaves to the executable's own checks, which then find what is wrong and say so.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.runtime.call.fast_path import collector, is_flat
from pipeline.runtime.interface.pytree import LEAF
from pipeline.runtime.interface.signature import ParameterSource, Signature, TensorType


@dataclass(frozen=True)
class CallAddresses:
    """The addresses that the launches of a call are told.

    Attributes:
        fixed: one for each parameter of the plan; those of arguments and results are filled in by each call.
        sources: what the first parameters are; the results are behind them.
        alignment: what an argument's address must be a multiple of.
    """

    fixed: tuple[int, ...]
    sources: Sequence[ParameterSource]
    alignment: int


class DeviceCall:
    """Prepared once for an executable whose calls may go that way; `suits` says whether they may."""

    def __init__(
        self,
        signature: Signature,
        addresses: CallAddresses,
        results: Sequence[TensorType],
        device: Any,
        run: Callable[[list[int]], None],
    ):
        """Prepares it.

        Args:
            results: the types of the plan's results, in its order.
            device: the torch.device that arguments have to lie on.
            run: launches everything.
        """
        torch = sys.modules["torch"]
        self._tensors, self._strided = frozenset({torch.Tensor, torch.nn.Parameter}), torch.strided
        self._device, self._run, self._alignment = device, run, addresses.alignment
        places = {source.index: n for n, source in enumerate(addresses.sources) if source.kind == "argument"}
        self._arguments = [
            (getattr(torch, argument.type.dtype), torch.Size(argument.type.shape), places.get(number))
            for number, argument in enumerate(signature.arguments)
            if argument.type is not None
        ]
        self._fixed = addresses.fixed
        first = len(addresses.sources)
        permutations = {result.index: result.permutation for result in signature.results}
        self._results = [
            (_maker(kind, permutations[number], device), first + number) for number, kind in enumerate(results)
        ]
        self._order = None if signature.result_tree == LEAF else [result.index for result in signature.results]
        self._collect = collector(signature.result_tree)

    def call(self, args: tuple[Any, ...]) -> Any:
        """What the call returns; `NotImplemented` if it has to go the long way."""
        if len(args) != len(self._arguments):
            return NotImplemented
        addresses = list(self._fixed)
        try:
            for arg, (dtype, shape, place) in zip(args, self._arguments, strict=True):
                if (
                    type(arg) not in self._tensors
                    or arg.layout is not self._strided
                    or arg.dtype is not dtype
                    or arg.shape != shape
                    or arg.device != self._device
                    or not arg.is_contiguous()
                    or arg.is_neg()
                    or arg.is_conj()
                ):
                    return NotImplemented
                address = arg.data_ptr()
                if address % self._alignment or not address and arg.numel():
                    return NotImplemented
                if place is not None:
                    addresses[place] = address
        except RuntimeError:  # nested, or inside of torch.func, where tensors have neither sizes nor memory
            return NotImplemented
        results = []
        for make, place in self._results:
            result = make()
            addresses[place] = result.data_ptr()
            results.append(result)
        self._run(addresses)
        if self._order is None:
            return results[0]
        ordered = tuple([results[index] for index in self._order])
        return ordered if self._collect is None else self._collect(ordered)


def suits(signature: Signature, sources: Sequence[ParameterSource], moved: Sequence[bool]) -> bool:
    """Whether calls of an executable may go the short way, as far as its signature says."""
    return (
        len(signature.arguments) > 0
        and all(
            argument.type is not None and all(isinstance(size, int) for size in argument.type.shape)
            for argument in signature.arguments
        )
        and not signature.mutations
        and all(source.kind in ("argument", "weight", "prepared") for source in sources)
        and all(moved)
        and all(result.kind == "computed" for result in signature.results)
        and sorted(result.index for result in signature.results) == list(range(len(moved)))
        and is_flat(signature.argument_tree.children[0])
        and not signature.argument_tree.children[1].keys
    )


def _maker(kind: TensorType, permutation: tuple[int, ...] | None, device: Any) -> Callable[[], Any]:
    """What makes a tensor for a result."""
    torch = sys.modules["torch"]
    like = torch.empty(kind.shape, dtype=getattr(torch, kind.dtype), device=device)
    if permutation is not None:
        like = like.permute(permutation)
    like.untyped_storage().resize_(0)  # its sizes and strides are all that is wanted
    return functools.partial(torch.empty_like, like)
