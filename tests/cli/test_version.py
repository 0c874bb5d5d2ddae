"""`--version` of every driver: what it is built on, without loading any of that but LLVM."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata

import pytest

import pipeline
from pipeline.tools import cache, opt, run
from pipeline.tools import compile as compile_driver


def test_versions_of_what_it_is_built_on(capsys):
    for driver, name in ((opt, "opt"), (compile_driver, "compile"), (run, "run"), (cache, "cache")):
        with pytest.raises(SystemExit) as stop:
            driver.main(["--version"])
        assert stop.value.code == 0
        first, torch, torch_mlir, llvmlite, python = capsys.readouterr().out.splitlines()
        assert first == f"pipeline-{name} {pipeline.__version__}"
        assert torch.split() == ["torch", metadata.version("torch")]
        assert re.fullmatch(rf"  torch-mlir {metadata.version('torch-mlir')}, MLIR of LLVM \d+\.\S+", torch_mlir)
        assert re.fullmatch(rf"  llvmlite {metadata.version('llvmlite')}, code generator of LLVM \d+\.\S+", llvmlite)
        assert python.startswith("  Python 3.")


def test_neither_torch_nor_mlir_is_loaded():
    code = """
import sys
from pipeline.tools.opt import main
try:
    main(["--version"])
finally:
    assert not {"torch", "torch_mlir"} & {name.partition(".")[0] for name in sys.modules}
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
