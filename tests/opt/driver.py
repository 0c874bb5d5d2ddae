"""Runs pipeline-opt in a process of its own."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MARKS = ROOT / "lit_tests" / "tools" / "Inputs" / "marks.py"


def run_opt(*arguments, stdin="", paths=(), cwd=None, env=()):
    """The finished process of `pipeline-opt arguments`, to which core files are allowed.

    `paths` come first on PYTHONPATH.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*paths, ROOT))), **dict(env)}
    return subprocess.run(
        [sys.executable, "-m", "pipeline.tools.opt", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2),
        check=False,
    )
