"""Ops of our own on their way from torch to linalg, past torch-mlir's passes, which know no such ops.

    torch.operator "torch.pipeline.name"(x, ..)   as torch-mlir imports a call of torch.ops.pipeline.name
    → pipeline.name(x) {..}                       on torch's tensors; torch-mlir's passes leave it alone
    → what computes it                            on builtin tensors, between torch-mlir's own conversions

Torch-mlir folds pairs of these conversions away as it lowers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from pipeline.ir.rewriting import before, replace
from pipeline.mlir import arith, defining_op, ir, load_dialects_of, walk

_TENSOR = re.compile(r"!torch\.vtensor<\[([\d,?]*)\],[su]?(\w+)>")


def imported(module: ir.Module, *names: str) -> list[ir.Operation]:
    """The calls of the ops called `names` in torch, such as `pipeline.windows`."""
    return [op for op in walk(module, "torch.operator") if imported_name(op) in names]


def imported_name(call: ir.Operation) -> str:
    """The name of the op that a torch.operator calls, such as `pipeline.windows`."""
    return ir.StringAttr(call.attributes["name"]).value.removeprefix("torch.")


def take_over(
    call: ir.Operation,
    name: str,
    operands: Sequence[ir.Value],
    attributes: Mapping[str, ir.Attribute] | None = None,
) -> None:
    """torch.operator(..) → name(operands) {attributes}"""
    with before(call):
        own = ir.Operation.create(name, [call.results[0].type], list(operands), attributes=dict(attributes or {}))
    replace(call, list(own.results))


def number_of(value: ir.Value) -> ir.Attribute:
    """The value of a torch.constant."""
    constant = defining_op(value)
    assert constant is not None
    return constant.attributes["value"]


def numbers_of(value: ir.Value) -> ir.Attribute:
    """The values of a list of torch.constants, as an array."""
    construct = defining_op(value)
    assert construct is not None
    return ir.ArrayAttr.get([number_of(number) for number in construct.operands], value.context)


def lower_ops(ops: Sequence[ir.Operation], lowering: Callable[[ir.Operation, ir.Value], ir.Value]) -> None:
    """op(x, ..) → lowering(op, x), on builtin tensors: from_builtin(lowering(op, to_builtin(x)))"""
    if ops:
        load_dialects_of("builtin.module(torch-func-backend-type-conversion)", ops[0].context)
    for op in ops:
        kind = op.results[0].type
        with before(op):
            result = lowering(op, _to_builtin(op.operands[0]))
            converted = ir.Operation.create("torch_c.from_builtin_tensor", [kind], [result]).result
        replace(op, [converted])


def builtin_operands(op: ir.Operation, first: ir.Value) -> list[ir.Value]:
    """The operands of an op, all of them tensors, as builtin ones; the first one is converted already."""
    return [first, *map(_to_builtin, list(op.operands)[1:])]


def builtin_type(kind: ir.Type) -> ir.RankedTensorType | None:
    """!torch.vtensor<[2,?],si64> → tensor<2x?xi64>; None for a type of another form, such as a complex one."""
    match = _TENSOR.fullmatch(str(kind))
    if match is None:
        return None
    sizes = "".join(f"{size}x" for size in match[1].split(",") if size)
    return ir.RankedTensorType(ir.Type.parse(f"tensor<{sizes}{match[2]}>", kind.context))


def result_type(op: ir.Operation) -> ir.RankedTensorType:
    """The builtin type of the op's result, which has one."""
    kind = builtin_type(op.results[0].type)
    assert kind is not None
    return kind


def wide(element: ir.Value, kind: ir.Type) -> ir.Value:
    """A number in the type that is computed in, which is wider or the same."""
    return element if element.type == kind else arith.ExtFOp(kind, element).result


def to_index(number: ir.Value) -> ir.Value:
    """!torch.int → index, at the insertion point."""
    wide = ir.Operation.create("torch_c.to_i64", [ir.IntegerType.get_signless(64)], [number]).result
    return arith.IndexCastOp(ir.IndexType.get(), wide).result


def _to_builtin(value: ir.Value) -> ir.Value:
    return ir.Operation.create("torch_c.to_builtin_tensor", [builtin_type(value.type)], [value]).result
