"""Runs docs/writing-a-pass.md: writes its files, runs its commands, compares what they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from driver import ROOT

PAGE = (ROOT / "docs" / "writing-a-pass.md").read_text()
FILES = re.findall(r"^```(?:python|mlir) (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^\$ (.*)\n((?:.*\n)*?)(?=^\$ |^```$)", PAGE, re.MULTILINE)
#: lit hands no PYTHONPATH on; readers of the page have the package installed, and tests test the tree they are in.
THIS_TREE = f'config.environment["PYTHONPATH"] = "{ROOT}"\n'


def test_tutorial(tmp_path):
    assert len(FILES) == 6 and len(COMMANDS) == 5  # so that no block is lost to a slip in the page's markup
    for name, text in FILES:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + THIS_TREE * (path.name == "lit.cfg.py"))
    for command, expected in COMMANDS:
        assert _run(command, tmp_path) == expected, command
    assert (tmp_path / "tests" / "Output").is_dir()  # lit, which is quiet, did run the test


def _run(command: str, folder: Path) -> str:
    programs = {"pipeline-opt": "-m pipeline.tools.opt", "lit": "-c 'from lit.main import main; main()'"}
    program, _, arguments = command.partition(" ")
    finished = subprocess.run(
        f"{sys.executable} {programs[program]} {arguments}",
        shell=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return finished.stdout
