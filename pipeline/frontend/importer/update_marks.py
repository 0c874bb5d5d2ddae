"""The marks of arguments that a model writes to: which result is the new value."""

from __future__ import annotations

from collections import Counter

from pipeline import remarks
from pipeline.ir.attributes import ARGUMENT_NAME, UPDATED
from pipeline.mlir import ir
from pipeline.runtime.interface.signature import Signature


def update_marks(main: ir.Operation, signature: Signature, which: int | str) -> dict[str, ir.Attribute]:
    """The marks of an argument of @main, the number of a call's argument or the name of a weight.

    None where it is not written to, nor where its new value goes somewhere else, too: then that has to be in memory of
    its own.
    """
    numbers = {
        mutation.weight if mutation.argument is None else mutation.argument: mutation.result
        for mutation in signature.mutations
    }
    if which not in numbers:
        return {}
    name = f"weight {which}" if isinstance(which, str) else f"argument {signature.arguments[which].name}"
    returned = Counter({result.index: 1 for result in signature.results if result.kind == "computed"})
    if (Counter(numbers.values()) + returned)[numbers[which]] > 1:
        what = f"{name} is written to by a copy after the call: its new value is returned, too"
        remarks.missed("update-in-place", main, what)
        return {}
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), numbers[which])
    return {UPDATED: number, ARGUMENT_NAME: ir.StringAttr.get(name)}
