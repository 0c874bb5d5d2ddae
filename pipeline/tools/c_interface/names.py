"""Names in C for arguments and results of models."""

from __future__ import annotations

import re

from pipeline.runtime.native.linker import library_of

#: What may not be a parameter's name: words of C and C++, and what the functions of the header call their own.
_TAKEN = frozenset(
    """
    alignas alignof and asm auto bool break case catch char class const continue default delete do double else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new not nullptr operator or
    private protected public register restrict return short signed sizeof static struct switch template this throw true
    try typedef typename union unsigned using virtual void volatile wchar_t while xor model slots status expected first
    second team linux unix errno stdin stdout stderr NULL free memcpy sysconf
    """.split()  # noqa: SIM905 - a table to be read
)


class Names:
    """Gives each thing a name that nothing else has."""

    def __init__(self) -> None:
        self._taken = set(_TAKEN)

    def take(self, path: str) -> str:
        """An identifier like a path of a model's argument: `batch_ids` for `batch['ids']`."""
        name = re.sub(r"[^A-Za-z0-9]+", "_", path).strip("_") or "value"
        if name[0].isdigit():
            name = f"x{name}"
        while name in self._taken or name.startswith(("size_", "kept_")):
            name = f"p_{name}"
        self._taken.add(name)
        return name


def prefix_of(file: str) -> str:
    """What the names of a file's functions begin with, which is the name of a type, too; none of C's own."""
    prefix = re.sub(r"\W", "_", file.partition(".")[0], flags=re.ASCII)
    is_free = prefix and not prefix[0].isdigit() and prefix not in _TAKEN and library_of(prefix) is None
    return prefix if is_free else f"model_{prefix}"
