"""What a target takes into one kernel: tables that people can read, print, change and give back.

A table says for each kind of group which ops may come before its anchor (prologue) and after it (epilogue), in which
dtypes, and how large a group may get. The tables that come along are `pipeline/targets/<target>/fusion_rules.yaml`;
`fusion_rules_text.py` reads and writes that form. Nothing here needs MLIR.
"""

from __future__ import annotations

import contextlib
import contextvars
import copy
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pipeline.errors import OptionError
from pipeline.fusion_rules.object_handles import Lender
from pipeline.fusion_rules.op_words import CLASSES, class_of, known_words

if TYPE_CHECKING:
    from pipeline.fusion_rules.op_facts import OpFacts

KINDS = ("matmul", "conv", "pooling", "reduction", "attention", "scan", "scatter", "sort", "elementwise")

Role = Literal["anchor", "prologue", "epilogue"]
ROLES: tuple[Role, ...] = ("anchor", "prologue", "epilogue")

#: The one entry of `dtypes` that stands for all of them.
ANY = "any"

DTYPES = (ANY, "f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "i1", "index")

#: Says of an op in a role of a group of a kind whether it may: True, False, or None for what the table says.
Predicate = Callable[["OpFacts", str, Role], bool | None]

#: Which ops: those that compute one of these words, or those for which a condition holds.
Part = tuple[str, ...] | Callable[["OpFacts"], bool]


@dataclass(frozen=True)
class KindRules:
    """What may join an anchor of one kind.

    Attributes:
        prologue: what may compute its inputs: classes (`elementwise`, `reduction`, ...) or words (`add`, `relu`, ...).
        epilogue: what may use its results.
        dtypes: the element types of which it may be an anchor, as MLIR spells them; `any` for all.
    """

    prologue: tuple[str, ...] = ()
    epilogue: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = (ANY,)


@dataclass(frozen=True)
class FusionLimits:
    """How large a group may get.

    Attributes:
        ops: what it computes, counted in words of its name.
        results: the tensors that it gives.
        operands: the values that it reads.
        scratch_bytes: the memory between its ops.
    """

    ops: int = 256
    results: int = 16
    operands: int = 128
    scratch_bytes: int = 1 << 20


@dataclass(frozen=True)
class FusionRules:
    """The table of a target.

    Attributes:
        target: its name, which groups that form by it carry.
        kinds: what may join an anchor, by kind; an op of a kind that is not there stays alone.
        limits: how large a group may get.
        ops: the roles that single ops may have, by word, before what `kinds` says; none: nothing joins it.
        predicate: is asked before the table.
        parts: parts of a model that go by another table: each the words of ops, or a condition on an op, and the table.
    """

    target: str
    kinds: Mapping[str, KindRules]
    limits: FusionLimits = FusionLimits()
    ops: Mapping[str, tuple[Role, ...]] = field(default_factory=dict)
    predicate: Predicate | None = None
    parts: tuple[tuple[Part, FusionRules], ...] = ()

    def why_not(self, kind: str, role: Role, words: Sequence[str], dtype: str, op: OpFacts | None = None) -> str | None:
        """Why ops may not have a role in a group; None if they may.

        Args:
            kind: the kind of the group's anchor.
            role: `anchor`: the op is the anchor itself; `prologue`, `epilogue`: it joins one.
            words: what the op computes, as `analysis.naming.op_label` says it.
            dtype: the element type of the op's result, as MLIR spells it.
            op: the op, for the predicate.
        """
        said = self.predicate(op, kind, role) if self.predicate is not None and op is not None else None
        if said is not None:
            return None if said else f"the predicate of table {self.target} refuses {_join(words)} as {role} of {kind}"
        for word in words:
            if word in self.ops and role not in self.ops[word]:
                return f"table {self.target} does not take {word} as {role}"
        if kind not in self.kinds:
            return f"table {self.target} has no kind {kind}"
        rules = self.kinds[kind]
        if role == "anchor":
            if ANY in rules.dtypes or dtype in rules.dtypes:
                return None
            return f"table {self.target} takes {kind} of {_join(rules.dtypes)}, not of {dtype}"
        taken = rules.prologue if role == "prologue" else rules.epilogue
        for word in words:
            if word not in self.ops and not _covers(taken, word):
                return f"table {self.target} takes {_join(taken) or 'nothing'} as {role} of {kind}, not {word}"
        return None

    def apart(self) -> FusionRules:
        """The table in which nothing joins anything: each op is a kernel, in the dtypes that it may have."""
        kinds = {kind: KindRules(dtypes=rules.dtypes) for kind, rules in self.kinds.items()}
        return FusionRules(self.target, kinds, self.limits)

    @property
    def takes_all_elementwise(self) -> bool:
        """Whether elementwise ops are all the same to the table, so that any two of them may be one."""
        if self.ops or self.predicate is not None:
            return False
        lists = [entries for rules in self.kinds.values() for entries in (rules.prologue, rules.epilogue)]
        own = self.kinds.get("elementwise", KindRules())
        taken = all("elementwise" in entries or not any(map(_is_elementwise, entries)) for entries in lists)
        reduced = self.kinds.get("reduction", KindRules())
        return taken and "elementwise" in own.epilogue and "elementwise" in reduced.prologue

    def table(self, target: str | None) -> FusionRules:
        """The table of ops that are marked with `target`: this one, that of a part, or a target's own.

        Raises:
            OptionError: there is none of that name.
        """
        if target is None or target == self.target:
            return self
        own = next((rules for _, rules in self.parts if rules.target == target), None)
        return own or load_rules(target)

    def for_op(self, op: OpFacts) -> FusionRules:
        """The table of the part of the model that `op` belongs to."""
        return next((rules for part, rules in self.parts if _belongs(op, part)), self)

    def with_(
        self,
        *,
        target: str | None = None,
        kinds: Mapping[str, Mapping[str, Sequence[str]] | None] | None = None,
        limits: Mapping[str, int] | None = None,
        ops: Mapping[str, Sequence[Role]] | None = None,
        predicate: Predicate | None = None,
        parts: Sequence[tuple[Part, FusionRules]] | None = None,
    ) -> FusionRules:
        """The table with some of it changed: what is not named stays.

        Args:
            kinds: for a kind the fields of its `KindRules` that change, or None to take the kind out.
            limits, ops: likewise.
            predicate, parts: in place of those there are.

        Raises:
            OptionError: there is no such kind, field, op, dtype or role.
        """
        merged = dict(self.kinds)
        for kind, changes in (kinds or {}).items():
            check(kind, KINDS, "kind")
            if changes is None:
                merged.pop(kind, None)
                continue
            merged[kind] = kind_rules(merged.get(kind, KindRules()), changes)
        for word, roles in (ops or {}).items():
            check(word, known_words(), "op")
            for role in roles:
                check(role, ROLES, "role")
        for name in limits or {}:
            check(name, [limit.name for limit in fields(FusionLimits)], "limit")
        return FusionRules(
            target=target or self.target,
            kinds=merged,
            limits=replace(self.limits, **(limits or {})),
            ops={**self.ops, **{word: tuple(roles) for word, roles in (ops or {}).items()}},
            predicate=predicate or self.predicate,
            parts=self.parts if parts is None else tuple(parts),
        )


def kind_rules(old: KindRules, changes: Mapping[str, Sequence[str]]) -> KindRules:
    """`old` with some fields changed; raises `OptionError` for a field, op or dtype that does not exist."""
    for name, entries in changes.items():
        check(name, [key.name for key in fields(KindRules)], "key")
        for entry in entries:
            check(
                entry, DTYPES if name == "dtypes" else (*CLASSES, *known_words()), "dtype" if name == "dtypes" else "op"
            )
    return replace(old, **{name: tuple(entries) for name, entries in changes.items()})


def check(name: Any, known: Sequence[str], what: str) -> None:
    """Raises `OptionError` if `name` is none of `known`."""
    import difflib

    if name in known:
        return
    near = difflib.get_close_matches(str(name), known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known[:24])}{', ...' * (len(known) > 24)}"
    raise OptionError(f"no {what} {name!r}; {hint}")


def load_rules(name_or_path: str | Path) -> FusionRules:
    """The table of a target, by its name, or that in a YAML file.

    Raises:
        OptionError: there is no such table; the file's line says what is wrong with it.
    """
    name = str(name_or_path)
    lent = _lender.get(name)
    if lent is not None:
        return lent
    if name in tables():
        return copy.deepcopy(_table(name))  # its mappings are the caller's to change
    path = Path(name_or_path)
    if not path.is_file():
        raise OptionError(f"fusion rules {name!r}: no file, and no target; there are {', '.join(tables())}")
    return _read(path)


@functools.cache
def _table(target: str) -> FusionRules:
    """The table of a target."""
    return _read(table_file(target))


def _read(path: Path) -> FusionRules:
    """The table in a file."""
    from pipeline.fusion_rules import yaml_format

    place = path.resolve()
    if place in _reading.get():
        raise OptionError(f"{path}: this table is a part of itself")
    token = _reading.set((*_reading.get(), place))
    try:
        return yaml_format.parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{path}: cannot be read: {error}") from None
    finally:
        _reading.reset(token)


@functools.cache
def tables() -> list[str]:
    """The targets that come with a table."""
    return sorted(path.parent.name for path in _TARGETS.glob("*/fusion_rules.yaml"))


def table_file(target: str) -> Path:
    """Where the table of a target lies."""
    return _TARGETS / target / "fusion_rules.yaml"


def dump(rules: FusionRules) -> str:
    """The table as YAML, which `load_rules` reads back; what is code, predicates and conditions, is left out."""
    from pipeline.fusion_rules import yaml_format

    return yaml_format.dump(rules)


def lend(rules: str | FusionRules) -> contextlib.AbstractContextManager[str]:
    """A name by which `load_rules` finds `rules` inside of the `with` block: options of passes are text.

    That of a target and a path of usual characters is itself the name, so that the text means something elsewhere, too.
    """
    if not isinstance(rules, str):
        return _lender.lend(rules)
    return contextlib.nullcontext(rules) if _IN_PIPELINES.fullmatch(rules) else _lender.lend(load_rules(rules))


_TARGETS = Path(__file__).resolve().parents[1] / "targets"
_lender: Lender[FusionRules] = Lender()

#: Names that pass pipelines take as they are.
_IN_PIPELINES = re.compile(r"[\w./-]+")

#: The files that are being read, one because another one names it.
_reading: contextvars.ContextVar[tuple[Path, ...]] = contextvars.ContextVar("pipeline_fusion_rules", default=())


def _covers(taken: Sequence[str], word: str) -> bool:
    """Whether a list of classes and words has `word`; moves and casts count as elementwise too."""
    kind = class_of(word)
    return word in taken or kind in taken or (kind in ("cast", "broadcast") and "elementwise" in taken)


def _belongs(op: OpFacts, part: Part) -> bool:
    return part(op) if callable(part) else any(word in part for word in op.words)


def _is_elementwise(entry: str) -> bool:
    return class_of(entry) in ("elementwise", "cast", "broadcast")


def _join(words: Sequence[str]) -> str:
    return ", ".join(words)
