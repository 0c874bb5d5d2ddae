"""The commands pipeline-compile, pipeline-run and their kin: they find the package `pipeline`, or say what is found."""

from __future__ import annotations

import functools
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


#: What the commands call.
opt = functools.partial(_run, "opt")
compile = functools.partial(_run, "compile")
run = functools.partial(_run, "run")
generate = functools.partial(_run, "generate")
cache = functools.partial(_run, "cache")
bisect = functools.partial(_run, "bisect")
report = functools.partial(_run, "report")
