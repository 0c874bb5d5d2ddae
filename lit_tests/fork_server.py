"""Runs pipeline-opt for the FileCheck tests, without starting Python and importing MLIR each time.

Importing takes ten times as long as what a test does. Each run is a fork of this process, which has imported
everything and done nothing. `fork_client.py` is what a test starts. Ends when its stdin does, with lit.

    fork_server.py <number of a listening socket>
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
import traceback

import pipeline.tools.opt_work  # noqa: F401  imported once, for all children
from pipeline.passmanager import registry
from pipeline.tools.opt import main


def serve(listener: socket.socket) -> None:
    """Forks for each client, until stdin ends."""
    while True:
        ready, _, _ = select.select([listener, 0], [], [], 1)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if 0 in ready:
            return
        if listener in ready:
            client, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                answer(client)
            client.close()


def answer(client: socket.socket) -> None:
    """Becomes what the client would be, had it started the driver; tells it the exit code."""
    code: object = 1
    try:
        first, streams, _, _ = socket.recv_fds(client, 1, 3)
        folder, environment, arguments = json.loads(first + client.makefile("rb").read())
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        code = main(arguments)
    except SystemExit as wish:
        code = wish.code
    except BaseException:  # as Python itself does at the end of a program: it prints it, and exits with 1
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    client.sendall(str(code or 0).encode())
    os._exit(0)


if __name__ == "__main__":
    registry.passes()
    serve(socket.socket(fileno=int(sys.argv[1])))
