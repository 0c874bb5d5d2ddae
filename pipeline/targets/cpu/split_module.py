"""Splits LLVM IR text, as MLIR prints it, into texts that can be compiled side by side, and each in its way."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pipeline.targets.cpu.vector_functions import vector_functions

_FUNCTION = re.compile(r'^define (?!internal|private|linkonce|weak)[^@]*@(?P<name>[\w.$-]+|"[^"]*")\(')
_GLOBAL = re.compile(r'^@(?P<name>[\w.$-]+|"[^"]*") = (?P<constant>(?:private|internal) (?:\w+ )*constant )?')
_NAME = re.compile(r'@([\w.$-]+|"[^"]*")')

#: Functions that are vectors become an object file of their own where they are at least so long.
WORTH_A_PART = 10_000


@dataclass(frozen=True)
class ModulePart:
    """Some functions of a module.

    Attributes:
        text: LLVM IR.
        functions: the names of those that it defines.
        is_vectors: whether they are vectors already, see `vector_functions`.
    """

    text: str
    functions: tuple[str, ...]
    is_vectors: bool = False


@dataclass(frozen=True)
class ModuleText:
    """A module's text, function by function.

    Attributes:
        functions: the texts of those that are defined, by name; no name where one cannot be moved.
        shared: all the other lines.
    """

    functions: Mapping[str, str]
    shared: Sequence[str]

    @staticmethod
    def read(text: str) -> ModuleText:
        """The inverse of printing a module."""
        functions, shared = dict[str, str](), []
        lines = iter(text.split("\n"))
        for line in lines:
            if not line.startswith("define "):
                shared.append(line)
                continue
            body = [line]
            while body[-1] != "}":
                body.append(next(lines))
            match = _FUNCTION.match(line)
            functions[match["name"].strip('"') if match else ""] = "\n".join(body)
        return ModuleText(functions, shared)

    @property
    def can_be_split(self) -> bool:
        """Whether it has no other globals than constants, and no functions that only it may call."""
        return "" not in self.functions and all(map(_can_be_copied, self.shared))

    def part(self, names: Collection[str], is_vectors: bool = False) -> ModulePart:
        """Some functions, which declare those that they call, and have their own copies of the constants they use."""
        bodies = [self.functions[name] for name in names]
        used = {name for body in bodies for name in _NAME.findall(body)}
        copied = [line for line in self.shared if (match := _GLOBAL.match(line)) is None or match["name"] in used]
        declared = [_declaration(self.functions[name]) for name in self.functions if name in used.difference(names)]
        return ModulePart("\n".join([*copied, *bodies, *declared, ""]), tuple(names), is_vectors)

    def reachable(self, names: Collection[str], without: Collection[str] = ()) -> list[str]:
        """These functions and those that they call, directly or not, but for what is reached by those of `without`."""
        found = list(names)
        for name in found:
            called = set(_NAME.findall(self.functions[name])).intersection(self.functions)
            found += sorted(called.difference(found, without))
        return found


def split(text: str, size: int) -> list[ModulePart]:
    """Parts of a module, each of about `size` characters of functions or of one function; vectors apart from others.

    Every part declares the functions that others define, and has its own copy of the constants that it uses. A module
    with other globals, or with functions that only it may call, is left whole.
    """
    module = ModuleText.read(text)
    return split_functions(module, list(module.functions), size) or [ModulePart(text, tuple(module.functions))]


def split_functions(module: ModuleText, names: Sequence[str], size: int) -> list[ModulePart]:
    """Likewise of some of a module's functions; none where that would be one part, or cannot be."""
    if not module.can_be_split:
        return []
    functions = {name: module.functions[name] for name in names}
    groups = [
        (group, is_vectors)
        for is_vectors, kind in by_kind(functions, WORTH_A_PART).items()
        for group in _groups(kind, size)
    ]
    return [module.part(group, is_vectors) for group, is_vectors in groups] if len(groups) > 1 else []


def by_kind(functions: Mapping[str, str], least: int, *, once: bool = False) -> dict[bool, dict[str, str]]:
    """The functions that are vectors already, where that is so much text, and the others; see `vector_functions`."""
    vectors = vector_functions(functions, once=once)
    if sum(len(body) for name, body in functions.items() if name in vectors) < least:
        vectors = set()
    return {
        kind: {name: body for name, body in functions.items() if (name in vectors) == kind} for kind in (True, False)
    }


def _can_be_copied(line: str) -> bool:
    match = _GLOBAL.match(line)
    return match is None or match["constant"] is not None or " = external " in line


def _groups(functions: Mapping[str, str], size: int) -> list[list[str]]:
    groups: list[list[str]] = []
    length = size
    for name, body in functions.items():
        if length + len(body) > size:
            groups.append([])
            length = 0
        groups[-1].append(name)
        length += len(body)
    return groups


def _declaration(function: str) -> str:
    """define void @f(ptr %0) #0 { ... }  =>  declare void @f(ptr %0)"""
    header = function.partition("\n")[0].removesuffix("{").rstrip()
    return "declare" + re.sub(r"( #\d+| !\w+ !\d+)+$", "", header.removeprefix("define"))
