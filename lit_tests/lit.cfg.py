"""Configuration of the FileCheck tests: `lit lit_tests`."""

import sys
from pathlib import Path

import lit.formats

config.name = "pipeline"  # noqa: F821
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.excludes = ["Inputs"]  # noqa: F821
config.environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])  # noqa: F821
config.substitutions += [  # noqa: F821
    ("pipeline-opt", f"{sys.executable} -m pipeline.tools.opt"),
    ("pipeline-compile", f"{sys.executable} -m pipeline.tools.compile"),
    ("FileCheck", f"{sys.executable} -m filecheck"),
]
