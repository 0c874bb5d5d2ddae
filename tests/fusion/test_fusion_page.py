"""docs/fusion.md: its Python runs, its table of reasons is the list, its options exist."""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.fusion_rules.reasons import REASONS
from pipeline.fusion_rules.yaml_format import parse

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "fusion.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_python_runs(tmp_path):
    path = tmp_path / "page.py"  # torch wants to see the source of what it captures
    path.write_text("\n".join(blocks("python")))
    exec(compile(path.read_text(), str(path), "exec"), {"__name__": "page"})


def test_the_table_has_every_reason():
    rows = re.findall(r"^\| `([a-z-]+)` \| (.*) \| (.*) \|$", PAGE, re.MULTILINE)
    listed = {row[0]: row[1:] for row in rows if row[0] in REASONS}
    assert listed == {one.key: (one.meaning, one.change) for one in REASONS.values()}


def test_the_table_of_rules_is_one(tmp_path):
    (tmp_path / "npu.yaml").write_text("target: npu\nkinds: {}\n")
    (text,) = blocks("yaml")
    rules = parse(text, str(tmp_path / "page.yaml"))
    assert rules.ops == {"exp": ("prologue",)}
    assert rules.parts[0][1].target == "npu"
