"""Remarks for people and for programs: lines on stderr, or YAML in the layout of LLVM's optimization records."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.diagnostics import Diagnostic
from pipeline.errors import OptionError
from pipeline.remarks import Remark

FORMATS = ("text", "yaml")


def select(remarks: Iterable[Remark], pattern: str) -> list[Remark]:
    """The remarks of the passes whose name the regular expression `pattern` matches in full."""
    try:
        names = re.compile(pattern)
    except re.error as error:
        raise OptionError(f"--remarks-filter: '{pattern}' is no regular expression: {error}") from None
    return [remark for remark in remarks if names.fullmatch(remark.pass_name)]


def as_yaml(remarks: Iterable[Remark]) -> str:
    """One YAML document a remark."""
    import yaml

    documents = []
    for remark in remarks:
        body: dict[str, object] = {"Pass": remark.pass_name, "Name": remark.op}
        if remark.source:
            file, _, line = remark.source.rpartition(":")
            body["DebugLoc"] = {"File": file, "Line": int(line), "Column": 0}
        body["Args"] = [{"String": remark.reason}]
        dumped = yaml.safe_dump(body, sort_keys=False, width=10_000)
        documents.append(f"--- !{remark.kind.capitalize()}\n{dumped}...\n")
    return "".join(documents)


def as_diagnostic(remark: Remark) -> Diagnostic:
    """The remark as a diagnostic, which `expected-remark` can match."""
    file, _, line = (remark.source or "").rpartition(":")
    message = f"{remark.kind}: {remark.reason} [{remark.pass_name}, {remark.op}]"
    return Diagnostic("remark", message, file, int(line or 0))
