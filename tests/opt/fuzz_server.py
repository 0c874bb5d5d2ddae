"""Runs pipeline-opt many times without starting Python and importing MLIR each time.

Reads a JSON list of arguments from each line of stdin; answers with a JSON object of exit code, stdout and stderr. The
driver forks for its work, so that each run starts from the same fresh state.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile

import pipeline.tools.opt_work  # noqa: F401  imported once, for all children
from pipeline.passmanager import registry
from pipeline.tools.opt import main

SECONDS = 20


def run(arguments):
    saved = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        signal.alarm(SECONDS)  # ends this server, which the test takes for a hang
        try:
            code = main(arguments)
        except SystemExit as wish:
            code = wish.code
        signal.alarm(0)
        sys.stdout.flush()
        sys.stderr.flush()
        for number, stream in enumerate(saved, 1):
            os.dup2(stream, number)
            os.close(stream)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode())
    return {"code": code, "stdout": texts[0], "stderr": texts[1]}


registry.passes()
for line in sys.stdin:
    answer = run(json.loads(line))
    print(json.dumps(answer), flush=True)
