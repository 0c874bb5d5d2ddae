"""Object file → shared library, by the C compiler of the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from pipeline.errors import PipelineError
from pipeline.runtime.native.openmp_team import SPAWN


def link(code: bytes) -> bytes:
    """The shared library of an object file; raises `PipelineError` if there is no C compiler, or it fails."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise PipelineError(
            "--emit=so needs a C compiler that links: install one, name it in the environment variable CC, or take "
            "--emit=obj and link that yourself: cc -shared net.o -o net.so -lm"
        )
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "code.o", Path(folder) / "code.so"
        source.write_bytes(code)
        libraries = ["-lm", "-lgcc_s", *(["-lgomp"] if SPAWN in code else [])]
        command = [compiler, "-shared", "-o", str(target), str(source), *libraries]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise PipelineError(f"{compiler} could not link the library: {done.stderr.strip()}")
        return target.read_bytes()
