"""The associative ops that reductions combine values with, and their neutral elements."""

from __future__ import annotations

from pipeline.mlir import defining_op, ir

#: Associative ops: their vector.reduction kind, and what combined with x gives x (for integers, of the full width).
FOLDS: dict[str, tuple[str, float | str]] = {
    "arith.addf": ("add", -0.0),
    "arith.mulf": ("mul", 1.0),
    "arith.maximumf": ("maximumf", float("-inf")),
    "arith.minimumf": ("minimumf", float("inf")),
    "arith.maxnumf": ("maxnumf", float("-inf")),
    "arith.minnumf": ("minnumf", float("inf")),
    "arith.addi": ("add", 0),
    "arith.muli": ("mul", 1),
    "arith.andi": ("and", -1),
    "arith.ori": ("or", 0),
    "arith.xori": ("xor", 0),
    "arith.maxsi": ("maxsi", "least"),
    "arith.minsi": ("minsi", "greatest"),
    "arith.maxui": ("maxui", 0),
    "arith.minui": ("minui", -1),
}


def neutral(fold: str, element: ir.Type) -> ir.Attribute:
    """What an op that folds starts from, in a type of numbers."""
    number = FOLDS[fold][1]
    if not isinstance(element, ir.IntegerType):
        return ir.FloatAttr.get(element, float(number))
    ends = {"least": -(1 << (element.width - 1)), "greatest": (1 << (element.width - 1)) - 1}
    whole = ends[number] if isinstance(number, str) else int(number)
    return ir.IntegerAttr.get(element, whole & 1 if element.width == 1 else whole)


def fold_ops(generic: ir.Operation) -> tuple[str, ...] | None:
    """For each output the associative op that folds a value into it; None if an output is computed otherwise."""
    body = generic.regions[0].blocks[0]
    *ops, terminator = [op.operation for op in body.operations]
    outputs = list(body.arguments)[len(body.arguments) - len(terminator.operands) :]
    names = []
    for output, value in zip(outputs, terminator.operands, strict=True):
        users = [use.owner.operation for use in output.uses]
        producer = defining_op(value)
        if producer is None or producer.name not in FOLDS or users != [producer]:
            return None
        if len(list(producer.results[0].uses)) > 1:  # what reads the running value would read a partial one
            return None
        names.append(producer.name)
    return tuple(names)
