"""Work that may run away or end the process, done in a forked child within limits of time and memory.

What cannot be interrupted in this process can be ended in another one. The child shares this process's memory as it was
when it was forked, so that nothing has to be handed to it; what it finds out comes back pickled.
"""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import pickle
import signal
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from pipeline.errors import OptionError, PipelineError

T = TypeVar("T")

#: How often the child's memory is looked at, in seconds.
_INTERVAL = 0.05

#: In a child: what tells the parent what is being done.
_parent: Connection | None = None


@dataclass(frozen=True)
class ResourceLimits:
    """What a child may take.

    Attributes:
        seconds: by the clock.
        gigabytes: of memory, beyond what this process has.
    """

    seconds: float = 300.0
    gigabytes: float = 16.0

    @staticmethod
    def of_environment() -> ResourceLimits:
        """Those that `PIPELINE_LOWERING_SECONDS` and `PIPELINE_LOWERING_GIGABYTES` say.

        Raises:
            OptionError: one of them is no number above 0.
        """
        return ResourceLimits(_wanted("PIPELINE_LOWERING_SECONDS", 300.0), _wanted("PIPELINE_LOWERING_GIGABYTES", 16.0))


def _wanted(variable: str, usual: float) -> float:
    text = os.environ.get(variable, "")
    try:
        number = float(text) if text else usual
    except ValueError:
        number = 0.0
    if not number > 0:
        raise OptionError(f"{variable}={text!r}: expected a number above 0")
    return number


class Lost(Exception):
    """A child was ended, or ended itself, before its work was done.

    Attributes:
        reason: what happened.
        doing: what it had announced last; empty if nothing.
    """

    def __init__(self, reason: str, doing: str):
        super().__init__(reason)
        self.reason = reason
        self.doing = doing


def announce(doing: str) -> None:
    """In a child, says what it is about to do; elsewhere nothing."""
    if _parent is not None:
        _parent.send(("doing", doing))


def tell(message: Any) -> None:
    """In a child, has the parent's `run` hear a message."""
    if _parent is not None:
        _parent.send(("told", message))


def is_possible() -> bool:
    """Whether work can be done in a child: the system forks, and this process is no child itself."""
    return hasattr(os, "fork") and _parent is None


def run(work: Callable[[], T], limits: ResourceLimits, hear: Callable[[Any], None]) -> T:
    """What `work` returns in a forked child, which must be picklable; raises what it raises there.

    Args:
        hear: is called here with each message that `work` tells, in order.

    Raises:
        Lost: the child went beyond the limits, or a signal ended it.
        OSError: there is no child to be had.
    """
    receiving, sending = multiprocessing.Pipe(duplex=False)
    child = _fork()
    if child == 0:
        try:
            receiving.close()
            _work(work, sending)
        finally:
            os._exit(1)  # never on into what the parent does
    sending.close()
    try:
        kind, value = _watch(child, receiving, limits, hear)
    finally:
        receiving.close()
        _end(child)
    if kind == "raised":
        raise _rebuilt(*value)
    return value


def _fork() -> int:
    """os.fork; an interruption ends the parent alone, which ends its child."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with warnings.catch_warnings():  # newer Pythons warn of threads, whose locks the child may never get
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        return child
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(work: Callable[[], Any], sending: Connection) -> None:
    """All that the child does; it ends without what Python does at exit, which is the parent's business."""
    global _parent
    _parent = sending
    faulthandler.disable()  # a crash is the parent's to tell
    try:
        message = ("returned", work())
    except BaseException as error:
        message = ("raised", _packed(error))
    with contextlib.suppress(BaseException):  # a parent that is gone needs no answer
        sending.send(message)
    os._exit(0)


def _watch(child: int, receiving: Connection, limits: ResourceLimits, hear: Callable[[Any], None]) -> tuple[str, Any]:
    """The child's last message."""
    doing, deadline, before = "", time.monotonic() + limits.seconds, _resident(child)
    while True:
        if receiving.poll(_INTERVAL):
            try:
                kind, value = receiving.recv()
            except (EOFError, ConnectionResetError):
                raise Lost(_death(child), doing) from None
            if kind == "told":
                hear(value)
            elif kind == "doing":
                doing = value
            else:
                return kind, value
        if time.monotonic() > deadline:
            raise Lost(f"took more than {limits.seconds:g} s (PIPELINE_LOWERING_SECONDS allows more)", doing)
        if _resident(child) - before > limits.gigabytes * 2**30:
            size = f"{limits.gigabytes:g} GiB"
            raise Lost(f"took more than {size} of memory (PIPELINE_LOWERING_GIGABYTES allows more)", doing)


def _resident(process: int) -> int:
    """The memory that a process has, in bytes; 0 where that is not known."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def _death(child: int) -> str:
    """How a child ended that said nothing."""
    try:
        _, status = os.waitpid(child, 0)
    except ChildProcessError:  # somebody waits for all children of this process
        return "ended the process"
    if os.WIFSIGNALED(status):
        return f"ended the process with {signal.Signals(os.WTERMSIG(status)).name}"
    return f"ended the process with status {os.WEXITSTATUS(status)}"


def _end(child: int) -> None:
    """Ends a child that is perhaps still there, and lets the system forget it."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        if os.waitpid(child, os.WNOHANG)[0] == 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _packed(error: BaseException) -> tuple[Any, ...]:
    """An exception as its parts: pickle calls its constructor, which may take other arguments than it keeps."""
    if not isinstance(error, PipelineError):
        error.add_note("".join(["in a child process:\n", *traceback.format_exception(error)]))
    parts = type(error), error.args, vars(error)
    try:
        pickle.dumps(parts)
    except Exception:  # whatever its attributes raise
        return RuntimeError, (f"{type(error).__name__}: {error}",), {}
    return parts


def _rebuilt(kind: type[BaseException], args: tuple[Any, ...], state: dict[str, Any]) -> BaseException:
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(state)
    return error
