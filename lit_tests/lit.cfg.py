"""Configuration of the FileCheck tests: `lit lit_tests`."""

import atexit
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import lit.formats

HERE = Path(__file__).resolve().parent


def start_fork_server():
    """Starts what runs pipeline-opt; returns the path of its socket. It ends with lit and all of lit's workers."""
    folder = tempfile.TemporaryDirectory(prefix="pipeline-lit-")
    path = os.path.join(folder.name, "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(128)
        server = subprocess.Popen(
            [sys.executable, HERE / "fork_server.py", str(listener.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            env=os.environ | {"PYTHONPATH": str(HERE.parent)},
        )
    owner = os.getpid()

    def end():
        if os.getpid() == owner:
            server.stdin.close()
            folder.cleanup()

    atexit.register(end)
    return path


config.name = "pipeline"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["Inputs"]
config.environment["PYTHONPATH"] = str(HERE.parent)
config.substitutions += [
    ("pipeline-opt", f"{sys.executable} -S {HERE / 'fork_client.py'} {start_fork_server()}"),
    ("pipeline-compile", f"{sys.executable} -m pipeline.tools.compile"),
    ("FileCheck", f"{sys.executable} -m filecheck"),
]
