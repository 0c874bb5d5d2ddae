"""The options of a pass: dataclass fields on one side, `name=value` text on the other.

In text an option is called as its field is, with `-` for `_`. Values are separated by white space; one that holds
white space, commas or braces is put in quotes or braces; a list is `1,2,3`; a bare name is `true`. That is what MLIR's
own passes take too.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pipeline.errors import OptionError

_SCALARS = (bool, int, float, str)
_TRUTH = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class Option:
    """One option of a pass.

    Attributes:
        name: what text calls it.
        field: the dataclass field.
        type: `bool`, `int`, `float` or `str`; of the elements where `is_list`.
        is_list: whether it takes a tuple of values.
        default: the value where text names none.
        help: what it does.
    """

    name: str
    field: str
    type: type
    is_list: bool
    default: Any
    help: str

    @property
    def metavar(self) -> str:
        """The kind of value, for help texts: `int`, `str,...`."""
        return self.type.__name__ + ",..." * self.is_list

    def parse(self, text: str) -> Any:
        """The value that `text` says; raises `OptionError` if it is not of the option's type."""
        if self.is_list:
            return tuple(self._scalar(_unquoted(piece)) for piece in split(_unquoted(text), lambda c: c == ","))
        return self._scalar(_unquoted(text))

    def _scalar(self, text: str) -> Any:
        try:
            return _TRUTH[text.lower()] if self.type is bool else self.type(text)
        except (KeyError, ValueError):
            raise OptionError(f"option '{self.name}' takes {self.metavar}, not '{text}'") from None

    def format_default(self) -> str:
        """The default as text, for help."""
        return self.format(self.default).partition("=")[2]

    def format(self, value: Any) -> str:
        """`name=value` such that `parse` gives `value` again."""
        if self.is_list:
            return f"{self.name}={{{','.join(map(_quoted, value))}}}"
        return f"{self.name}={_quoted(value)}"


@functools.cache
def options_of(cls: type) -> dict[str, Option]:
    """The options of a pass class by name; raises `OptionError` for a field that cannot be one."""
    hints = typing.get_type_hints(cls)
    options = {}
    for field in dataclasses.fields(cls):
        name = field.name.replace("_", "-")
        kind, is_list = hints[field.name], False
        if typing.get_origin(kind) is tuple and typing.get_args(kind)[1:] == (Ellipsis,):
            kind, is_list = typing.get_args(kind)[0], True
        if kind not in _SCALARS:
            raise OptionError(
                f"option '{name}' of {cls.__name__} is none of bool, int, float, str or a tuple[..., ...]"
            )
        if field.default is dataclasses.MISSING:
            raise OptionError(f"option '{name}' of {cls.__name__} needs a default")
        options[name] = Option(name, field.name, kind, is_list, field.default, field.metadata.get("help", ""))
    return options


def parse_options(text: str, options: dict[str, Option]) -> dict[str, Any]:
    """Field values from `a=1 b={x y}`; raises `OptionError` for an unknown option or a wrong value."""
    values = {}
    for piece in split(text, str.isspace):
        name, equals, value = piece.partition("=")
        if name not in options:
            raise OptionError(f"no option '{name}'{nearest(name, options)}")
        values[options[name].field] = options[name].parse(value if equals else "true")
    return values


def split(text: str, is_separator: Callable[[str], bool]) -> list[str]:
    """The pieces of `text` between separators that are in neither quotes nor braces; empty pieces are dropped."""
    pieces, start, depth = [], 0, 0
    for index, char, depth in scan(text):
        if depth == 0 and is_separator(char):
            pieces.append(text[start:index])
            start = index + 1
    if depth:
        raise OptionError(f"unbalanced braces in '{text}'")
    return [piece for piece in [*pieces, text[start:]] if piece]


def scan(text: str, start: int = 0) -> Iterator[tuple[int, str, int]]:
    """The characters of `text` outside of quotes: index, character, and how deep in braces one is after it."""
    depth, quote = 0, ""
    for index in range(start, len(text)):
        char = text[index]
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        else:
            depth += (char == "{") - (char == "}")
            yield index, char, depth
    if quote:
        raise OptionError(f"unbalanced quotes in '{text[start:]}'")


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the name nearest to `name`, empty if none is near."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


def _quoted(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    if text and not any(char.isspace() or char in "\"'{},=" for char in text):
        return text
    quote = "'" if '"' in text else '"'
    if quote in text:
        raise OptionError(f"an option's value cannot hold both kinds of quotes: {text}")
    return f"{quote}{text}{quote}"


def _unquoted(text: str) -> str:
    quotes = {'"': '"', "'": "'", "{": "}"}
    if len(text) >= 2 and quotes.get(text[0]) == text[-1]:
        return text[1:-1]
    return text
