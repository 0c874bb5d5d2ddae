"""Splits LLVM IR text, as MLIR prints it, into texts that can be compiled side by side, and each in its way."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeline.targets.cpu.vector_functions import vector_functions

_FUNCTION = re.compile(r'^define (?!internal|private|linkonce|weak)[^@]*@(?P<name>[\w.$-]+|"[^"]*")\(')
_GLOBAL = re.compile(r'^@(?P<name>[\w.$-]+|"[^"]*") = (?P<constant>(?:private|internal) (?:\w+ )*constant )?')
_NAME = re.compile(r'@([\w.$-]+|"[^"]*")')

#: Functions that are vectors become an object file of their own where they are at least so long.
_WORTH_A_PART = 10_000


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


def split(text: str, size: int) -> list[ModulePart]:
    """Parts of a module, each of about `size` characters of functions or of one function; vectors apart from others.

    Every part declares the functions that others define, and has its own copy of the constants that it uses. A module
    with other globals, or with functions that only it may call, is left whole.
    """
    functions, shared = _read(text)
    if not all(_names(functions)) or not all(map(_can_be_copied, shared)):
        return [ModulePart(text, _names(functions))]
    kinds = _by_kind(functions)
    groups = [(group, is_vectors) for is_vectors, kind in kinds.items() for group in _groups(kind, size)]
    if len(groups) < 2:
        return [ModulePart(text, _names(functions))]
    return [_part(group, functions, shared, is_vectors) for group, is_vectors in groups]


def _by_kind(functions: list[tuple[str, str]]) -> dict[bool, list[tuple[str, str]]]:
    """The functions that are vectors already, and the others."""
    vectors = vector_functions(dict(functions))
    if sum(len(body) for name, body in functions if name in vectors) < _WORTH_A_PART:
        vectors = set()
    return {kind: [function for function in functions if (function[0] in vectors) == kind] for kind in (True, False)}


def _can_be_copied(line: str) -> bool:
    match = _GLOBAL.match(line)
    return match is None or match["constant"] is not None or " = external " in line


def _names(functions: list[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(name for name, _ in functions)


def _read(text: str) -> tuple[list[tuple[str, str]], list[str]]:
    """(name, text) of each function that is defined, no name where it cannot be moved; all the other lines."""
    functions, shared = [], []
    lines = iter(text.split("\n"))
    for line in lines:
        if not line.startswith("define "):
            shared.append(line)
            continue
        body = [line]
        while body[-1] != "}":
            body.append(next(lines))
        match = _FUNCTION.match(line)
        functions.append((match["name"].strip('"') if match else "", "\n".join(body)))
    return functions, shared


def _groups(functions: list[tuple[str, str]], size: int) -> list[list[tuple[str, str]]]:
    groups: list[list[tuple[str, str]]] = []
    length = size
    for function in functions:
        if length + len(function[1]) > size:
            groups.append([])
            length = 0
        groups[-1].append(function)
        length += len(function[1])
    return groups


def _part(
    group: list[tuple[str, str]], functions: list[tuple[str, str]], shared: list[str], is_vectors: bool
) -> ModulePart:
    names = _names(group)
    bodies = [body for _, body in group]
    used = {name for body in bodies for name in _NAME.findall(body)}
    copied = [line for line in shared if (match := _GLOBAL.match(line)) is None or match["name"] in used]
    declared = [_declaration(body) for name, body in functions if name not in names and name in used]
    return ModulePart("\n".join([*copied, *bodies, *declared, ""]), names, is_vectors)


def _declaration(function: str) -> str:
    """define void @f(ptr %0) #0 { ... }  =>  declare void @f(ptr %0)"""
    header = function.partition("\n")[0].removesuffix("{").rstrip()
    return "declare" + re.sub(r"( #\d+| !\w+ !\d+)+$", "", header.removeprefix("define"))
