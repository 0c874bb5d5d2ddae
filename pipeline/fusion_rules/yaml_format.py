"""Tables of fusion rules as YAML: each mistake in one is an error with the file's name and line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import cast

import yaml

from pipeline.errors import OptionError
from pipeline.fusion_rules.op_words import known_words
from pipeline.fusion_rules.rules import (
    KINDS,
    ROLES,
    FusionLimits,
    FusionRules,
    KindRules,
    Role,
    check,
    kind_rules,
    load_rules,
    tables,
)

_KEYS = ("target", "kinds", "limits", "ops", "parts")


def dump(rules: FusionRules) -> str:
    """The table as YAML text; what is code in it is left out."""
    lines = [f"target: {_scalar(rules.target)}", "kinds:" if rules.kinds else "kinds: {}"]
    for kind, taken in rules.kinds.items():
        lines += [f"  {kind}:", *(f"    {name}: {_list(entries)}" for name, entries in asdict(taken).items())]
    lines += ["limits:", *(f"  {name}: {value}" for name, value in asdict(rules.limits).items())]
    if rules.ops:
        lines += ["ops:", *(f"  {word}: {_list(roles)}" for word, roles in rules.ops.items())]
    parts = [(words, table) for words, table in rules.parts if not callable(words)]
    if parts:
        lines.append("parts:")
    for words, table in parts:
        lines += [f"  - ops: {_list(words)}", "    table:", *(f"      {line}" for line in dump(table).splitlines())]
    return "\n".join(lines) + "\n"


def parse(text: str, file: str) -> FusionRules:
    """The table that `text` says; raises `OptionError` with `file` and the line for what is wrong in it."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise OptionError(f"{file}:{line}: not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise OptionError(f"{file}: not YAML: {error}") from None
    if root is None:
        raise OptionError(f"{file}:1: empty; expected the keys target and kinds")
    return _table(_Reader(file), root)


def _table(reader: _Reader, node: yaml.Node) -> FusionRules:
    top = dict(reader.items(node, _KEYS, "key"))
    for needed in ("target", "kinds"):
        if needed not in top:
            raise reader.error(node, f"the key {needed!r} is missing")
    kinds = {kind: _kind(reader, entry) for kind, entry in reader.items(top["kinds"], KINDS, "kind")}
    limits = _limits(reader, top["limits"]) if "limits" in top else FusionLimits()
    ops = {}
    if "ops" in top:
        ops = {word: _roles(reader, entry) for word, entry in reader.items(top["ops"], known_words(), "op")}
    parts = tuple(_part(reader, item) for item in reader.list(top["parts"])) if "parts" in top else ()
    return FusionRules(reader.text(top["target"]), kinds, limits, ops, parts=parts)


def _part(reader: _Reader, node: yaml.Node) -> tuple[tuple[str, ...], FusionRules]:
    """A part: the words of its ops, and its table, written there or the name of a target or a file."""
    keys = dict(reader.items(node, ("ops", "table"), "key"))
    for needed in ("ops", "table"):
        if needed not in keys:
            raise reader.error(node, f"the key {needed!r} is missing")
    words = []
    for item in reader.list(keys["ops"]):
        with reader.at(item):
            check(reader.text(item), known_words(), "op")
        words.append(reader.text(item))
    table = keys["table"]
    if isinstance(table, yaml.MappingNode):
        return tuple(words), _table(reader, table)
    with reader.at(table):
        name = reader.text(table)
        return tuple(words), load_rules(name if name in tables() else reader.beside(name))


def _roles(reader: _Reader, node: yaml.Node) -> tuple[Role, ...]:
    roles = []
    for item in reader.list(node):
        with reader.at(item):
            check(reader.text(item), ROLES, "role")
        roles.append(cast(Role, reader.text(item)))
    return tuple(roles)


def _kind(reader: _Reader, node: yaml.Node) -> KindRules:
    rules = KindRules()
    for name, entries in reader.items(node, [key.name for key in fields(KindRules)], "key"):
        items = reader.list(entries)
        for item in items:
            with reader.at(item):
                kind_rules(rules, {name: [reader.text(item)]})
        rules = kind_rules(rules, {name: [reader.text(item) for item in items]})
    return rules


def _limits(reader: _Reader, node: yaml.Node) -> FusionLimits:
    values = {}
    for name, value in reader.items(node, [limit.name for limit in fields(FusionLimits)], "limit"):
        text = reader.text(value)
        if not text.isdecimal():
            raise reader.error(value, f"{name}: expected a number, got {text!r}")
        values[name] = int(text)
    return FusionLimits(**values)


class _Reader:
    """Takes YAML nodes apart; its errors say where they are in the file."""

    def __init__(self, file: str):
        self._file = file

    def error(self, node: yaml.Node, problem: str) -> OptionError:
        return OptionError(f"{self._file}:{node.start_mark.line + 1}: {problem}")

    def beside(self, path: str) -> Path:
        """A path that is said in the file, from where the file lies."""
        return Path(self._file).parent / path

    def items(self, node: yaml.Node, known: Sequence[str], what: str) -> Iterator[tuple[str, yaml.Node]]:
        if not isinstance(node, yaml.MappingNode):
            raise self.error(node, f"expected keys with values; each key is a {what}")
        seen = set()
        for key, value in node.value:
            name = self.text(key)
            with self.at(key):
                check(name, known, what)
            if name in seen:
                raise self.error(key, f"the {what} {name!r} is there twice")
            seen.add(name)
            yield name, value

    def list(self, node: yaml.Node) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode):
            raise self.error(node, "expected a list in [ ]")
        return list(node.value)

    def text(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self.error(node, "expected a word")
        return str(node.value)

    @contextlib.contextmanager
    def at(self, node: yaml.Node) -> Iterator[None]:
        """Gives what is wrong inside of the `with` block the place of `node`."""
        try:
            yield
        except OptionError as error:
            raise self.error(node, str(error)) from None


def _list(entries: Sequence[str]) -> str:
    return f"[{', '.join(map(_scalar, entries))}]"


def _scalar(text: str) -> str:
    """A word as YAML takes it: in quotes where it would be read as something else than itself."""
    return yaml.safe_dump(text, default_flow_style=True, width=10_000).removesuffix("\n").removesuffix("\n...")
