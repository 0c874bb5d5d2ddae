"""Tests compile for themselves: what an earlier run left in the user's disk cache is not looked at."""

import gc
import logging
import os
import signal

os.environ["PIPELINE_CACHE_SIZE"] = "0"

# An op that should be lowered is not to run in torch behind a test's back.
os.environ.setdefault("PIPELINE_FALLBACK", "error")

# More threads than processors, as some tests ask for on purpose, are slow where those that wait spin.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def pytest_configure():
    """Ctrl-C is what Python takes it for: a shell has what it runs in the background ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    """What is imported by now stays: a tenth of the time that tests take goes into looking for garbage among it."""
    gc.collect()
    gc.freeze()
    _leave_out_torchs_traces()


def _leave_out_torchs_traces():
    """torch writes records with all graphs in them where its trace has a handler, and pytest gives it some.

    It does to all loggers that do not propagate; torch's own handler is for a folder that nobody has named.
    """
    trace = logging.getLogger("torch.__trace")
    trace.handlers.clear()
    trace.propagate = True
