"""Bodies of sums of products: which inputs are the factors, and how an element becomes one."""

from __future__ import annotations

from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import defining_op, ir, seen_through

_CASTS = ("arith.extf", "arith.extsi", "arith.extui", "arith.truncf", "arith.trunci")

#: Quantized elements have no more bits.
QUANTIZED_BITS = 8


def sums_products(view: LinalgOp) -> bool:
    """out + a * b of the first two inputs, which are cast or dequantized before; others are not used else.

    Or out + float(a * b) * scale of integers.
    """
    value = added_value(view)
    product = None if value is None else defining_op(value)
    if value is None or product is None:
        return False
    integers = product_of_integers(value, view)
    if integers is None and product.name not in ("arith.mulf", "arith.muli"):
        return False
    factors = list((integers or product).operands)
    dequantized = [dequantized_input(value, view) for value in factors]
    plain = [_plain_input(value, view) for value in factors]
    found = [number if number is not None else other for number, other in zip(plain, dequantized, strict=True)]
    if found not in ([0, 1], [1, 0]):
        return False
    others = list(view.body.arguments)[2 : view.inputs]
    return integers is not None or plain != found or not any(list(argument.uses) for argument in others)


def added_value(view: LinalgOp) -> ir.Value | None:
    """What a body adds to its only output; None if it does something else."""
    last = defining_op(view.yielded[0])
    if last is None or last.name not in ("arith.addf", "arith.addi") or len(view.yielded) != 1:
        return None
    added = [value for value in last.operands if value != view.body.arguments[view.inputs]]
    return added[0] if len(added) == 1 else None


def product_of_integers(value: ir.Value, view: LinalgOp) -> ir.Operation | None:
    """The op that multiplies two integers, of each of the first two inputs one, of which a float is computed.

    float(a * b) * scale   ->   a * b
    """
    op = defining_op(value)
    while op is not None and op.name == "arith.mulf":
        inside = [operand for operand in op.operands if _depends_on_factors(operand, view)]
        op = defining_op(inside[0]) if len(inside) == 1 else None
    product = defining_op(op.operands[0]) if op is not None and op.name == "arith.sitofp" else None
    return product if product is not None and product.name == "arith.muli" else None


def _depends_on_factors(value: ir.Value, view: LinalgOp) -> bool:
    return not arguments_behind(value).isdisjoint(list(view.body.arguments)[:2])


def dequantized_input(factor: ir.Value, view: LinalgOp) -> int | None:
    """Which of the first two inputs of a body a factor is computed from, if that has quantized elements.

    (float(q) - zero) * scale   ->   the number of q
    """
    behind = arguments_behind(factor)
    read = [number for number in range(view.inputs) if view.body.arguments[number] in behind]
    first = [number for number in read if number < 2]
    if len(first) != 1 or view.body.arguments[view.inputs] in behind:
        return None
    return first[0] if is_quantized(view.body.arguments[first[0]].type) else None


def is_quantized(element: ir.Type) -> bool:
    """Whether elements of a type are small integers; a bool is none."""
    return isinstance(element, ir.IntegerType) and 1 < element.width <= QUANTIZED_BITS


def arguments_behind(value: ir.Value) -> set[ir.Value]:
    """The arguments of blocks that a value of a body is computed from."""
    return {known for known in values_behind(value) if defining_op(known) is None}


def values_behind(value: ir.Value) -> set[ir.Value]:
    """The value and all that it is computed from."""
    seen, waiting = {value}, [value]
    while waiting:
        op = defining_op(waiting.pop())
        new = set() if op is None else set(op.operands) - seen
        seen |= new
        waiting += new
    return seen


def _plain_input(factor: ir.Value, view: LinalgOp) -> int | None:
    """Which input a factor is, up to casts."""
    source = seen_through(factor, _CASTS)
    inputs = list(view.body.arguments)[: view.inputs]
    return inputs.index(source) if source in inputs else None
