r"""Checks diagnostics against what comments in the input expect, as mlir-opt's `--verify-diagnostics` does.

    // expected-error @+1 {{part of the message}}
    // expected-remark-re @below {{took {{[0-9]+}} steps}}

The severity is error, warning, remark or note. A comment stands on the line that it is about, or says where that is:
`@+n`, `@-n`, `@above`, `@below` (past other such comments), `@unknown` for a diagnostic without position. Each comment
has to match one diagnostic, and each diagnostic that is no note has to match one comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pipeline.diagnostics import Diagnostic
from pipeline.tools.source import NamedText

_COMMENT = re.compile(
    r"expected-(error|warning|remark|note)(-re)?\s*(?:@([+-]\d+|above|below|unknown))?\s*\{\{(.*)\}\}\s*$"
)


@dataclass(frozen=True)
class Expectation:
    """One comment: a diagnostic of this severity has to say this on this line (0: nowhere)."""

    severity: str
    line: int
    pattern: re.Pattern[str]
    said: str
    comment_line: int

    def matches(self, found: Diagnostic) -> bool:
        """Whether `found` is what is expected."""
        return (found.severity, found.line) == (self.severity, self.line) and bool(self.pattern.search(found.message))


def check(source: NamedText, found: Iterable[Diagnostic]) -> list[str]:
    """What is wrong with the diagnostics `found` in `source`, one line each; empty if all is as expected."""
    open_ = list(_expectations(source.text))
    problems = []
    for diagnostic in _with_notes(found):
        match = next((expectation for expectation in open_ if expectation.matches(diagnostic)), None)
        if match:
            open_.remove(match)
        elif diagnostic.severity != "note":
            place = diagnostic.place or source.name
            problems.append(f"{place}: unexpected {diagnostic.severity}: {_first_line(diagnostic.message)}")
    for expectation in open_:
        place = f"{source.name}:{expectation.comment_line}"
        problems.append(f'{place}: expected {expectation.severity} "{expectation.said}" was not produced')
    return problems


def _with_notes(found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    for diagnostic in found:
        yield diagnostic
        yield from _with_notes(diagnostic.notes)


def _expectations(text: str) -> Iterator[Expectation]:
    comments = [(number, _COMMENT.search(line)) for number, line in enumerate(text.split("\n"), 1)]
    commented = {number for number, match in comments if match}
    for number, match in comments:
        if match:
            severity, is_regex, where, said = match.groups()
            line = _target(number, where, commented)
            yield Expectation(severity, line, _pattern(said, bool(is_regex)), said, number)


def _target(number: int, where: str | None, commented: set[int]) -> int:
    """The line that a comment on line `number` is about."""
    if where is None:
        return number
    if where == "unknown":
        return 0
    if where in ("above", "below"):
        step = 1 if where == "below" else -1
        number += step
        while number in commented:
            number += step
        return number
    return number + int(where)


def _pattern(said: str, is_regex: bool) -> re.Pattern[str]:
    """Plain text, in which, if it is a regex, the parts in `{{...}}` are regular expressions."""
    if not is_regex:
        return re.compile(re.escape(said))
    pieces = re.split(r"\{\{(.*?)\}\}", said)
    return re.compile("".join(piece if odd % 2 else re.escape(piece) for odd, piece in enumerate(pieces)))


def _first_line(message: str) -> str:
    return message.partition("\n")[0]
