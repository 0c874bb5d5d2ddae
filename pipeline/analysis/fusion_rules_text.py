"""Tables of fusion rules as YAML: each mistake in one is an error with the file's name and line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import cast

import yaml

from pipeline.analysis.fusion_rules import KINDS, ROLES, FusionRules, KindRules, Limits, Role, check, kind_rules
from pipeline.analysis.op_words import known_words
from pipeline.errors import OptionError

_KEYS = ("target", "kinds", "limits", "ops")


def dump(rules: FusionRules) -> str:
    """The table as YAML text."""
    lines = [f"target: {_scalar(rules.target)}", "kinds:"]
    for kind, taken in rules.kinds.items():
        lines += [f"  {kind}:", *(f"    {name}: {_list(entries)}" for name, entries in asdict(taken).items())]
    if not rules.kinds:
        lines[-1] = "kinds: {}"
    lines += ["limits:", *(f"  {name}: {value}" for name, value in asdict(rules.limits).items())]
    if rules.ops:
        lines += ["ops:", *(f"  {word}: {_list(roles)}" for word, roles in rules.ops.items())]
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
    reader = _Reader(file)
    top = dict(reader.items(root, _KEYS, "key"))
    for needed in ("target", "kinds"):
        if needed not in top:
            raise reader.error(root, f"the key {needed!r} is missing")
    kinds = {kind: _kind(reader, node) for kind, node in reader.items(top["kinds"], KINDS, "kind")}
    ops = {}
    if "ops" in top:
        for word, node in reader.items(top["ops"], known_words(), "op"):
            ops[word] = _roles(reader, node)
    return FusionRules(reader.text(top["target"]), kinds, _limits(reader, top.get("limits")), ops)


def _roles(reader: _Reader, node: yaml.Node) -> tuple[Role, ...]:
    roles = []
    for item in reader.list(node):
        with reader.at(item):
            check(reader.text(item), ROLES, "role")
        roles.append(cast(Role, reader.text(item)))
    return tuple(roles)


def _kind(reader: _Reader, node: yaml.Node) -> KindRules:
    rules = KindRules()
    for name, entries in reader.items(node, [one.name for one in fields(KindRules)], "key"):
        items = reader.list(entries)
        for item in items:
            with reader.at(item):
                kind_rules(rules, {name: [reader.text(item)]})
        rules = kind_rules(rules, {name: [reader.text(item) for item in items]})
    return rules


def _limits(reader: _Reader, node: yaml.Node | None) -> Limits:
    if node is None:
        return Limits()
    values = {}
    for name, value in reader.items(node, [one.name for one in fields(Limits)], "limit"):
        text = reader.text(value)
        if not text.isdecimal():
            raise reader.error(value, f"{name}: expected a number, got {text!r}")
        values[name] = int(text)
    return Limits(**values)


class _Reader:
    """Takes YAML nodes apart; its errors say where they are in the file."""

    def __init__(self, file: str):
        self._file = file

    def error(self, node: yaml.Node, problem: str) -> OptionError:
        return OptionError(f"{self._file}:{node.start_mark.line + 1}: {problem}")

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
