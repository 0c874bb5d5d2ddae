"""CUDA graphs: the launches of a call, recorded once for given addresses and then handed to the driver in one go."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

#: How many graphs an executable keeps, and how many sets of addresses it remembers to have met once.
_MOST_GRAPHS, _MOST_MET = 8, 64

Check = Callable[[Any, str], Any]


class Graphs:
    """The graphs of one executable, by what they depend on: addresses, and numbers that are passed."""

    def __init__(self, driver: Any, check: Check):
        self._driver = driver
        self._check = check
        self._stream: Any = None
        self._met: OrderedDict[Hashable, None] = OrderedDict()
        self._known: OrderedDict[Hashable, tuple[Any, Any]] = OrderedDict()

    def __del__(self) -> None:
        for graph, _ in self._known.values():
            self._driver.cuGraphExecDestroy(graph)

    def replay(self, key: Hashable, stream: Any, record: Callable[[Any], Any]) -> bool:
        """Launches the graph for `key` on a stream; False if the caller has to do the work himself.

        That is so the first time that a key comes. The second time `record` does the work on the stream that it gets,
        where it is recorded; it returns what must live as long as the graph.

        Raises:
            PipelineError: the driver reports an error.
        """
        if key not in self._known and key not in self._met:
            self._met[key] = None
            if len(self._met) > _MOST_MET:
                self._met.popitem(last=False)
            return False
        if key not in self._known:
            self._known[key] = self._record(record)
            if len(self._known) > _MOST_GRAPHS:
                (oldest, _) = self._known.popitem(last=False)[1]
                self._check(self._driver.cuGraphExecDestroy(oldest), "giving back a graph")
        self._known.move_to_end(key)
        self._check(self._driver.cuGraphLaunch(self._known[key][0], stream), "launching the graph of a call")
        return True

    def _record(self, record: Callable[[Any], Any]) -> tuple[Any, Any]:
        """The graph of what `record` launches, and what that keeps; on a stream of our own, for not all can record."""
        driver = self._driver
        if self._stream is None:
            flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
            self._stream = self._check(driver.cuStreamCreate(flags), "a stream to record on")
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self._check(driver.cuStreamBeginCapture(self._stream, mode), "recording a graph")
        try:
            kept = record(self._stream)
        finally:
            captured = driver.cuStreamEndCapture(self._stream)
        graph = self._check(captured, "recording a graph")
        whole = self._check(driver.cuGraphInstantiate(graph, 0), "making a graph of a call")
        self._check(driver.cuGraphDestroy(graph), "giving back a graph")
        return whole, kept
