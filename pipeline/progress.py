"""What a compilation says of itself while it runs: a bar on a terminal once it takes long, or lines in the log.

`timing.stage` tells which stage has begun, `kernels` how much code there is by now. The bar is drawn when one of them
says something, and by no thread: compilations fork.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from pipeline import timing

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

logger = logging.getLogger("pipeline.compile")

#: After so many seconds a compilation takes long.
LONG = 2.0

#: No more often than so many seconds the bar is drawn.
_PERIOD = 0.1


class Reporter(timing.Watcher, Protocol):
    """Is told how far a compilation is."""

    def kernels(self, done: int, total: int) -> None:
        """There is machine code of so many kernels."""

    def close(self) -> None:
        """The compilation has ended."""


_reporter: contextvars.ContextVar[Reporter | None] = contextvars.ContextVar("pipeline_progress", default=None)


@contextlib.contextmanager
def reported(verbose: bool) -> Iterator[None]:
    """Reports what is compiled in the `with` block (in this thread), if nobody does already.

    Args:
        verbose: say it in the log and not in a bar; if nobody has said where logs go, on stderr.
    """
    if _reporter.get() is not None:
        yield
        return
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    reporter = _Log() if verbose else _Bar() if on_terminal else None
    if reporter is None:
        yield
        return
    token = _reporter.set(reporter)
    try:
        with timing.watched(reporter):
            yield
    finally:
        reporter.close()
        _reporter.reset(token)


def kernels(done: int, total: int) -> None:
    """Tells that there is machine code of so many kernels."""
    reporter = _reporter.get()
    if reporter is not None:
        reporter.kernels(done, total)


class _Log:
    """Stages are lines of the log, passes of the log for debugging."""

    def __init__(self) -> None:
        self._handler: logging.Handler | None = None
        if not logger.hasHandlers():
            self._handler = logging.StreamHandler()
            self._handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
            logger.addHandler(self._handler)
        self._level = logger.level
        if not logger.isEnabledFor(logging.INFO):
            logger.setLevel(logging.INFO)

    def begin(self, name: str, depth: int) -> None:
        """A stage has begun."""

    def end(self, name: str, depth: int, seconds: float, is_pass: bool) -> None:
        """A stage has ended."""
        logger.log(logging.DEBUG if is_pass else logging.INFO, "%s%s: %.2f s", "  " * depth, name, seconds)

    def kernels(self, done: int, total: int) -> None:
        """There is machine code of so many kernels."""
        logger.info("    %d of %d kernels", done, total)

    def close(self) -> None:
        """Leaves the log as it was."""
        logger.setLevel(self._level)
        if self._handler is not None:
            logger.removeHandler(self._handler)


class _Bar:
    """A bar of kernels, and the stage beside it."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._begun = self._drawn = time.monotonic()
        self._names: list[str] = []
        self._kernels = (0, 0)
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def begin(self, name: str, depth: int) -> None:
        """A stage has begun."""
        self._names[depth:] = [name]
        self._draw()

    def end(self, name: str, depth: int, seconds: float, is_pass: bool) -> None:
        """A stage has ended."""
        self._draw()

    def kernels(self, done: int, total: int) -> None:
        """There is machine code of so many kernels."""
        self._kernels = (done, total)
        self._draw(is_due=done == total)

    def close(self) -> None:
        """Takes the bar away."""
        if self._progress is not None:
            self._progress.stop()

    def _draw(self, *, is_due: bool = False) -> None:
        now = time.monotonic()
        is_due = is_due or now - self._drawn >= _PERIOD
        if now - self._begun < LONG or not is_due or os.getpid() != self._process:
            return
        self._drawn = now
        if self._progress is None:
            self._start()
        assert self._progress is not None and self._task is not None
        done, total = self._kernels
        where = f"{now - self._begun:.0f} s, {': '.join(self._names[:2])}"
        self._progress.update(self._task, description=where, completed=done, total=total or None)
        self._progress.refresh()

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._progress = Progress(
            TextColumn("compiling"),
            BarColumn(20),
            MofNCompleteColumn(),
            TextColumn("kernels, {task.description}"),
            console=Console(file=sys.stderr),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task("", total=None)
        self._progress.start()
