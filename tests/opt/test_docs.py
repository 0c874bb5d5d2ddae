"""The reference of passes is what the registry says."""

from __future__ import annotations

import re

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
