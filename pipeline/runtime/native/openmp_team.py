"""The threads that share the work of kernels: those of libgomp, which are torch's own where torch is there.

Code asks for a team by `GOMP_parallel`. Inside of a parallel region of torch's, or of another library's on the same
libgomp, a team is one thread, so that nothing runs more threads than there are processors.
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

#: A name in object files whose code asks for threads.
SPAWN = b"GOMP_parallel"

#: The global of the code that says how many; 0 for as many as OpenMP says.
THREADS = "pipeline_threads"

_FUNCTIONS = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads", "omp_get_max_threads")

_kept: list[Any] = []

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
def addresses() -> dict[str, int]:
    """Where the functions of libgomp are; without libgomp, where functions are that run everything on one thread."""
    library = _libgomp()
    if library is not None:
        return {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in _FUNCTIONS}
    warnings.warn("libgomp.so.1 is not there: kernels run on one thread", RuntimeWarning, stacklevel=2)
    work = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    alone = (
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)(
            lambda function, data, count, flags: work(function)(data)
        ),
        ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0),
        ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1),
        ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1),
    )
    _kept.extend(alone)
    return {
        name: ctypes.cast(function, ctypes.c_void_p).value or 0
        for name, function in zip(_FUNCTIONS, alone, strict=True)
    }


@functools.cache
def _most() -> Callable[[], int]:
    """OpenMP's own number of threads for the calling thread."""
    return ctypes.CFUNCTYPE(ctypes.c_int)(addresses()["omp_get_max_threads"])


def _libgomp() -> Any:
    """A library by which libgomp's functions are found, or None if there is none.

    Where torch is in the process, it is torch's own library, which finds the libgomp that it was linked to: other
    packages (scikit-learn) bring copies of libgomp, each with threads and settings of its own. Else it is the libgomp
    that is there already, or the system's.
    """
    with open("/proc/self/maps") as maps:
        loaded = dict.fromkeys(re.findall(r"(/\S*/(?:libtorch_cpu|libgomp)\S*\.so\S*)$", maps.read(), re.MULTILINE))
    for name in [*sorted(loaded, key=lambda path: "/libtorch_cpu" not in path), "libgomp.so.1"]:
        try:
            library = ctypes.CDLL(name)
            if all(hasattr(library, function) for function in _FUNCTIONS):
                return library
        except OSError:
            continue
    return None
