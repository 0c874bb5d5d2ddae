"""Which work has ended the processes of this machine that did it, so that it is not tried for ever.

Ray tries work again until it is done, since it cannot tell a machine that went away from work that ends its process.
Whoever begins something leaves a file that says so, and takes it away at the end: those of dead processes are left.
They outlive processes, and go with the machine.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

#: Files of dead processes that are so old, in seconds, say nothing any more.
_OLD = 86_400


class Attempts:
    """Marks the work of one process, which does one thing after the other, in a run that has a name of its own."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._folder = Path(tempfile.gettempdir()) / f"pipeline-attempts-{os.getuid()}"
        self._folder.mkdir(mode=0o700, exist_ok=True)
        for file in self._folder.iterdir():
            with contextlib.suppress(OSError):  # another process may delete it
                if file.stat().st_mtime < time.time() - _OLD:
                    file.unlink()

    def ended_by(self, work: str) -> int:
        """How many processes have ended while they did this."""
        return len(self._left_by_dead(work))

    @contextlib.contextmanager
    def doing(self, work: str) -> Iterator[None]:
        """Marks work for as long as the `with` block takes; when it is done, nothing is known against it."""
        mark = self._folder / f"{self._run}-{work}-{os.getpid()}"
        mark.touch()
        try:
            yield
        finally:
            mark.unlink(missing_ok=True)
        for file in self._left_by_dead(work):
            file.unlink(missing_ok=True)

    def _left_by_dead(self, work: str) -> list[Path]:
        marks = self._folder.glob(f"{self._run}-{work}-*")
        return [mark for mark in marks if not Path(f"/proc/{mark.name.rpartition('-')[2]}").exists()]


def name_of(batch: Mapping[str, np.ndarray]) -> str:
    """A name for the work that a batch is: by its columns' names and types and its first and last rows."""
    digest = hashlib.blake2b(digest_size=16)
    for name, column in batch.items():
        digest.update(repr((name, column.dtype, column.shape)).encode())
        for row in (column[:1], column[-1:]):
            digest.update(repr(row.tolist()).encode() if row.dtype == object else row.tobytes())
    return digest.hexdigest()
