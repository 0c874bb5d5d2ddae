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


NEGATIONS = """
#id = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %once = arith.negf %in : f32
    %twice = arith.negf %once : f32
    linalg.yield %twice : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
"""

COMPILE = """
import numpy as np, pipeline
from pipeline.passmanager import registry

registry.load_plugin("fold_negation.py")
x = np.arange(4, dtype=np.float32)
for passes in ({}, {"linalg": "fold-negation"}):
    exe = pipeline.compile(open("negations.mlir").read(), passes=passes)
    assert (exe(x) == x).all()
    print([remark.reason for remark in exe.remarks if remark.pass_name == "fold-negation"])
"""


def test_the_pass_in_the_compiler(tmp_path):
    (tmp_path / "fold_negation.py").write_text(dict(FILES)["fold_negation.py"])
    (tmp_path / "negations.mlir").write_text(NEGATIONS)
    finished = subprocess.run(
        [sys.executable, "-c", COMPILE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert finished.stdout.splitlines() == ["[]", "['folded a double negation']"]
