"""The reference of passes is what the registry says; the site builds, and its links lead somewhere."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from types import SimpleNamespace

from driver import ROOT

from pipeline.passmanager import registry
from pipeline.tools.docs import main, reference


def test_reference_is_fresh(capsys):
    assert main(["--check", str(ROOT / "docs" / "passes.md")]) == 0, capsys.readouterr().err


def test_a_stale_reference_is_found_and_written_anew(tmp_path, capsys):
    page = tmp_path / "passes.md"
    page.write_text(reference().replace("remove-unused-results", "remove-argmax"))
    assert main(["--check", str(page)]) == 1
    assert "not fresh" in capsys.readouterr().err
    assert main([str(page)]) == 0
    assert main(["--check", str(page)]) == 0


def test_every_pass_of_ours_has_a_section_and_every_option_help():
    for name, cls in registry.passes().items():
        assert f"\n### {name}\n" in reference()
        assert cls.summary().endswith("."), name
        assert all(option.help for option in cls.options().values()), name


def test_links_lead_somewhere():
    links = re.findall(r"\]\((\.\./[^)]+)\)", reference())
    assert len(links) >= 2 * len(registry.passes())
    assert all((ROOT / "docs" / link).is_file() for link in links)


def test_the_site_has_no_warnings(tmp_path):
    """Of links and anchors, of pages that no menu has, of names that the API reference does not find."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", ROOT / "mkdocs.yml", "-d", tmp_path]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    api = (tmp_path / "api" / "executable.html").read_text()
    assert 'id="pipeline.runtime.executable.Executable.assert_fused"' in api
    assert not re.findall(r'<(?:script|link)[^>]*(?:src|href)="https?:', api)  # it loads nothing from elsewhere
    assert (
        'title="c_target.py"' not in (page := (tmp_path / "adding-a-target.html").read_text()) and "c_target.py" in page
    )


def test_links_to_files_of_the_repository(caplog):
    spec = importlib.util.spec_from_file_location("docs_hooks", ROOT / "scripts" / "docs_hooks.py")
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    page = SimpleNamespace(file=SimpleNamespace(src_uri="tutorials/page.md"))
    logs = "../../pipeline/logs.py"
    text = f"[Source]({logs}), [`pipeline/logs.py`]({logs}), [x](../fusion.md), [y](../../no.py)"
    shown = hooks.on_page_markdown(text, page=page, config={"docs_dir": str(ROOT / "docs")})
    assert shown == "Source `pipeline/logs.py`, `pipeline/logs.py`, [x](../fusion.md), y `no.py`"
    assert [record.getMessage() for record in caplog.records] == [
        "tutorials/page.md links to ../../no.py, which is not there"
    ]


def test_pages_that_are_named_exist():
    folders = [ROOT / name for name in ("pipeline", "examples", "docs", "scripts", "tests")]
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    files += [file for folder in folders for ending in ("py", "md") for file in folder.rglob(f"*.{ending}")]
    named = {name for file in files for name in re.findall(r"\bdocs/[\w./-]+\.md\b", file.read_text())}
    assert len(named) > 20
    assert not [name for name in named if not (ROOT / name).is_file()]
