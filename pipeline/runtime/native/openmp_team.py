"""The threads that share the work of kernels: those of libgomp, which are torch's own where torch is there.

Code is given libgomp's functions when it is loaded (`pipeline.runtime.interface.team`). Inside of a parallel region of
torch's, or of another library's on the same libgomp, a team is one thread, so that nothing runs more threads than there
are processors.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from pipeline.errors import OptionError
from pipeline.runtime.interface.team import LIBGOMP, USE_TEAM

#: A name in machine code that asks for threads.
SPAWN = USE_TEAM.encode()

#: The global of the code that says how many; 0 for as many as OpenMP says.
THREADS = "pipeline_threads"

#: The numbers of threads of the executables in this process.
_numbers: weakref.WeakSet[TeamSize] = weakref.WeakSet()
_is_forked = False


class TeamSize:
    """The number of threads of one executable's code, in the code's own memory; 0 for as many as OpenMP says.

    In a process that was forked it is 1, whatever it is set to: libgomp waits for ever there for threads that only the
    parent has.
    """

    def __init__(self, place: ctypes.c_int32):
        self._place = place
        _numbers.add(self)

    @property
    def value(self) -> int:
        """The number."""
        return self._place.value

    @value.setter
    def value(self, number: int) -> None:
        self._place.value = int(_is_forked) or number

    def team(self) -> int:
        """How many threads share the work of a kernel that the calling thread runs."""
        return self._place.value or _most()()


def _after_fork() -> None:
    global _is_forked
    _is_forked = True
    for number in _numbers:
        number.value = 1


os.register_at_fork(after_in_child=_after_fork)


def wanted(given: int | None) -> int | None:
    """How many threads: `given`, or what `PIPELINE_NUM_THREADS` says; None for as many as OpenMP says.

    Raises:
        OptionError: the environment variable is no number from 1.
    """
    text = os.environ.get("PIPELINE_NUM_THREADS", "")
    if given is not None or not text:
        return given
    if not text.isdecimal() or int(text) < 1:
        raise OptionError(f"PIPELINE_NUM_THREADS={text!r}: expected a number from 1")
    return int(text)


@functools.cache
def addresses() -> tuple[int, ...]:
    """Where the functions of libgomp are, in the order of `LIBGOMP`; none, and a warning, where there is no libgomp."""
    library = _libgomp()
    if library is None:
        warnings.warn("libgomp.so.1 is not there: kernels run on one thread", RuntimeWarning, stacklevel=2)
        return ()
    return tuple(ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in LIBGOMP)


@functools.cache
def _most() -> Callable[[], int]:
    """OpenMP's own number of threads for the calling thread."""
    found = addresses()
    return ctypes.CFUNCTYPE(ctypes.c_int)(found[LIBGOMP.index("omp_get_max_threads")]) if found else lambda: 1


def _libgomp() -> Any:
    """A library by which libgomp's functions are found, or None if there is none.

    Where torch is in the process, it is torch's own library, which finds the libgomp that it was linked to: other
    packages (scikit-learn) bring copies of libgomp, each with threads and settings of its own. Else it is the libgomp
    that is there already, or the system's.
    """
    try:
        with open("/proc/self/maps") as maps:
            text = maps.read()
    except OSError:
        text = ""
    loaded = dict.fromkeys(re.findall(r"(/\S*/(?:libtorch_cpu|libgomp)\S*\.so\S*)$", text, re.MULTILINE))
    for name in [*sorted(loaded, key=lambda path: "/libtorch_cpu" not in path), "libgomp.so.1"]:
        try:
            library = ctypes.CDLL(name)
            if all(hasattr(library, function) for function in LIBGOMP):
                return library
        except OSError:
            continue
    return None
