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

#: What is more than handing on addresses and sizes: branches, elements of tensors, vectors.
_WORK = re.compile(
    r"^  (br|switch) | = load (?!i64|i32|ptr)|^  store (?!i64|ptr)|\b(float|double|half|bfloat) |<\d+ x ", re.M
)

#: Likewise of what entries take in, which may choose what it hands on, and where.
_WORK_OF_ENTRIES = re.compile(
    r" = load (?!i64|i32|i1|ptr)|^  store (?!i64|i1|ptr)|\b(float|double|half|bfloat) |<\d+ x ", re.M
)

#: A load of a vector, whole or in part.
_VECTOR_LOAD = re.compile(r" = load <|@llvm\.masked\.load\.")

_NAME = re.compile(r'@([\w.$-]+|"[^"]*")')


def vector_functions(functions: Mapping[str, str], *, once: bool = False) -> set[str]:
    """The names of those functions of a module, by their names, for which a tenth of LLVM's passes are enough.

    They have register tiles of products; or load and store nothing but vectors; or have vectors and run once, when
    weights are prepared; or only hand on to others what they are given. All run `once`, or those that @main does not
    call; @main itself is never among them: its entry takes it in.
    """
    often = set() if once else _reachable(functions, "main")
    found = {name for name, body in functions.items() if _is_glue(body) or _is_vectors(body, once=name not in often)}
    return found - {"main"}


def entries_need_no_more(functions: Mapping[str, str], entries: Collection[str]) -> bool:
    """Whether a tenth of LLVM's passes is enough for a module's functions, and for its `entries`."""
    others = set(functions).difference(entries)
    glue = all(not _WORK_OF_ENTRIES.search(functions[name]) for name in entries if name in functions)
    return glue and others <= vector_functions(functions)


def _is_glue(body: str) -> bool:
    return not _WORK.search(body)


def _is_vectors(body: str, once: bool) -> bool:
    if _SCALAR_CALL.search(body) or _MIXED.search(body):
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
