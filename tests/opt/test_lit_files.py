"""Checks on the FileCheck tests that FileCheck itself does not make."""

from __future__ import annotations

import re

import pytest
from driver import ROOT

from pipeline.passmanager import registry

FILES = sorted(path for path in (ROOT / "lit_tests").rglob("*.mlir") if not {"Inputs", "Output"} & set(path.parts))
SUFFIXES = "NEXT|SAME|NOT|LABEL|DAG|EMPTY|COUNT-[0-9]+"


def missing_prefixes(text: str) -> set[str]:
    """The prefixes that RUN lines give to FileCheck and that no line of the file has."""
    named = set()
    for command in re.findall(r"RUN:.*?FileCheck([^|\n]*)", text):
        given = re.findall(r"--check-prefix(?:es)?[= ](\S+)", command)
        named |= {prefix for prefixes in given for prefix in prefixes.split(",")} or {"CHECK"}
    return {prefix for prefix in named if not re.search(rf"// {re.escape(prefix)}(-({SUFFIXES}))?:", text)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_prefix_of_a_run_line_occurs(path):
    assert missing_prefixes(path.read_text()) == set()


def test_a_prefix_that_never_occurs_is_found():
    text = "// RUN: tool | FileCheck %s --check-prefixes=A,B\n// RUN: tool | FileCheck %s\n// A-NEXT: x\n// BC: y\n"
    assert missing_prefixes(text) == {"B", "CHECK"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_file_runs_something(path):
    assert "// RUN: " in path.read_text()


@pytest.mark.parametrize("name", [name for name in registry.passes() if registry.owner(name).startswith("pipeline.")])
def test_pass_and_its_file_and_its_test_share_a_name_and_a_room(name):
    *room, file = registry.owner(name).removeprefix("pipeline.passes.").split(".")
    assert file == name.replace("-", "_")
    assert ROOT.joinpath("lit_tests", "passes", *room, f"{name}.mlir") in FILES
