"""What differs between two texts of a function, so that people can read it.

Values are named after the nodes of the model (`%relu_1`); the numbers behind the names change with every value in
front, so lines that differ in those alone are equal.
"""

from __future__ import annotations

import difflib
import re

from pipeline.report.recording import FunctionChange

#: Lines around a difference.
_CONTEXT = 2

#: Of one function and pass.
_MOST_LINES = 240

#: Longer lines are cut: types of many results, dense constants.
_LONGEST = 400

#: Comparing line by line takes time that grows with the square of their number.
_COMPARED = 1500


def change(function: str, before: str, after: str) -> FunctionChange | None:
    """What differs; None if nothing does but numbers of values."""
    old, new = before.splitlines(), after.splitlines()
    old_keys, new_keys = ([_key(line) for line in lines] for lines in (old, new))
    start = _common(old_keys, new_keys)
    end = _common(old_keys[start:][::-1], new_keys[start:][::-1])
    first, last = old_keys[start : len(old) - end], new_keys[start : len(new) - end]
    if not first and not last:
        return None
    if max(len(first), len(last)) > _COMPARED:
        return _rewritten(function, old[start : len(old) - end], new[start : len(new) - end])
    lines: list[str] = []
    added = removed = 0
    matcher = difflib.SequenceMatcher(None, first, last, autojunk=len(first) > 200)
    for number, group in enumerate(matcher.get_grouped_opcodes(0)):
        lines += ["@"] * bool(number)
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                continue
            i1, i2, j1, j2 = i1 + start, i2 + start, j1 + start, j2 + start
            lines += _marked(" ", new[max(0, j1 - _CONTEXT) : j1])
            lines += [*_marked("-", old[i1:i2]), *_marked("+", new[j1:j2])]
            lines += _marked(" ", new[j2 : j2 + _CONTEXT])
            added, removed = added + j2 - j1, removed + i2 - i1
    return FunctionChange(function, added, removed, tuple(lines[:_MOST_LINES]), max(0, len(lines) - _MOST_LINES))


def _rewritten(function: str, old: list[str], new: list[str]) -> FunctionChange:
    """Of texts that are too long to compare: where each of them begins."""
    half = _MOST_LINES // 2
    lines = (*_marked("-", old[:half]), *_marked("+", new[:half]))
    return FunctionChange(function, len(new), len(old), lines, len(old) + len(new) - len(lines))


def _key(line: str) -> str:
    """The line without the numbers of its values."""
    return re.sub(r"%([A-Za-z_][\w$.]*?)?(_?\d+)?(?=[^\w$.]|$)", r"%\1", line)


def _common(first: list[str], second: list[str]) -> int:
    """How many lines both begin with."""
    pairs = zip(first, second, strict=False)
    return next((number for number, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def _marked(mark: str, lines: list[str]) -> list[str]:
    return [mark + (line if len(line) <= _LONGEST else line[:_LONGEST] + " …") for line in lines]
