"""Tests compile for themselves: what an earlier run left in the user's disk cache is not looked at.

Within a run they share the code of kernels, as models do that are compiled one after the other on a user's machine. A
test with a cache of its own has it to itself; one that puts something in the place of pipeline's own shares nothing.
"""

import gc
import logging
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from turns import items_of_turn

os.environ["PIPELINE_CACHE_SIZE"] = "0"

# An op that should be lowered is not to run in torch behind a test's back.
os.environ.setdefault("PIPELINE_FALLBACK", "error")

# More threads than processors, as some tests ask for on purpose, are slow where those that wait spin.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


#: Where the kernels of a run are, on its way to the workers, and how many bytes they may take.
KERNELS, KERNEL_BYTES = pytest.StashKey[str](), 4 << 30


class Sharing:
    """Whether the test that runs shares kernels."""

    is_on = True


@pytest.fixture(autouse=True)
def kernels_of_its_own(request):
    """What is made of kernels by passes that a test changes is its own."""
    Sharing.is_on = "monkeypatch" not in request.fixturenames
    yield
    Sharing.is_on = True


@pytest.fixture(autouse=True)
def threads_of_its_own():
    """How many threads eager mode takes, by which its sums differ, is what it was before the test."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 0
    yield
    if torch and torch.get_num_threads() != before:
        torch.set_num_threads(before)


def pytest_addoption(parser):
    """`make test` names a turn; who names none has all cases."""
    parser.addoption("--turn", type=int, metavar="N", help="of tests with many cases, some: those of turn N")


def pytest_report_header(config):
    """What repeats a run."""
    turn = config.getoption("turn")
    return None if turn is None else f"cases of turn {turn}"


def pytest_collection_modifyitems(config, items):
    """Leaves the cases of other turns out."""
    turn = config.getoption("turn")
    if turn is not None:
        taken = items_of_turn(items, turn)
        config.hook.pytest_deselected(items=[item for item in items if item not in set(taken)])
        items[:] = taken


def pytest_configure(config):
    """Ctrl-C is what Python takes it for: a shell has what it runs in the background ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        config.stash[KERNELS] = tempfile.mkdtemp(prefix="kernels-of-tests-")
    share_kernels(Path(config.workerinput["kernels"] if hasattr(config, "workerinput") else config.stash[KERNELS]))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Workers are told where the kernels are."""
    node.workerinput["kernels"] = node.config.stash[KERNELS]


def pytest_unconfigure(config):
    """The kernels go with the run."""
    if KERNELS in config.stash:
        shutil.rmtree(config.stash[KERNELS], ignore_errors=True)


def share_kernels(folder):
    """Has compilations that use no disk cache keep the code of their kernels in a folder, and nothing else."""
    from pipeline import compile_cache
    from pipeline.disk_cache import DiskCache

    of_users = compile_cache.kernels_of

    class KernelsOfTests(compile_cache.KernelCache):
        def put_all(self, entries):
            super().put_all(entries)
            self.disk.put_all(self.new)
            self.new.clear()

    def kernels_of(caches):
        own = KernelsOfTests(DiskCache(folder, KERNEL_BYTES)) if Sharing.is_on else None
        return of_users(caches) or own

    compile_cache.kernels_of = kernels_of


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
