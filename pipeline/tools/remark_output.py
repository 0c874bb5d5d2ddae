"""Remarks for people and for programs: lines on stderr, or YAML in the layout of LLVM's optimization records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from pipeline.diagnostics import Diagnostic
from pipeline.errors import OptionError
from pipeline.remarks import Remark, Subject

FORMATS = ("text", "yaml")


def select(remarks: Iterable[Remark], pattern: str) -> list[Remark]:
    """The remarks that the regular expression `pattern` matches in full.

    It is matched against the pass (`fuse-elementwise`), the kind (`missed`), the key of the reason (`multi-use`), and
    all of them, `fuse-elementwise/missed/multi-use`, where `-` stands for no reason.
    """
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise OptionError(f"--remarks-filter: '{pattern}' is no regular expression: {error}") from None
    return [remark for remark in remarks if any(map(wanted.fullmatch, _names(remark)))]


def _names(remark: Remark) -> list[str]:
    key = remark.key or "-"
    return [remark.pass_name, remark.kind, key, f"{remark.pass_name}/{remark.kind}/{key}"]


def renamed(remark: Remark, name: Callable[[str], str]) -> Remark:
    """The remark with `name` of its source lines in their place."""

    def there(source: str | None) -> str | None:
        return name(source) if source else None

    edge = remark.edge
    if edge is not None:
        edge = (replace(edge[0], source=there(edge[0].source)), replace(edge[1], source=there(edge[1].source)))
    return replace(remark, source=there(remark.source), edge=edge)


def as_text(remarks: Iterable[Remark]) -> str:
    """One line a remark."""
    return "".join(f"{remark}\n" for remark in remarks)


def as_yaml(remarks: Iterable[Remark]) -> str:
    """One YAML document a remark."""
    import yaml

    documents = []
    for remark in remarks:
        body: dict[str, object] = {"Pass": remark.pass_name, "Name": remark.op}
        body |= _place(remark)
        if remark.key:
            body |= {"Reason": remark.key, "Change": remark.change}
        if remark.edge:
            body |= dict(zip(("Producer", "Consumer"), map(_subject, remark.edge), strict=True))
        body["Args"] = [{"String": remark.reason}]
        dumped = yaml.safe_dump(body, sort_keys=False, width=10_000)
        documents.append(f"--- !{remark.kind.capitalize()}\n{dumped}...\n")
    return "".join(documents)


def _subject(subject: Subject) -> dict[str, object]:
    return {"Name": subject.op, "Label": subject.label, **_place(subject)}


def _place(where: Remark | Subject) -> dict[str, object]:
    file, _, line = (where.source or "").rpartition(":")
    place: dict[str, object] = {"DebugLoc": {"File": file, "Line": int(line), "Column": 0}} if file else {}
    return place | ({"Module": where.module} if where.module else {})


def as_diagnostic(remark: Remark) -> Diagnostic:
    """The remark as a diagnostic, which `expected-remark` can match."""
    file, _, line = (remark.source or "").rpartition(":")
    return Diagnostic("remark", str(replace(remark, source=None, module=None)), file, int(line or 0))
