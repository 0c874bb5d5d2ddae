"""Runs @prepare and @main of a module in the interpreter, on the tensors that a call of it would get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.debug.interpreter import FailedCheck, Interpretation
from pipeline.debug.interpreter.number_types import Precision
from pipeline.debug.judgement import RunResults
from pipeline.errors import PipelineError
from pipeline.ir.attributes import IN_PLACE, PLACES_OF_RESULTS
from pipeline.mlir import context, function, ir, parse, symbol_name
from pipeline.passes.bufferization.results_to_out_params import places_of_results
from pipeline.passes.bufferization.updated_arguments import updates_of
from pipeline.runtime.call.array_libraries import as_numpy, as_seen_by_code, library_of
from pipeline.runtime.interface.signature import ParameterSource
from pipeline.targets.common.module_summary import check_messages, entry_names, sources_of


@dataclass(frozen=True)
class Call:
    """What a module is run on.

    Attributes:
        arguments: of the call, by their numbers; arrays and numbers, complex tensors as pairs.
        weights: the tensors of the model, by name.
        seed: what its random numbers are a function of.
    """

    arguments: Mapping[int, Any]
    weights: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0


@dataclass(frozen=True)
class Trace:
    """What an interpretation computed.

    Attributes:
        results: of @main, numbers as arrays of no dims.
        prepared: the results of @prepare.
        values: of all values of @main.
    """

    results: list[np.ndarray]
    prepared: list[np.ndarray]
    values: dict[ir.Value, Any]


#: Where the parameters of @main and @prepare come from.
Sources = Mapping[str, tuple[ParameterSource, ...]]


def sources_in(module: ir.Module) -> Sources:
    """What the marks on parameters say, as long as these are there: until results have memory of the caller's."""
    return {name: sources_of(function(module, name)) for name in entry_names(module)}


def trace(module: ir.Module, call: Call, exact: bool = False, sources: Sources | None = None) -> Trace:
    """Runs @prepare, if there is one, and @main; floats in float64 unless `exact`.

    Args:
        sources: of the first parameters, for when they are not marked any more; the others are memory for results.

    Raises:
        UnknownOp: the module has an op that the interpreter does not know; names it.
        FailedCheck: a check of the program fails, or it reads outside of a tensor.
    """
    functions = {symbol_name(op): op for op in _functions(module)}
    if "main" not in functions:
        raise PipelineError("the module has no function @main")
    interpretation = Interpretation(functions, Precision(exact))
    is_marked = sources is None or PLACES_OF_RESULTS not in functions["main"].attributes
    known = sources_in(module) if sources is None or is_marked else sources
    with module.context, np.errstate(all="ignore"):
        prepared: list[np.ndarray] = []
        if "prepare" in functions:
            prepared, _ = _run(functions["prepare"], interpretation, call, [], known["prepare"])
        results, values = _run(functions["main"], interpretation, call, prepared, known["main"])
    return Trace(results, prepared, values)


def outcome(module: ir.Module, call: Call, exact: bool = False, sources: Sources | None = None) -> RunResults:
    """What becomes of a run: the results, or the check that failed."""
    try:
        return RunResults(tuple(trace(module, call, exact, sources).results))
    except FailedCheck as failed:
        return RunResults(failure=str(failed))


def _functions(module: ir.Module) -> list[ir.Operation]:
    ops = (op.operation for op in module.body.operations)
    return [op for op in ops if op.name == "func.func"]


def _run(
    entry: ir.Operation,
    interpretation: Interpretation,
    call: Call,
    prepared: Sequence[np.ndarray],
    sources: Sequence[ParameterSource],
) -> tuple[list[np.ndarray], dict[ir.Value, Any]]:
    """The results and all values of an entry; raises `FailedCheck` if one of its checks leaves its number."""
    name = symbol_name(entry)
    kinds = list(ir.FunctionType(ir.TypeAttr(entry.attributes["function_type"]).value).inputs)
    memory = [ParameterSource("workspace")] * (len(kinds) - len(sources))
    arguments = []
    for number, (kind, source) in enumerate(zip(kinds, [*sources, *memory], strict=True)):
        given = value_of(source, call, prepared) if source.kind in _GIVEN else np.zeros(_known_sizes(kind), np.int64)
        if given is None:
            raise PipelineError(f"{source.kind} {source.name or source.index} of @{name}: no value is given for it")
        arguments.append(_held(interpretation.precision, given, kind, f"argument {number} of @{name}"))
    results, values = interpretation.traced(name, arguments)
    for source, value in zip(sources, arguments, strict=False):
        if source.kind == "status" and value.any():
            raise FailedCheck(check_messages(entry.parent)[int(value[0]) - 1])
    if PLACES_OF_RESULTS in entry.attributes:
        return _in_their_places(entry, results, arguments), values
    return results, values


def _in_their_places(
    entry: ir.Operation, results: Sequence[np.ndarray], arguments: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """All results in order, those among them that lie in memory of the caller's."""
    places = places_of_results(entry)
    returned, written = iter(results), iter(arguments[len(arguments) - places.count("parameter") :])
    updated = {update.number: arguments[update.argument.arg_number] for update in updates_of(entry, IN_PLACE)}
    return [
        updated[number] if place == "argument" else next(written if place == "parameter" else returned)
        for number, place in enumerate(places)
    ]


#: The kinds of parameters that a call has values for; the others are memory for what the code itself leaves there.
_GIVEN = ("argument", "weight", "prepared", "seed")


def _known_sizes(kind: ir.Type) -> list[int]:
    memory = ir.MemRefType(kind)
    return [0 if memory.is_dynamic_dim(dim) else memory.get_dim_size(dim) for dim in range(memory.rank)]


def value_of(source: ParameterSource, call: Call, prepared: Sequence[np.ndarray]) -> Any:
    """The value of a parameter; None where the call has none."""
    if source.kind == "argument":
        return call.arguments.get(source.index)
    if source.kind == "weight":
        return call.weights.get(source.name)
    if source.kind == "prepared":
        return prepared[source.index]
    return call.seed if source.kind == "seed" else None


def _held(precision: Precision, given: Any, kind: ir.Type, what: str) -> np.ndarray:
    """An array or a number as it is held for a type of MLIR's."""
    array = np.asarray(given)
    if isinstance(kind, ir.ShapedType):
        wanted = [None if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim) for dim in range(kind.rank)]
        fits = len(wanted) == array.ndim and all(
            want in (None, size) for want, size in zip(wanted, array.shape, strict=True)
        )
        if not fits:
            raise PipelineError(f"{what}: expected {kind}, got {array.dtype}{list(array.shape)}")
    return precision.held(array, kind).copy()


def interpret_text(
    module: str | Path, args: Sequence[Any], weights: Mapping[str, Any], exact: bool
) -> tuple[np.ndarray, ...]:
    """See `pipeline.debug.interpret`."""
    text, name = (str(module), "MLIR text")
    if isinstance(module, Path) or (text.endswith(".mlir") and "\n" not in text):
        try:
            text, name = Path(module).read_text(), str(module)
        except (OSError, UnicodeDecodeError) as error:
            raise PipelineError(f"{module}: cannot be read: {error}") from None
    call = Call(dict(enumerate(map(as_mlir, args))), {key: as_mlir(value) for key, value in weights.items()})
    parsed = parse(text, context(), name)
    if not weights and "prepare" not in entry_names(parsed):
        main = function(parsed, "main")
        if "arg_attrs" in main.attributes:
            del main.attributes["arg_attrs"]
    return tuple(trace(parsed, call, exact).results)


def as_mlir(value: Any) -> np.ndarray:
    """A tensor or number as an array of what MLIR has: complex numbers as pairs, no unsigned integers."""
    array = np.asarray(value) if library_of(value) is None else as_seen_by_code(as_numpy(value))
    return array.view(f"i{array.dtype.itemsize}") if array.dtype.kind == "u" else array
