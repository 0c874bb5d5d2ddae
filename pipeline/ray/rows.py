"""A model that is called on the rows of a table: columns to arguments, any number of rows, results to columns.

A model that was compiled for batches of one size is called on pieces of that size, and the last piece is filled up.
What fills it may not change the results of the other rows: that is checked once a model, by filling it up in two ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.errors import ArgumentError, PipelineError
from pipeline.runtime.call.numpy_arrays import NumpyArrays
from pipeline.runtime.executable import Executable
from pipeline.runtime.interface.pytree import flatten, leaf_paths, unflatten
from pipeline.runtime.interface.signature import Argument, Result, Signature, TensorType
from pipeline.runtime.interface.small_floats import SMALL_FLOATS, as_doubles

Columns = Sequence[str] | Mapping[str, str] | None
Table = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class RowPlan:
    """Which columns a model reads and makes.

    Attributes:
        signature: the model's.
        columns: what was asked for, see `columns_of`.
        outputs: the names of the columns that it makes.
        size: the rows of the batches that it was compiled for; None for any number.
    """

    signature: Signature
    columns: Columns
    outputs: tuple[str, ...]
    size: int | None

    @staticmethod
    def of(signature: Signature, columns: Columns = None, outputs: Sequence[str] | None = None) -> RowPlan:
        """The plan for a model; raises `ArgumentError` where it does not take rows, or the names do not fit it."""
        if isinstance(columns, str) or isinstance(outputs, str):
            raise ArgumentError("columns and outputs: expected lists of names, got a string")
        names = tuple(outputs) if outputs is not None else tuple(_output_names(signature))
        wanted = len(_computed(signature))
        if len(names) != wanted or len(set(names)) != wanted:
            raise ArgumentError(f"outputs: expected {wanted} different names, got {', '.join(names) or 'none'}")
        plan = RowPlan(signature, columns, names, _rows_of(signature))
        if columns is not None:
            plan.columns_of(None)
        return plan

    def columns_of(self, present: Sequence[str] | None) -> dict[str, str]:
        """The column of each argument: as asked for, or the columns that are called like the arguments.

        A model of one argument reads the only column of a table that has only one. `present` are the columns that there
        are, None where that is not known. Raises `ArgumentError` if that does not say it.
        """
        arguments = [argument.name for argument in _tensors(self.signature)]
        takes = f"the model takes {', '.join(arguments)}"
        if self.columns is None:
            assert present is not None
            if not set(arguments) <= set(present) and len(arguments) == len(present) == 1:
                return {arguments[0]: present[0]}
            found = {name: name for name in arguments}
        elif isinstance(self.columns, Mapping):
            found = dict(self.columns)
        else:
            found = dict(zip(arguments, self.columns, strict=False))
        if found.keys() != set(arguments) or len(self.columns or found) != len(arguments):
            raise ArgumentError(f"columns: {takes}; expected a column for each, got {self.columns}")
        missing = [] if present is None else [column for column in found.values() if column not in present]
        if missing:
            has = f"the columns are {', '.join(present or ())}"
            raise ArgumentError(f"column {missing[0]}: there is none; {takes}, {has}: say columns={{argument: column}}")
        return found


class RowModel:
    """A model that is called on tables, see the module's docstring. One thread calls it at a time."""

    def __init__(self, executable: Executable, plan: RowPlan):
        self.plan = plan
        self._executable = executable
        self._arguments = _tensors(plan.signature)
        self._is_checked = False

    def __call__(self, table: Table) -> dict[str, np.ndarray]:
        """The columns that the model makes of a table's.

        Raises:
            ArgumentError: a column is missing, or is not what the model takes; names the column.
            PipelineError: a result has not one row for each row, or rows depend on each other.
        """
        read = self.plan.columns_of(list(table))
        arrays = [_checked(argument, read[argument.name], table) for argument in self._arguments]
        rows = len(arrays[0])
        for argument, array in zip(self._arguments, arrays, strict=True):
            if len(array) != rows:
                raise ArgumentError(f"column {read[argument.name]}: has {len(array)} rows, expected {rows}")
        pieces = [self._piece([array[first:last] for array in arrays], read) for first, last in self._pieces(rows)]
        return {name: _joined([piece[number] for piece in pieces]) for number, name in enumerate(self.plan.outputs)}

    def checked_row(self, row: Table) -> dict[str, np.ndarray]:
        """One row, an array for each column, in the order of the arguments; raises `ArgumentError` as a call does."""
        read = self.plan.columns_of(list(row))
        table = {name: np.asarray(array)[None] for name, array in row.items()}
        return {read[one.name]: _checked(one, read[one.name], table)[0] for one in self._arguments}

    def _pieces(self, rows: int) -> Iterator[tuple[int, int]]:
        """The first and the last row, exclusively, of what a call takes; none of no rows."""
        size = self.plan.size or max(rows, 1)
        yield from ((first, min(first + size, rows)) for first in range(0, rows or 1, size))

    def _piece(self, arrays: list[np.ndarray], read: Mapping[str, str]) -> list[np.ndarray]:
        rows = len(arrays[0])
        if not rows:
            return [_nothing(_type_of(result, self.plan.signature)) for result in _computed(self.plan.signature)]
        missing = (self.plan.size or rows) - rows
        if not missing:
            return self._call(arrays, rows, read)
        filled = self._call([_filled(array, array[-1:], missing) for array in arrays], rows, read)
        if not self._is_checked:
            differs = any(array[0].tobytes() != array[-1].tobytes() for array in arrays)
            other = [_filled(array, array[:1] if differs else np.zeros_like(array[:1]), missing) for array in arrays]
            self._check(filled, self._call(other, rows, read), rows)
        return filled

    def _check(self, results: list[np.ndarray], others: list[np.ndarray], rows: int) -> None:
        """Raises `PipelineError` where the results differ, which are of the same rows beside other ones."""
        for name, one, other in zip(self.plan.outputs, results, others, strict=True):
            if one.tobytes() != other.tobytes():
                raise PipelineError(
                    f"output {name}: rows of a batch depend on each other, so that one of {rows} rows cannot be filled "
                    f"up to the {self.plan.size} that the model was compiled for; compile it with dynamic_shapes"
                )
        self._is_checked = True

    def _call(self, arrays: list[np.ndarray], rows: int, read: Mapping[str, str]) -> list[np.ndarray]:
        """Calls the model; the results' first rows."""
        signature, total = self.plan.signature, len(arrays[0])
        given = iter(arrays)
        leaves = [next(given) if one.kind == "tensor" else one.value for one in signature.arguments]
        args, kwargs = unflatten(signature.argument_tree, iter(leaves))
        try:
            value = self._executable(*args, **kwargs)
        except ArgumentError as error:
            columns = ", ".join(f"{column} for {name}" for name, column in read.items() if column != name)
            raise ArgumentError(f"{error} (column {columns})" if columns else str(error)) from None
        found = flatten(signature.result_tree, value)
        kept = [leaf for leaf, result in zip(found, signature.results, strict=True) if _is_column(result)]
        for name, leaf in zip(self.plan.outputs, kept, strict=True):
            if np.shape(leaf)[:1] != (total,):
                raise PipelineError(
                    f"output {name}: expected a row for each of the {total} rows of a batch, got {_kind(leaf)}"
                )
        return [_storable(leaf[:rows]) for leaf in kept]


def _tensors(signature: Signature) -> list[Argument]:
    return [argument for argument in signature.arguments if argument.kind == "tensor"]


def _is_column(result: Result) -> bool:
    return result.kind != "constant"


def _computed(signature: Signature) -> list[Result]:
    return [result for result in signature.results if _is_column(result)]


def _rows_of(signature: Signature) -> int | None:
    """The size of the first dim of all arguments, None where it is free; raises `ArgumentError` if there is no such."""
    arguments = _tensors(signature)
    numbers = [argument.name for argument in signature.arguments if argument.kind == "int"]
    if not arguments or numbers:
        raise ArgumentError(
            f"the model takes {'the number ' + numbers[0] if numbers else 'no tensor'}: no table has that"
        )
    sizes: dict[int | str, str] = {}
    for argument in arguments:
        assert argument.type is not None
        if not argument.type.shape:
            raise ArgumentError(f"argument {argument.name}: {argument.type} has no rows")
        sizes.setdefault(argument.type.shape[0], argument.name)
    if len(sizes) > 1:
        said = ", ".join(f"{name} has {size}" for size, name in sizes.items())
        raise ArgumentError(f"the arguments of the model have different numbers of rows: {said}")
    (size,) = sizes
    return size if isinstance(size, int) else None


def _output_names(signature: Signature) -> Iterator[str]:
    """`output`, `output_0`, or the key of a dict."""
    paths = leaf_paths(signature.result_tree)
    for path, result in zip(paths, signature.results, strict=True):
        if _is_column(result):
            words = re.findall(r"\w+", path)
            yield "_".join(words if words and not words[0].isdigit() else ["output", *words])


def _checked(argument: Argument, column: str, table: Table) -> np.ndarray:
    """The column for an argument; raises `ArgumentError` if it is of another dtype, or its rows of another shape."""
    array, wanted = table[column], argument.type
    assert wanted is not None
    if not isinstance(array, np.ndarray) or array.dtype == object:
        raise ArgumentError(f"column {column}: its rows have different shapes or no numbers; expected {_rows(wanted)}")
    sizes = zip(array.shape[1:], wanted.shape[1:], strict=False)
    fits = array.ndim == len(wanted.shape) and all(isinstance(want, str) or size == want for size, want in sizes)
    if not fits or array.dtype != NumpyArrays.dtypes[wanted.dtype]:
        raise ArgumentError(f"column {column}: expected {_rows(wanted)} for {argument.name}, got rows of {_row(array)}")
    return array.copy() if argument.mutated else array


def _rows(kind: TensorType) -> str:
    return f"rows of {TensorType(kind.dtype, kind.shape[1:])}"


def _row(array: np.ndarray) -> TensorType:
    return TensorType(NumpyArrays().dtype(array), array.shape[1:])


def _kind(leaf: Any) -> str:
    return str(TensorType(NumpyArrays().dtype(leaf), leaf.shape)) if isinstance(leaf, np.ndarray) else f"{leaf!r:.40}"


def _filled(array: np.ndarray, row: np.ndarray, count: int) -> np.ndarray:
    """`count` more rows at the end."""
    return np.concatenate([array, np.repeat(row, count, axis=0)])


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _type_of(result: Result, signature: Signature) -> TensorType:
    kind = signature.arguments[result.index].type if result.kind == "argument" else result.type
    return kind or TensorType("int64", ("rows",))


def _nothing(kind: TensorType) -> np.ndarray:
    """No rows of a result."""
    sizes = (size if isinstance(size, int) else 0 for size in kind.shape[1:])
    return _storable(np.empty((0, *sizes), NumpyArrays.dtypes[kind.dtype]))


def _storable(array: np.ndarray) -> np.ndarray:
    """Tables have neither bfloat16 nor float8: such numbers become float32, which has them all."""
    return as_doubles(array).astype(np.float32) if array.dtype in SMALL_FLOATS.values() else array
