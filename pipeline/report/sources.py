"""The files of a model's source, as far as a report shows them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

#: Of longer files only what lies around the lines that matter is kept.
_WHOLE = 3000
_AROUND = 25


def files_of(lines: Iterable[str | None]) -> dict[str, Any]:
    """The text of the files that `file.py:12` and the like name: `{file: {"lines": {number: text}}}`.

    Files that cannot be read are left out: a model may come from another machine.
    """
    wanted: dict[str, set[int]] = {}
    for line in filter(None, lines):
        file, _, number = line.rpartition(":")
        if number.isdecimal():
            wanted.setdefault(file, set()).add(int(number))
    found = {}
    for file, numbers in sorted(wanted.items()):
        try:
            text = Path(file).read_text(errors="replace").splitlines()
        except OSError:
            continue
        found[file] = {"lines": _chosen(text, numbers)}
    return found


def _chosen(text: list[str], numbers: set[int]) -> dict[int, str]:
    if len(text) <= _WHOLE:
        return dict(enumerate(text, 1))
    near = {line for number in numbers for line in range(number - _AROUND, number + _AROUND + 1)}
    return {number: text[number - 1] for number in sorted(near) if 0 < number <= len(text)}
