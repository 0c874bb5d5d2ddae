"""The commands pipeline-compile, pipeline-run and their kin: they find the package `pipeline`, or say what is found."""

from __future__ import annotations

import importlib
import sys


def _run(name: str) -> int:
    """Runs a driver; where another module is called `pipeline`, says where that lies."""
    try:
        driver = importlib.import_module(f"pipeline.tools.{name}")
    except ModuleNotFoundError as error:
        found = sys.modules.get("pipeline")
        if found is None or not str(error.name).startswith("pipeline"):
            raise
        place = getattr(found, "__file__", None) or "a folder of that name"
        print(
            f"pipeline-{name}: error: Python finds {place} under the name pipeline, which is not the compiler of the "
            "package pipeline-mlir: rename it, or take its folder out of PYTHONPATH",
            file=sys.stderr,
        )
        return 1
    return int(driver.main())


def opt() -> int:
    """The command pipeline-opt."""
    return _run("opt")


def compile() -> int:
    """The command pipeline-compile."""
    return _run("compile")


def run() -> int:
    """The command pipeline-run."""
    return _run("run")


def generate() -> int:
    """The command pipeline-generate."""
    return _run("generate")


def cache() -> int:
    """The command pipeline-cache."""
    return _run("cache")


def bisect() -> int:
    """The command pipeline-bisect."""
    return _run("bisect")


def report() -> int:
    """The command pipeline-report."""
    return _run("report")
