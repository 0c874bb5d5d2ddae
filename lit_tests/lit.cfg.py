"""Configuration of the FileCheck tests: `lit lit_tests`."""

import sys
from pathlib import Path

import lit.formats

config.name = "pipeline"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["Inputs"]
config.environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])
config.substitutions += [
    ("pipeline-opt", f"{sys.executable} -m pipeline.tools.opt"),
    ("pipeline-compile", f"{sys.executable} -m pipeline.tools.compile"),
    ("FileCheck", f"{sys.executable} -m filecheck"),
]
