"""Arguments that a model writes to: marking them for the passes, and what became of them."""

from __future__ import annotations

from collections import Counter

from pipeline import remarks
from pipeline.ir.attributes import ARGUMENT_NAME, IN_PLACE, UPDATED
from pipeline.mlir import defining_op, function, ir, walk
from pipeline.runtime.interface.signature import Signature
from pipeline.targets.common.module_summary import sources_of

_PASS = "update-in-place"


def mark_updates(module: ir.Module, signature: Signature) -> None:
    """Marks each argument of @main that the model writes to with the result that is its new value.

    Not where that result goes somewhere else, too: then it has to be in memory of its own.
    """
    main = function(module, "main")
    numbers: dict[tuple[str, int | str], int] = {}
    for mutation in signature.mutations:
        key = ("argument", mutation.argument) if mutation.argument is not None else ("weight", str(mutation.weight))
        numbers[key] = mutation.result
    taken = Counter(numbers.values()) + Counter(
        {result.index: 1 for result in signature.results if result.kind == "computed"}
    )
    given = ir.ArrayAttr(main.attributes["arg_attrs"]) if "arg_attrs" in main.attributes else []
    marks = [{attribute.name: attribute.attr for attribute in ir.DictAttr(mark)} for mark in given]
    for source, mark in zip(sources_of(main), marks, strict=False):
        index = source.name if source.kind == "weight" else source.index
        number = numbers.get((source.kind, index))
        if number is None:
            continue
        name = f"argument {signature.arguments[source.index].name}" if source.kind == "argument" else f"weight {index}"
        if taken[number] > 1:
            remarks.missed(
                _PASS, main, f"{name} is written to by a copy after the call: its new value is returned, too"
            )
            continue
        mark[UPDATED] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
        mark[ARGUMENT_NAME] = ir.StringAttr.get(name)
    if marks:
        main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(mark) for mark in marks])


def report_copies(module: ir.Module) -> None:
    """Leaves a remark for each argument of @main that is copied to, once there are buffers."""
    main = function(module, "main")
    named = {}
    for argument, mark in zip(main.regions[0].blocks[0].arguments, main.attributes["arg_attrs"], strict=True):
        if IN_PLACE in mark:
            named[argument] = ir.StringAttr(mark[ARGUMENT_NAME]).value
    for copy in walk(main, "memref.copy"):
        target = copy.operands[1]
        if target in named and defining_op(target) is None:
            remarks.analysis(_PASS, copy, f"{named[target]}: its new value is copied to it")
