"""What becomes of the results of the code: the caller's, the weights', the arguments' that the model writes to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.runtime.call.arguments import Arguments
from pipeline.runtime.call.array_libraries import copy, mark_written, pointer, relabelled
from pipeline.runtime.call.out_arguments import Destinations
from pipeline.runtime.interface.pytree import unflatten
from pipeline.runtime.interface.signature import Result, Signature


def hand_out(signature: Signature, call: Arguments, computed: dict[int, Any], destinations: Destinations | None) -> Any:
    """What a call returns: the results in the model's structure, or the tensors that the caller wants filled."""
    if destinations is not None:
        destinations.fill(computed, call.leaves)
        return destinations.out
    for index, permutation in {one.index: one.permutation for one in signature.results if one.permutation}.items():
        computed[index] = relabelled(computed[index], permutation)
    leaves = iter([_result_of(result, computed, call.leaves) for result in signature.results])
    return unflatten(signature.result_tree, leaves)


def write_mutations(
    signature: Signature,
    call: Arguments,
    computed: dict[int, Any],
    live: Mapping[str, Any],
    copies: Mapping[str, Any],
) -> None:
    """Writes what the model mutates to the caller's tensors, the live weights, and the copies of weights.

    What is not in `computed` the code has written itself, to the memory that it was given.
    """
    for mutation in signature.mutations:
        if mutation.argument is not None:
            target, given = call.leaves[mutation.argument], call.values[mutation.argument]
        else:
            assert mutation.weight is not None
            target = live[mutation.weight]
            given = copies.get(mutation.weight, target)
        if mutation.result in computed:
            copy(target, computed[mutation.result])
            if mutation.weight in copies:
                copy(given, computed[mutation.result])
        elif pointer(given) == pointer(target):
            mark_written(target)
        else:
            copy(target, given)


def _result_of(result: Result, computed: dict[int, Any], leaves: list[Any]) -> Any:
    """What a call returns for one leaf."""
    if result.kind == "computed":
        return computed[result.index]
    if result.kind == "number":
        return computed[result.index].item()
    return leaves[result.index] if result.kind == "argument" else result.value
