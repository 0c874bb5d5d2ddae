"""Whether the sizes of a call fit a signature, as one function of Python: what `ArgumentReader` finds step by step."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.runtime.call.symbolic_sizes import in_python, names, python_function
from pipeline.runtime.interface.signature import Signature

#: Takes the shape of each tensor and the value of each int; may raise `ArithmeticError` where a condition has no value.
Fits = Callable[..., bool]


def size_check(signature: Signature) -> Fits | None:
    """What says whether sizes of tensors of the right ranks fit; None where a symbol is known by computing it alone.

    So is s0 of 2*s0 + 1.
    """
    places: dict[str, str] = {}
    equal = []
    composed: list[tuple[str, str]] = []
    for number, argument in enumerate(signature.arguments):
        own = f"a{number}"
        if argument.type is None:
            wanted = [(own, argument.value)]
        else:
            wanted = [(f"{own}[{dim}]", size) for dim, size in enumerate(argument.type.shape)]
        for place, size in wanted:
            if isinstance(size, int):
                equal.append(f"{place} == {size}")
            elif not size.isidentifier():
                composed.append((place, size))
            elif places.setdefault(size, place) != place:
                equal.append(f"{place} == {places[size]}")
    conditions = [guard.condition for guard in signature.guards]
    if any(not names(text) <= places.keys() for text in (*(size for _, size in composed), *conditions)):
        return None
    bounds = [f"{int(low)} <= {places[name]} <= {int(high)}" for name, low, high in signature.ranges if name in places]
    computed = [f"{place} == {in_python(size, places)}" for place, size in composed]
    guards = [in_python(condition, places) for condition in conditions]
    parameters = ", ".join(f"a{number}" for number in range(len(signature.arguments)))
    whole = " and ".join([*equal, *bounds, *computed, *guards]) or "True"
    return python_function(parameters, whole)
