"""Checks on the FileCheck tests that FileCheck itself does not make."""

from __future__ import annotations

import re

from driver import ROOT

from pipeline.passmanager import registry

FILES = sorted(path for path in (ROOT / "lit_tests").rglob("*.mlir") if not {"Inputs", "Output"} & set(path.parts))
SUFFIXES = "NEXT|SAME|NOT|LABEL|DAG|EMPTY|COUNT-[0-9]+"


def name_of(path) -> str:
    return str(path.relative_to(ROOT))


def missing_prefixes(text: str) -> set[str]:
    """The prefixes that RUN lines give to FileCheck and that no line of the file has."""
    named = set()
    for command in re.findall(r"RUN:.*?FileCheck([^|\n]*)", text):
        given = re.findall(r"--check-prefix(?:es)?[= ](\S+)", command)
        named |= {prefix for prefixes in given for prefix in prefixes.split(",")} or {"CHECK"}
    return {prefix for prefix in named if not re.search(rf"// {re.escape(prefix)}(-({SUFFIXES}))?:", text)}


def test_each_prefix_of_a_run_line_occurs():
    missing = {name_of(path): missing_prefixes(path.read_text()) for path in FILES}
    assert {name: prefixes for name, prefixes in missing.items() if prefixes} == {}


def test_a_prefix_that_never_occurs_is_found():
    text = "// RUN: tool | FileCheck %s --check-prefixes=A,B\n// RUN: tool | FileCheck %s\n// A-NEXT: x\n// BC: y\n"
    assert missing_prefixes(text) == {"B", "CHECK"}


def test_each_file_runs_something():
    assert [name_of(path) for path in FILES if "// RUN: " not in path.read_text()] == []


def test_passes_and_their_files_and_their_tests_share_a_name_and_a_room():
    ours = [name for name in registry.passes() if registry.owner(name).startswith("pipeline.")]
    places = {name: registry.owner(name).removeprefix("pipeline.passes.").split(".") for name in ours}
    assert [name for name, place in places.items() if place[-1] != name.replace("-", "_")] == []
    tests = {name: ROOT.joinpath("lit_tests", "passes", *place[:-1], f"{name}.mlir") for name, place in places.items()}
    assert [name for name, test in tests.items() if test not in FILES] == []
