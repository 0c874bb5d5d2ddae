"""Names of the house: a class's name says one thing, an attribute's name stands in one place, named tests exist."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pipeline
from pipeline.ir import attributes

ROOT = Path(pipeline.__file__).parent


def test_no_class_name_means_two_things():
    found = defaultdict(list)
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


#: Ops of the frontend's own that are called as an attribute is.
OPS_OF_THE_SAME_NAME = {
    "pipeline.sizes": "frontend/shapes/promised_results.py",
    "pipeline.stop_fusion": "frontend/importer/stop_fusion_lowering.py",
    "pipeline.transform": "frontend/importer/fourier_lowering.py",
}


def test_attributes_are_named_in_one_module():
    names = {value for value in vars(attributes).values() if isinstance(value, str) and value.startswith("pipeline.")}
    names -= {attributes.__name__, attributes.__package__}
    found = defaultdict(list)
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and node.value in names:
                found[node.value].append(str(path.relative_to(ROOT)))
    own = "ir/attributes.py"
    assert {name: set(found[name]) for name in names} == {
        name: {own, OPS_OF_THE_SAME_NAME.get(name, own)} for name in names
    }


def test_each_attribute_has_its_meaning():
    lines = Path(attributes.__file__).read_text().splitlines()
    for number, line in enumerate(lines):
        if ' = "pipeline.' in line:
            assert lines[number - 1].startswith("#: "), line


def test_the_quick_tests_exist():
    tests = Path(__file__).resolve().parent
    for line in (tests / "quick.txt").read_text().splitlines():
        path, _, name = line.partition("::")
        text = (tests.parent / path).read_text()
        assert not name or f"def {name.partition('[')[0]}(" in text, line
