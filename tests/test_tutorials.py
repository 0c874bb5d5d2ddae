"""The tutorials: their Python runs, with the assertions in it."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = sorted((DOCS / "tutorials").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_python_runs(page, tmp_path, monkeypatch):
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    name = f"tutorial_{page.stem.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text("\n".join(blocks))
    monkeypatch.syspath_prepend(tmp_path)  # torch looks the module up of what it captures
    importlib.import_module(name)


def test_the_table_of_the_own_target_is_the_one_that_is_shown():
    text = (DOCS / "tutorials" / "own-target.md").read_text()
    (shown,) = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert f'TABLE = """\n{shown}"""' in text
