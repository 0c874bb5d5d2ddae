"""Ctrl-C while something is compiled ends as KeyboardInterrupt, whatever code it came up in made of it.

An exception in a Python function that MLIR calls comes back as a RuntimeError with a text, and libraries turn what they
do not expect into errors of their own.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Raises KeyboardInterrupt at the end of the `with` block if one was turned into something else inside.

    Does nothing outside of the main thread, where Python delivers no signals, and where signals are handled otherwise.
    """
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    came: list[int] = []

    def handler(number: int, frame: Any) -> None:
        came.append(number)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, handler)
    try:
        yield
    except BaseException as error:
        if came and not isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt
