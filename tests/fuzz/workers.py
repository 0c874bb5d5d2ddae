"""Trying programs in other processes, so that a crash or a hang there is an outcome like any other."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from outcomes import Outcome

#: Seconds that one program may take, beside what a process needs to start.
LIMIT = 60


class Worker:
    """A process that tries programs of all kinds; another one takes its place when it dies."""

    def __init__(self) -> None:
        self._start()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def outcomes(self, kind: str, programs: Sequence[Any]) -> list[Outcome]:
        """As of the kind's `attempt`, or `crashed` and `hung`: which of several it was is found by halves."""
        from kinds import KINDS

        together, found = KINDS[kind].together, []
        for first in range(0, len(programs), together):
            found += self._outcomes(kind, programs[first : first + together])
        return found

    def _outcomes(self, kind: str, programs: Sequence[Any]) -> list[Outcome]:
        answer = self._ask(kind, programs)
        if isinstance(answer, list):
            return answer
        self._stop()
        self._start()
        if len(programs) == 1:
            return [answer]
        half = len(programs) // 2
        return [*self._outcomes(kind, programs[:half]), *self._outcomes(kind, programs[half:])]

    def _ask(self, kind: str, programs: Sequence[Any]) -> list[Outcome] | Outcome:
        try:
            self._pipe.send((kind, list(programs)))
            if not self._pipe.poll(LIMIT + LIMIT * len(programs)):
                return "hung", f"no answer after {LIMIT + LIMIT * len(programs)} s"
            return self._pipe.recv()
        except (EOFError, BrokenPipeError):
            self._process.join()
            return "crashed", f"exit code {self._process.exitcode}"

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def _stop(self) -> None:
        self._process.kill()
        self._process.join()


def _serve(pipe: Connection) -> None:
    """Tries what comes until nobody asks any more."""
    import torch
    from kinds import KINDS

    torch.set_num_threads(1)
    os.environ.setdefault("PIPELINE_VERIFY", "each")
    with contextlib.suppress(EOFError):
        while True:
            kind, programs = pipe.recv()
            pipe.send(KINDS[kind].attempt(programs))
