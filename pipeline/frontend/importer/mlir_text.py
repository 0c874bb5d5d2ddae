"""MLIR → Program: linalg, StableHLO or TOSA, as text or bytecode; the signature is that of `@main`. Free of torch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from pipeline.errors import PipelineError, UnsupportedTypeError
from pipeline.frontend.importer.mlir_constants import may_have_weights, take_weights
from pipeline.frontend.importer.mlir_weights import marked_weights, move_weights
from pipeline.frontend.mlir_formats.lowering import LinalgText, as_linalg, is_lowered_here
from pipeline.ir.tensor_types import tensor_type
from pipeline.mlir import context, context_for, function, ir, parse, walk_where
from pipeline.program import Dump, Program, ProgramSource
from pipeline.remarks import source_line
from pipeline.runtime.call.array_libraries import dtype_and_shape
from pipeline.runtime.interface.pytree import LEAF, Tree
from pipeline.runtime.interface.signature import DTYPE_BYTES, Argument, Result, Signature, TensorType, Weight

#: Text of more characters may have large constants, which a context keeps.
_LONG = 200_000

#: Floats that MLIR has, and that processors do not compute with: LLVM ends the process over some of them.
_ODD_FLOAT = re.compile(r"(?:\b|[\d?]x)(tf32|f80|f128|f[468]E\w+)\b")


@dataclass(frozen=True)
class MlirSource(ProgramSource):
    """MLIR, as text or bytecode; its name is in messages, too."""

    text: str | bytes
    name: str
    given: Mapping[str, Any] = field(default_factory=dict)
    _weights: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def program(self, dump: Dump) -> Program:
        """See `from_mlir`; other dialects than linalg are lowered to it first, and constants become weights."""
        lowered = LinalgText(self.text) if isinstance(self.text, str) else None
        if lowered is None or is_lowered_here(self.text):
            lowered = as_linalg(self.text, self.name)
        program = from_mlir(lowered.text, self.name, dump, lowered.unsigned, constants=True, given=self.given)
        for name, array in program.weights.items():
            self._weights.setdefault(name, array)
        return replace(program, weights=self._weights)

    def tensors(self) -> Mapping[str, Any]:
        """The arrays that were given, and the constants that are weights."""
        if not self._weights and (self.given or may_have_weights(self.text)):
            self.program(lambda *_: None)
        return self._weights

    def fingerprint(self) -> str:
        """The text itself, and which arguments are weights; the name is in locations."""
        return f"mlir {self.name} {sorted(self.given)}\n{self.text!s}"


def from_mlir(
    source: str,
    name: str,
    dump: Dump,
    unsigned: tuple[tuple[str, int, str], ...] = (),
    *,
    constants: bool = False,
    given: Mapping[str, Any] = MappingProxyType({}),
) -> Program:
    """The Program of a module in linalg on tensors with a function `@main` on tensors and 64-bit integers.

    Its arguments are called `arg0`, `arg1`, ...; a single result comes alone, several as a tuple. Arrays are NumPy's
    where no argument is a tensor of torch's. In the IR of a model's stages the weights are marked: here, where there is
    no model, they are arguments as any other, but for those whose arrays are `given` by their names. `unsigned` are the
    dtypes that its types do not tell, see `LinalgText`. With `constants`, tensors of floats in the module are weights.

    Raises `PipelineError` for what is given and no argument is marked with, and for arrays of other dtypes or shapes;
    `UnsupportedTypeError` for floats that CPUs do not compute with.
    """
    module = parse(source, _context(source), name)
    main = function(module, "main")
    marked = marked_weights(main, given)
    for attributes in ("arg_attrs", "res_attrs"):
        if attributes in main.attributes:
            del main.attributes[attributes]
    kind = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
    dtypes = {(what, number): dtype for what, number, dtype in unsigned}
    left = [number for number in range(len(kind.inputs)) if number not in marked]
    arguments = tuple(
        _argument(place, kind.inputs[number], dtypes.get(("argument", number))) for place, number in enumerate(left)
    )
    results = tuple(
        Result("computed", number, _signed_as(_type(each, f"result {number}"), dtypes.get(("result", number))))
        for number, each in enumerate(kind.results)
    )
    if _ODD_FLOAT.search(source):
        _refuse_odd_floats(module, name)
    with module.context:
        weights = move_weights(main, marked, given)
        if constants:
            weights |= take_weights(main, source, weights)
    leaves = (LEAF,) * len(results)
    signature = Signature(
        arguments=arguments,
        argument_tree=Tree("tuple", (Tree("tuple", (LEAF,) * len(arguments)), Tree("dict"))),
        parameters=tuple(argument.name for argument in arguments),
        results=results,
        result_tree=leaves[0] if len(leaves) == 1 else Tree("tuple", leaves),
        weights=tuple(Weight(name, TensorType(*dtype_and_shape(array))) for name, array in weights.items()),
    )
    dump("linalg", module)
    return Program(module, signature, weights, weights_library="numpy")


def _refuse_odd_floats(module: ir.Module, name: str) -> None:
    """Raises `UnsupportedTypeError` for the first op with such a float."""
    for op in walk_where(module.operation, lambda op: True):
        inside = [argument for region in op.regions for block in region.blocks for argument in block.arguments]
        kinds = [str(value.type) for value in (*op.operands, *op.results, *inside)]
        found = next((match[1] for kind in kinds if (match := _ODD_FLOAT.search(kind))), None)
        if found is not None:
            place = source_line(op.location) or name
            what = f"{op.name} has an element of type {found}, which is not computed with"
            raise UnsupportedTypeError(f"{place}: {what}; convert to f16, bf16, f32 or f64 in the model")


def _context(source: str) -> ir.Context:
    """What a module is parsed into; a context keeps resources, by names that are numbered in it."""
    is_alone = "dense_resource" in source or len(source) > _LONG
    return context() if is_alone else context_for(source.count("\n"))


def _signed_as(kind: TensorType | None, dtype: str | None) -> TensorType | None:
    """A type with the dtype that is known of it; raises `PipelineError` where calls have no such tensors."""
    if dtype is None or kind is None:
        return kind
    if dtype not in DTYPE_BYTES:
        raise PipelineError(f"tensors of {dtype} are not supported; convert to {dtype[1:]} or int64 in the model")
    return replace(kind, dtype=dtype)


def _argument(number: int, kind: ir.Type, dtype: str | None = None) -> Argument:
    name = f"arg{number}"
    given = _signed_as(_type(kind, f"argument {name}", f"d{number}_"), dtype)
    return Argument(name, "tensor", given) if given is not None else Argument(name, "int", value=f"n{number}")


def _type(kind: ir.Type, what: str, symbol: str = "d") -> TensorType | None:
    """The type of a tensor, its unknown sizes called after the argument; None for a 64-bit integer."""
    if str(kind) in ("i64", "index"):
        return None
    try:
        return tensor_type(kind, symbol)
    except PipelineError as error:
        raise PipelineError(f"{what} of @main: {error}") from None
