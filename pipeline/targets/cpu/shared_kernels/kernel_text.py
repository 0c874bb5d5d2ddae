"""Which kernels of a module may share code, and by what they are known to be equal."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.ir.kernels import kernel_kind
from pipeline.mlir import callee, ir, ops_of, symbol_name, walk

_SYMBOL = re.compile(r"@(\w+)")

#: What else the code depends on than the text of functions.
_OUTSIDE = ("memref.get_global",)


@dataclass(frozen=True)
class ShareableKernel:
    """A kernel that only reads what it is given.

    Attributes:
        names: what it is called in its module, and what the kernels that it calls are.
        kind: see `kernel_kind`.
        locations: for each of these those of its ops, in their order: as many as others with the same key have.
        once: whether only @prepare calls it; it is compiled faster then, and may be slower.
        key: equal for kernels that become equal code.
    """

    names: tuple[str, ...]
    kind: str
    locations: tuple[tuple[ir.Location, ...], ...]
    once: bool
    key: str

    @property
    def name(self) -> str:
        """What the kernel itself is called in its module."""
        return self.names[0]

    @property
    def code_name(self) -> str:
        """What its code is called, by the text alone: in another module the kernel may have another name."""
        return f"{self.kind}.{self.key[:16]}"


def shareable_kernels(module: ir.Operation, how: str) -> list[ShareableKernel]:
    """The kernels that @main and @prepare call, and that may share code; `how` says what is made of kernels."""
    functions = {symbol_name(function): function for function in walk(module, "func.func")}
    callers: dict[str, list[str]] = {}
    for caller, function in functions.items():
        if kernel_kind(function) is None:
            for call in walk(function, "func.call"):
                callers.setdefault(callee(call), []).append(caller)
    found = []
    for name, names in callers.items():
        members = _members(name, functions)
        if members is not None:
            once = set(names) == {"prepare"}
            text = f"{how}\n{once}\n{_canonical_text(members)}"
            locations = tuple(tuple(op.location for op in ops_of(member)) for member in members)
            own = tuple(map(symbol_name, members))
            key = hashlib.sha256(text.encode()).hexdigest()
            found.append(ShareableKernel(own, str(kernel_kind(members[0])), locations, once, key))
    return found


def _members(name: str, functions: Mapping[str, ir.Operation]) -> tuple[ir.Operation, ...] | None:
    """A kernel and those that it calls; None if that is all not known from their text."""
    names = [name]
    for member in names:
        function = functions[member]
        if kernel_kind(function) is None or not len(function.regions[0].blocks) or walk(function, *_OUTSIDE):
            return None
        names += [inner for call in walk(function, "func.call") if (inner := callee(call)) not in names]
    return tuple(functions[member] for member in names)


def _canonical_text(members: Sequence[ir.Operation]) -> str:
    """The text of kernels that are called by their numbers in it."""
    numbers = {symbol_name(member): str(number) for number, member in enumerate(members)}
    text = "\n".join(map(str, members))
    return _SYMBOL.sub(lambda match: f"@{numbers.get(match[1], match[1])}", text)
