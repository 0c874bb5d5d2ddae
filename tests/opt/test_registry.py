"""The registry: what makes a class a pass, and the table of MLIR's passes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pipeline import plugins
from pipeline.errors import OptionError
from pipeline.mlir import PassManager, context
from pipeline.passmanager import mlir_passes, registry

HEADER = "from dataclasses import dataclass\nfrom pipeline.passmanager.base import Pass\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("class P(Pass):\n    name = 'p'\n    def run(self, op): pass", "class P needs the decorator @dataclass"),
        ("@dataclass(frozen=True)\nclass P(Pass):\n    def run(self, op): pass", "class P needs a `name`"),
        ("@dataclass(frozen=True)\nclass P(Pass):\n    name = 'My_P'\n    def run(self, op): pass", "has 'My_P'"),
        (
            "@dataclass(frozen=True)\nclass P(Pass):\n    name = 'p'\n    size: int\n    def run(self, op): pass",
            "option 'size' of P needs a default",
        ),
        (
            "@dataclass(frozen=True)\nclass P(Pass):\n    name='p'\n    size: dict = 0\n    def run(self, op): pass",
            "option 'size' of P is none of bool, int, float, str",
        ),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("def f(:", "SyntaxError"),
    ],
)
def test_a_plugin_without_the_form_of_a_pass_is_one_error_and_leaves_nothing(tmp_path, body, message):
    path = tmp_path / "plugin.py"
    path.write_text(HEADER + body)
    before = registry.passes()
    with pytest.raises(OptionError) as raised:
        registry.load_plugin(path)
    assert message in str(raised.value) and "\n" not in str(raised.value)
    assert registry.passes() == before
    assert path.resolve() not in plugins.files()


def test_two_passes_of_one_plugin_with_one_name(tmp_path):
    path = tmp_path / "plugin.py"
    one = "@dataclass(frozen=True)\nclass {}(Pass):\n    name = 'test-twin'\n    def run(self, op): pass\n"
    path.write_text(HEADER + one.format("A") + one.format("B"))
    with pytest.raises(OptionError, match="two passes are called 'test-twin'"):
        registry.load_plugin(path)


def test_passes_that_a_plugin_only_imports_are_not_its_own(tmp_path):
    path = tmp_path / "plugin.py"
    path.write_text("from pipeline.passes.tensor.remove_unused_results import RemoveUnusedResults\n")
    before = registry.passes()
    registry.load_plugin(path)
    assert registry.passes() == before
    plugins.unload_file(plugins.load_file(path))


def test_unknown_name():
    with pytest.raises(OptionError, match="unknown pass 'remove-unused-resuts'; did you mean 'remove-unused-results'"):
        registry.get("remove-unused-resuts")


def test_the_table_of_upstream_passes_is_that_of_the_wheel():
    ctx = context()
    for name, anchor in mlir_passes.PASSES.items():
        PassManager.parse(f"{'builtin.module' if anchor == 'any' else anchor}({name})", ctx)
    assert {"canonicalize", "cse", "linalg-fuse-elementwise-ops", "one-shot-bufferize"} <= mlir_passes.PASSES.keys()


def test_passes_are_loaded_when_they_are_asked_for():
    program = (
        "import sys; from pipeline.passmanager import registry; registry.find('fuse-elementwise')\n"
        "print([name for name in sys.modules if name.startswith('pipeline.passes.gpu.')], len(registry.passes()))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == f"[] {len(registry.passes())}\n"
