"""Which slot of a call of `@main` holds what; see `pipeline.runtime.interface.entry_point`."""

from __future__ import annotations

from typing import Any

from pipeline.runtime.call.arguments import Arguments
from pipeline.runtime.call.array_libraries import pointer
from pipeline.runtime.call.array_library import Allocation, ArrayLibrary
from pipeline.runtime.interface.aligned_memory import first_row_of_nothing
from pipeline.runtime.interface.code import Code
from pipeline.runtime.interface.signature import PAIRS_OF, Signature, TensorType

Slots = Any  # a ctypes array of int64


class SlotLayout:
    """Worked out once for an executable.

    Attributes:
        slots: how many there are; the last one is where a failed check leaves its number.
        status: the slot of the address of that one; None if the code has no checks.
        workspace: the slots of the address and the size of the workspace.
        seed: the slot of the seed of the call's random numbers; None if the code has none.
        profile: the slots of the address and the size of the record of times; None if the code records none.
        weight_slots: (slot, source) of each weight and prepared tensor.
        argument_slots: (leaf, slot, dynamic dimensions, is a number) of each argument.
        moved: (result, slot, shape, dtype) of each result that the code writes to a place that it is given.
        kept: (result, slot, type) of each result that the code allocates or, where the type is None, a number.
    """

    def __init__(self, code: Code, signature: Signature):
        main = code.main
        starts = main.parameter_slots()
        self.slots = main.slots + 1
        self.status: int | None = None
        self.workspace = (0, 0)
        self.seed: int | None = None
        self.profile: tuple[int, int] | None = None
        self.weight_slots = []
        self.argument_slots = []
        for source, start, value in zip(code.main_sources, starts, main.parameters, strict=False):
            if source.kind == "argument":
                self.argument_slots.append((source.index, start, tuple(value.dynamic_dims), value.shape is None))
            elif source.kind == "status":
                self.status = start
            elif source.kind == "seed":
                self.seed = start
            elif source.kind == "workspace":
                self.workspace = (start, start + 1)
            elif source.kind == "profile":
                self.profile = (start, start + 1)
            else:
                self.weight_slots.append((start, source))
        types = result_types(signature, len(main.where))
        own = len(code.main_sources)
        places = iter(zip(starts[own:], main.parameters[own:], strict=True))
        returned = iter(main.result_slots())
        self.moved = []
        self.kept = []
        for index, where in enumerate(main.where):
            kind = types[index]
            if where == "parameter":
                start, value = next(places)
                assert kind is not None and value.shape is not None
                shape = value.shape[:-1] if kind.dtype in PAIRS_OF else value.shape
                self.moved.append((index, start, shape, kind.dtype))
            elif where == "result":
                self.kept.append((index, next(returned), kind))

    def fill_arguments(self, slots: Slots, call: Arguments) -> None:
        """Writes the arguments' addresses, sizes and numbers."""
        for index, start, dims, is_number in self.argument_slots:
            value = call.values[index]
            if is_number:
                slots[start] = value
                continue
            slots[start] = pointer(value) if 0 not in value.shape else first_row_of_nothing(value.shape, value.itemsize)
            for offset, dim in enumerate(dims):
                slots[start + 1 + offset] = value.shape[dim]

    def allocated_results(self, slots: Slots, library: ArrayLibrary) -> dict[int, Any]:
        """The results that the code allocated, as tensors that own their memory, and numbers, by number.

        Where the code returns one allocation twice, as for a tensor and its reshape, each gets memory of its own.
        """
        results: dict[int, Any] = {}
        owned: dict[int, Allocation] = {}
        for index, start, kind in self.kept:
            if kind is None:
                results[index] = int(slots[start])
                continue
            allocated, address, offset = slots[start : start + 3]
            assert offset == 0
            shape = slots[start + 3 : start + 3 + len(kind.shape)]
            memory = owned.get(allocated) or Allocation(allocated)
            tensor = library.adopt(memory, address, shape, kind.dtype)
            if allocated in owned:
                shared, tensor = tensor, library.empty(shape, kind.dtype)
                library.copy(tensor, shared)
            owned[allocated] = memory
            results[index] = tensor
        return results


def result_types(signature: Signature, count: int) -> list[TensorType | None]:
    """The type of each of main's results, as they lie in memory; None for a number."""
    types: list[TensorType | None] = [None] * count
    weights = {weight.name: weight.type for weight in signature.weights}
    for mutation in signature.mutations:
        if mutation.argument is not None:
            types[mutation.result] = signature.arguments[mutation.argument].type
        else:
            types[mutation.result] = weights[str(mutation.weight)]
    for result in signature.results:
        if result.kind in ("computed", "number"):
            types[result.index] = result.type_in_memory
    return types
