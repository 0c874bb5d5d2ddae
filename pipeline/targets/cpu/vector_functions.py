"""Functions of LLVM IR in which most of LLVM's passes find nothing, and take their time: vectors already, and glue."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

#: Multiply-adds and dot products of vectors.
_PRODUCT = re.compile(r"call <[^@]*@llvm\.(fma\.|x86\.avx\w*\.(vpdp|dpbf16ps))")

#: A function with so many of them computes a register tile.
_TILE = 8

#: What LLVM makes vectors of, or other shuffles: functions of one number, and vectors whose elements are mixed.
_SCALAR_CALL = re.compile(r"call (float|double) @")
_MIXED = re.compile(r"shufflevector <[^>]*> %\S+, <[^>]*> %|@llvm\.(vector\.deinterleave|masked\.gather)")

#: Loads and stores of one number.
_SCALAR_ACCESS = re.compile(r" = load (?!<|ptr)|^  store (?!<|ptr)", re.MULTILINE)

#: What is more than handing on addresses, sizes and numbers: arithmetic, vectors.
_WORK = re.compile(r" = f(?:add|sub|mul|div|rem|neg|cmp) |<\d+ x ")

#: Loads and stores of elements, as far as they tell: sizes and conditions are integers, too.
_ELEMENT_ACCESS = re.compile(r" = load (?!<|i64|i32|i1\b|ptr)|^  store (?!<|i64|i1\b|ptr)", re.MULTILINE)

#: The start of a block, or where one goes on.
_LABEL = re.compile(r"^(?P<start>\d+):|label %(?P<target>\d+)", re.MULTILINE)

#: A load of a vector, whole or in part.
_VECTOR_LOAD = re.compile(r" = load <|@llvm\.masked\.load\.")

_NAME = re.compile(r'@([\w.$-]+|"[^"]*")')


def vector_functions(functions: Mapping[str, str], *, once: bool = False) -> set[str]:
    """The names of those functions of a module, by their names, for which a tenth of LLVM's passes are enough.

    They have register tiles of products; or load and store nothing but vectors; or have vectors and run once, when
    weights are prepared; or hand on to others what they are given, once each. All run `once`, or those that @main does
    not call; @main itself is never among them: its entry takes it in.
    """
    often = set() if once else _reachable(functions, "main")
    found = {name for name, body in functions.items() if _is_glue(body) or _is_vectors(body, once=name not in often)}
    return found - {"main"}


def entries_need_no_more(functions: Mapping[str, str], entries: Collection[str]) -> bool:
    """Whether a tenth of LLVM's passes is enough for a module's functions, and for its `entries`.

    Those may repeat what they hand on, and move vectors.
    """
    own = [functions[name] for name in entries if name in functions]
    others = set(functions).difference(entries)
    return all(_is_glue(body) or not _needs_vectors(body) for body in own) and others <= vector_functions(functions)


def _is_glue(body: str) -> bool:
    return not _WORK.search(body) and not _SCALAR_CALL.search(body) and not _has_loop(body)


def _needs_vectors(body: str) -> bool:
    return any(pattern.search(body) for pattern in (_SCALAR_CALL, _MIXED, _ELEMENT_ACCESS))


def _has_loop(body: str) -> bool:
    """Whether a block goes on at itself or at one before it: MLIR counts them in the order in which it prints them."""
    block = 0
    for label in _LABEL.finditer(body):
        if label["start"]:
            block = int(label["start"])
        elif int(label["target"]) <= block:
            return True
    return False


def _is_vectors(body: str, once: bool) -> bool:
    if _SCALAR_CALL.search(body) or not once and _MIXED.search(body):
        return False
    is_tile = len(_PRODUCT.findall(body)) >= _TILE
    return is_tile or _VECTOR_LOAD.search(body) is not None and (once or not _SCALAR_ACCESS.search(body))


def _reachable(functions: Mapping[str, str], entry: str) -> set[str]:
    """The functions that run when `entry` does; all if there is no such function."""
    if entry not in functions:
        return set(functions)
    found = [entry]
    for name in found:
        found += set(_NAME.findall(functions[name])).intersection(functions).difference(found)
    return set(found)
