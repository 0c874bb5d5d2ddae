"""What models read besides tokens, as callers give it: images, the features of speech."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pipeline.errors import ArgumentError
from pipeline.generation.prompt import Prompt, filled_up
from pipeline.runtime.call.array_libraries import as_numpy, library_of
from pipeline.runtime.executable import Executable

#: What the argument of an entry is called that has these, by name.
_ARGUMENT = re.compile(r"inputs\['(.*)'\]")


#: So many characters of numbers are in an error.
_SHOWN = 120


@dataclass(frozen=True)
class ExpectedInputs:
    """What the example that a model was compiled with says of what is read besides tokens.

    Attributes:
        placeholders: how often a row has tokens in whose places that stands.
        sizes: what says sizes, by name, for a row; it is in the code.
    """

    placeholders: Mapping[int, int] = field(default_factory=dict)
    sizes: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """What `of_json` makes this of."""
        return {"placeholders": list(self.placeholders.items()), "sizes": dict(self.sizes)}

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> ExpectedInputs:
        """The inverse of `to_json`."""
        return cls(dict(found["placeholders"]), found["sizes"])


class Inputs:
    """What an entry reads besides tokens, for `batch` rows.

    Attributes:
        expected: what the example says of it.
    """

    def __init__(self, entry: Executable, batch: int, expected: ExpectedInputs):
        self._batch, self.expected = batch, expected
        types = {
            found[1]: argument.type
            for argument in entry.signature.arguments
            if argument.type is not None and (found := _ARGUMENT.fullmatch(argument.name))
        }
        self._shapes = {name: kind.shape for name, kind in types.items()}
        self._sizes = {name: int(kind.shape[0]) for name, kind in types.items()}
        self._by_token = {name for name, kind in types.items() if any(isinstance(size, str) for size in kind.shape)}

    @property
    def names(self) -> Sequence[str]:
        """By which callers give them."""
        return (*self._sizes, *self.expected.sizes)

    def shape(self, name: str) -> Sequence[Any]:
        """The sizes of what is read by a name, for all rows."""
        return self._shapes[name]

    def taken(self, given: Mapping[str, Any], copies: int) -> tuple[int, dict[str, np.ndarray]]:
        """How many rows a caller has given, and what the entry takes; each row `copies` times.

        Raises:
            ArgumentError: one is missing or no tensor, or they are not for as many rows.
        """
        for name in given.keys() - set(self.names):
            raise ArgumentError(f"{name}: the model was compiled for {', '.join(self.names)} alone")
        rows: dict[str, int] = {}
        arrays = {}
        for name, size in self._sizes.items():
            array = rows_of(name, given.get(name))
            of_row = size // self._batch
            count, rest = divmod(len(array), of_row)
            if rest or not 1 <= count * copies <= self._batch:
                raise ArgumentError(
                    f"{name}: expected {of_row} for each of {self._batch // copies} rows at most, got {len(array)}"
                )
            rows[name] = count
            by_rows = np.repeat(array.reshape(count, of_row, *array.shape[1:]), copies, 0)
            arrays[name] = filled_up(by_rows, self._batch).reshape(size, *array.shape[1:])
        if len(set(rows.values())) != 1:
            raise ArgumentError(f"{', '.join(rows)}: expected as many rows of each, got {list(rows.values())}")
        return next(iter(rows.values())), arrays

    def beside(self, prompt: Prompt, given: Mapping[str, Any], copies: int) -> Prompt:
        """A prompt with what a caller has given beside it.

        Raises:
            ArgumentError: as `taken`; or the prompt has not the tokens in whose places these stand.
        """
        if not given.keys() - self._by_token and not any(rows_of(*item).any() for item in given.items()):
            return prompt  # of a processor that says of each token that it is none of an image's
        count, arrays = self.taken(given, copies)
        self._check_sizes(given, count)
        rows, length = prompt.given.shape
        if count * copies != rows:
            raise ArgumentError(f"{', '.join(arrays)}: expected {rows // copies} rows, as input_ids has, got {count}")
        for name in self._by_token:
            if arrays[name].shape[1:] != (length,):
                raise ArgumentError(
                    f"{name}: expected {length} for each row, as input_ids has, got {list(arrays[name].shape[1:])}"
                )
            arrays[name] = np.pad(arrays[name], ((0, 0), (prompt.length - length, 0)))
        for token, number in self.expected.placeholders.items():
            found = (prompt.given == token).sum(1)
            if (found != number).any():
                raise ArgumentError(
                    f"input_ids: expected {number} times token {token}, in whose places {', '.join(arrays)} stand, in "
                    f"each row, got {found[::copies].tolist()}"
                )
        return replace(prompt, inputs=arrays)

    def _check_sizes(self, given: Mapping[str, Any], rows: int) -> None:
        """Raises `ArgumentError` if what is read has other sizes than the example."""
        for name, of_row in self.expected.sizes.items():
            numbers = rows_of(name, given.get(name)).tolist()
            if numbers != [*of_row] * rows:
                compiled, got = (textwrap.shorten(str(found), _SHOWN) for found in ([*of_row], numbers))
                raise ArgumentError(
                    f"{name}: the model was compiled for {compiled} of each row, got {got}: compile it with an example "
                    "of that size"
                )


def rows_of(name: str, value: Any) -> np.ndarray:
    """A tensor of a caller, as an array; raises `ArgumentError` if it is none, or has no rows."""
    array = None if library_of(value) is None else as_numpy(value)
    if array is None or not array.ndim:
        raise ArgumentError(f"{name}: expected a tensor for all rows, got {type(value).__name__}")
    return array
