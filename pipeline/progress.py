"""What a compilation says of itself while it runs: a bar on a terminal once it takes long, or lines in the logs.

`timing.stage` tells which stage has begun, `kernels` how much code there is by now. The bar is drawn when one of them
says something, and by no thread: compilations fork.
"""

from __future__ import annotations

import contextlib
import contextvars
import importlib.util
import logging
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from pipeline import logs, timing

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_stages, _passes = logs.log("compile"), logs.log("passes")

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

    It is said in the logs `compile` and `passes` where these are to say it, else by a bar on a terminal, if rich is
    there to draw it.

    Args:
        verbose: the log `compile` is to say it, whatever its level; if nobody has said where logs go, on stderr.
    """
    if _reporter.get() is not None:
        yield
        return
    on_terminal = sys.stderr is not None and sys.stderr.isatty() and importlib.util.find_spec("rich") is not None
    is_logged = verbose or _stages.isEnabledFor(logging.INFO) or _passes.isEnabledFor(logging.INFO)
    reporter = _Log(verbose) if is_logged else _Bar() if on_terminal else None
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
    """Stages are lines of the log `compile`; passes of the log `passes`, or of the other one for debugging."""

    def __init__(self, verbose: bool) -> None:
        self._level = _stages.level
        if verbose:
            logs.show()
        if verbose and not _stages.isEnabledFor(logging.INFO):
            _stages.setLevel(logging.INFO)

    def begin(self, name: str, depth: int) -> None:
        """A stage has begun."""

    def end(self, name: str, depth: int, seconds: float, is_pass: bool) -> None:
        """A stage has ended."""
        if is_pass and _passes.isEnabledFor(logging.INFO):
            _passes.info("%s: %.3f s", name, seconds)
        else:
            _stages.log(logging.DEBUG if is_pass else logging.INFO, "%s%s: %.2f s", "  " * depth, name, seconds)

    def kernels(self, done: int, total: int) -> None:
        """There is machine code of so many kernels."""
        _stages.info("    %d of %d kernels", done, total)

    def close(self) -> None:
        """Leaves the log as it was."""
        _stages.setLevel(self._level)


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
