"""Names of the house: a class's name says one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pipeline

ROOT = Path(pipeline.__file__).parent


def test_no_class_name_means_two_things():
    found = defaultdict(list)
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}
