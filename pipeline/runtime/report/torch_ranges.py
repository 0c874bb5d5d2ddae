"""Ranges of torch.profiler around kernels, for code that times them: torch is asked for, never imported."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.runtime.interface.code import Site
from pipeline.runtime.report.event_record import Record

_HOOK = ctypes.CFUNCTYPE(None, ctypes.c_int64)


def is_profiling() -> bool:
    """Whether a profiler of torch's watches this thread."""
    torch = sys.modules.get("torch")
    return torch is not None and torch._C._autograd._profiler_enabled()


@contextlib.contextmanager
def shown(record: Record, sites: Sequence[Site]) -> Iterator[None]:
    """Shows each run of a site in the `with` block as a range of its name, in this thread."""
    named = sys.modules["torch"]._C._profiler._RecordFunctionFast
    open_ranges: list[Any] = []

    @_HOOK
    def begin(site: int) -> None:
        open_ranges.append(named(sites[site].name if site else "pipeline.main"))
        open_ranges[-1].__enter__()

    @_HOOK
    def end(site: int) -> None:
        open_ranges.pop().__exit__(None, None, None)

    record.call(*(ctypes.cast(hook, ctypes.c_void_p).value or 0 for hook in (begin, end)))
    try:
        yield
    finally:
        record.call(0, 0)
