"""A program that calls one kernel of a module, as that module does, so that it can be compiled and run alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from pipeline.analysis import winograd
from pipeline.ir.attributes import ARGUMENT, CALLS, KERNEL, WEIGHT, WINOGRAD
from pipeline.ir.tensor_types import tensor_type
from pipeline.mlir import arith, context, defining_op, func, ir, parse, tensor, walk
from pipeline.passes.layout.prepared_weights import is_weight
from pipeline.runtime.interface.pytree import LEAF, Tree
from pipeline.runtime.interface.signature import Argument, Result, Signature, Weight

#: What the kernel is called: equal kernels of several models are tuned once.
_NAME = "measured_kernel"

#: What the names of weights and arguments begin with; the number of the kernel's operand follows.
_WEIGHT, _ARGUMENT = "weight", "arg"

_FLOATS = (ir.F16Type, ir.BF16Type, ir.F32Type, ir.F64Type)


@dataclass(frozen=True)
class KernelProgram:
    """The text of a module whose @main calls a kernel; its signature; values for its weights and arguments.

    Pickles leave out the values, which are drawn again.
    """

    text: str
    signature: Signature
    weights: dict[str, np.ndarray]
    arguments: tuple[np.ndarray, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _redrawn, (self.text, self.signature)


def why_not(kernel: ir.Operation) -> str | None:
    """Why a kernel cannot be called alone, with numbers drawn at random; None if it can."""
    if CALLS in kernel.attributes:
        return "it calls a function from outside"
    kind = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value)
    for value_type in (*kind.inputs, *kind.results):
        if isinstance(value_type, ir.RankedTensorType):
            if not value_type.has_static_shape:
                return "its sizes are not known"
            value_type = value_type.element_type
        if not isinstance(value_type, _FLOATS):
            return f"it takes or returns {value_type}, for which not every number will do"
    if not kind.results or not all(isinstance(result_type, ir.RankedTensorType) for result_type in kind.results):
        return "it returns no tensor"
    return None


def kernel_program(kernel: ir.Operation, calls: Sequence[ir.Operation]) -> KernelProgram:
    """The program for a kernel with these calls: what all of them hand over as a weight is a weight here, too."""
    kind = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value)
    roles = [_role(number, parameter_type, calls) for number, parameter_type in enumerate(kind.inputs)]
    names = {number: f"{_WEIGHT}{number}" for number, role in enumerate(roles) if role == "weight"}
    given = [number for number, role in enumerate(roles) if role == "argument"]
    with kernel.context, ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            copy = kernel.clone()
            copy.attributes["sym_name"] = ir.StringAttr.get(_NAME)
            module.body.append(copy)
            _main(kind, roles, names, given)
        text = module.operation.get_asm(enable_debug_info=False)
    values = _values(kernel, kind, [*names, *given])
    leaves = (LEAF,) * len(kind.results)
    signature = Signature(
        arguments=tuple(
            Argument(f"{_ARGUMENT}{number}", "tensor", tensor_type(kind.inputs[number])) for number in given
        ),
        argument_tree=Tree("tuple", (Tree("tuple", (LEAF,) * len(given)), Tree("dict"))),
        parameters=tuple(f"{_ARGUMENT}{number}" for number in given),
        results=tuple(
            Result("computed", number, tensor_type(result_type)) for number, result_type in enumerate(kind.results)
        ),
        result_tree=leaves[0] if len(leaves) == 1 else Tree("tuple", leaves),
        weights=tuple(Weight(name, tensor_type(kind.inputs[number])) for number, name in names.items()),
    )
    return KernelProgram(
        text,
        signature,
        {name: values[number] for number, name in names.items()},
        tuple(values[number] for number in given),
    )


def _redrawn(text: str, signature: Signature) -> KernelProgram:
    """The program that was pickled, with the values that it had."""
    names = [weight.name for weight in signature.weights]
    weights = [int(name.removeprefix(_WEIGHT)) for name in names]
    given = [int(argument.name.removeprefix(_ARGUMENT)) for argument in signature.arguments]
    known = context()
    with known, ir.Location.unknown():
        module = parse(text, known, "kernel")
        (kernel,) = (one for one in walk(module, "func.func") if KERNEL in one.attributes)
        values = _values(
            kernel, ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value), [*weights, *given]
        )
    found = {name: values[number] for name, number in zip(names, weights, strict=True)}
    return KernelProgram(text, signature, found, tuple(values[number] for number in given))


def _role(number: int, kind: ir.Type, calls: Sequence[ir.Operation]) -> str:
    """What the calls hand over: a `weight`, a `destination`, a `number`, or an `argument`."""
    handed = [call.operands[number] for call in calls]
    if not isinstance(kind, ir.RankedTensorType):
        return "number"
    if all((op := defining_op(value)) is not None and op.name == "tensor.empty" for value in handed):
        return "destination"
    return "weight" if all(map(is_weight, handed)) else "argument"


def _main(kind: ir.FunctionType, roles: Sequence[str], names: dict[int, str], given: Sequence[int]) -> None:
    """@main(weights, arguments) => the results of the kernel."""
    taken = [*names, *given]
    main = func.FuncOp("main", ir.FunctionType.get([kind.inputs[number] for number in taken], list(kind.results)))
    i64 = ir.IntegerType.get_signless(64)
    marks = [{WEIGHT: ir.StringAttr.get(name)} for name in names.values()]
    marks += [{ARGUMENT: ir.IntegerAttr.get(i64, number)} for number in range(len(given))]
    main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(mark) for mark in marks])
    with ir.InsertionPoint(main.add_entry_block()):
        known = dict(zip(taken, main.arguments, strict=True))
        operands = [
            known[number] if number in known else _made(role, kind.inputs[number]) for number, role in enumerate(roles)
        ]
        call = func.CallOp(list(kind.results), ir.FlatSymbolRefAttr.get(_NAME), operands)
        func.ReturnOp(list(call.results))


def _made(role: str, kind: ir.Type) -> ir.Value:
    if role == "number":
        return arith.ConstantOp(kind, ir.FloatAttr.get(kind, 1.0)).result
    return tensor.EmptyOp(ir.RankedTensorType(kind).shape, ir.RankedTensorType(kind).element_type).result


_DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


def _values(kernel: ir.Operation, kind: ir.FunctionType, numbers: Sequence[int]) -> dict[int, np.ndarray]:
    """Values for the arguments of a kernel with these numbers: random, or what they have to be for others."""
    rng = np.random.default_rng(0)
    values = {}
    for number in numbers:
        shaped = ir.RankedTensorType(kind.inputs[number])
        drawn = rng.standard_normal(tuple(shaped.shape), np.float32)
        values[number] = drawn.astype(_DTYPES[str(shaped.element_type)])
    for convolution in (op for op in walk(kernel, "linalg.generic") if WINOGRAD in op.attributes):
        weight, transformed = (ir.BlockArgument(convolution.operands[number]).arg_number for number in (1, 2))
        matrix = np.array(winograd.WEIGHT[ir.IntegerAttr(convolution.attributes[WINOGRAD]).value])
        points = np.einsum("ir,js,brscf->bijcf", matrix, matrix, values[weight])
        values[transformed] = points.reshape(values[transformed].shape).astype(np.float32)
    return values
