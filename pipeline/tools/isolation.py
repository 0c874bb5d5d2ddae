"""Runs work in a forked child, so that MLIR's abort() and crashes kill the child and not the driver.

The child leaves no core file. What native code writes to stderr is kept apart from what Python writes: it is passed on
if the child ends well, and is where the reason is found if it does not.
"""

from __future__ import annotations

import mmap
import os
import re
import resource
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

_PROGRESS_BYTES = 4096


class Progress:
    """What the child is doing now, in memory that the parent can still read after the child has died."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _PROGRESS_BYTES)

    def set(self, chunk: int, doing: str) -> None:
        """Notes that the child works on the input's chunk number `chunk`, and at what."""
        said = f"{chunk} {doing}".encode()[: _PROGRESS_BYTES - 1]
        self._memory[: len(said) + 1] = said + b"\0"

    @property
    def chunk(self) -> int:
        """The number of the chunk; 0 at the start."""
        return int(self._text().partition(" ")[0] or 0)

    @property
    def doing(self) -> str:
        """What was done to it."""
        return self._text().partition(" ")[2] or "the start"

    def _text(self) -> str:
        return self._memory[:].partition(b"\0")[0].decode(errors="replace")


@dataclass(frozen=True)
class Crash:
    """How a child died."""

    signal_name: str
    reason: str


def run_isolated(work: Callable[[], int]) -> int | Crash:
    """The exit code of `work`, run in a child of its own; a `Crash` if a signal killed the child."""
    with tempfile.TemporaryFile() as noise:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            _run_and_exit(work, noise)
        status = os.waitpid(child, 0)[1]
        noise.seek(0)
        said = noise.read().decode(errors="replace")
    if os.WIFSIGNALED(status):
        return Crash(signal.Signals(os.WTERMSIG(status)).name, _reason(said))
    sys.stderr.write(said)
    return os.WEXITSTATUS(status)


def _run_and_exit(work: Callable[[], int], noise: IO[bytes]) -> None:
    """The child's whole life; does not return, and skips the interpreter's own shutdown, which is the parent's."""
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8", errors="backslashreplace")
        os.dup2(noise.fileno(), 2)
        code = work()
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads our output has seen enough
        pass
    except KeyboardInterrupt:
        code = 130
    finally:
        sys.stderr.flush()
        os._exit(code)


def _reason(noise: str) -> str:
    """The line of native output that says why: LLVM's own words, else the first line."""
    fatal = re.search(r"LLVM ERROR: (.*)|(?:Assertion|terminate called).*", noise)
    if fatal:
        return fatal.group(1) or fatal.group()
    return next((line.strip() for line in noise.splitlines() if line.strip()), "no reason given")
