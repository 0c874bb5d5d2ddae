"""A cluster of several nodes on this machine, for all tests here. It needs no network, and leaves nothing behind."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

#: Read by the processes that ray starts: no telemetry, a token of this session's own, no file in the home directory;
#: and workers of ordinary priority, as with ray's own (nice 15) they get a thirtieth of a core beside other tests.
os.environ |= {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_worker_niceness": "0",
}

#: A node that is gone is missed after some seconds, not half a minute; one that is busy is not.
_HEALTH = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 400,
    "health_check_timeout_ms": 4000,
    "health_check_failure_threshold": 5,
}

#: The loopback's, but not the address that ray takes for another one of this machine.
_ADDRESS = "127.0.0.2"

_STORE = 80 << 20


class LocalCluster:
    """A head with one core and a node with one core, which this process has joined."""

    def __init__(self):
        import ray
        import ray.data
        from ray.cluster_utils import Cluster

        self.folder = os.environ["RAY_TMPDIR"] = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # sockets' names are short
        self._sigterm = signal.getsignal(signal.SIGTERM)
        head = {"node_ip_address": _ADDRESS, "include_dashboard": False, "_system_config": _HEALTH}
        node = {"num_cpus": 1, "object_store_memory": _STORE}
        self.cluster = Cluster(initialize_head=True, head_node_args={**head, **node})
        self.add_node()
        ray.init(address=self.cluster.address, log_to_driver=False, configure_logging=False, _node_ip_address=_ADDRESS)
        ray.data.DataContext.get_current().enable_progress_bars = False

    def add_node(self):
        """Another node with one core."""
        return self.cluster.add_node(num_cpus=1, object_store_memory=_STORE, node_ip_address=_ADDRESS)

    def stop(self):
        """Ends all of its processes."""
        import ray

        ray.shutdown()
        self.cluster.shutdown()
        signal.signal(signal.SIGTERM, self._sigterm)
        del os.environ["RAY_TMPDIR"]
        deadline = time.monotonic() + 20
        while (left := _processes(self.folder)) and time.monotonic() < deadline:
            time.sleep(0.2)
        shutil.rmtree(self.folder, ignore_errors=True)
        assert not left


_clusters: list[LocalCluster] = []


@pytest.fixture
def cluster():
    """The cluster, which all tests here share."""
    if not _clusters:
        _clusters.append(LocalCluster())
    return _clusters[0].cluster


@pytest.hookimpl(trylast=True)  # behind the teardown of fixtures
def pytest_runtest_teardown(item, nextitem):
    """The tests of other folders, which this process may go on with, have no cluster beside them."""
    here = Path(__file__).parent
    if _clusters and (nextitem is None or here not in nextitem.path.parents):
        _clusters.pop().stop()


@pytest.fixture(autouse=True)
def sent_by_value(request):
    """Functions and classes of a test's module are sent as they are: no other process finds the module."""
    import ray.cloudpickle

    modules = (request.module, sys.modules[__name__])
    for module in modules:
        ray.cloudpickle.register_pickle_by_value(module)
    yield
    for module in modules:
        ray.cloudpickle.unregister_pickle_by_value(module)


class Node:
    """Another node with one core, which tests may kill."""

    def __init__(self, folder):
        import ray

        before = {one["NodeID"] for one in ray.nodes()}
        self._node = _clusters[0].add_node()
        _clusters[0].cluster.wait_for_nodes()
        (self.id,) = {one["NodeID"] for one in ray.nodes()} - before
        self._sign = folder / "the node is at work"
        self._killer = threading.Thread(target=self._wait_and_kill, daemon=True)

    def kill(self):
        """Ends it, if that has not been done."""
        if self._node in _clusters[0].cluster.list_all_nodes():
            _clusters[0].cluster.remove_node(self._node, allow_graceful=False)

    def in_the_middle(self):
        """Begins to wait until something is at work on the node, and kills it then.

        Returns a function for what is at work: on this node it ends there, on others it waits until that is so.
        """
        self._killer.start()
        lost, sign = self.id, self._sign

        def work():
            import ray

            if ray.get_runtime_context().get_node_id() == lost:
                sign.touch()
                time.sleep(100)
            _wait_for(sign)

        return work

    def was_killed(self):
        """Whether that has happened by now."""
        return self._sign.exists() and not self._killer.is_alive()

    def _wait_and_kill(self):
        _wait_for(self._sign)
        self.kill()


def _wait_for(file):
    deadline = time.monotonic() + 100
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.01)


@pytest.fixture
def node(cluster, tmp_path_factory):
    """A node that may be killed."""
    made = Node(tmp_path_factory.mktemp("node"))
    yield made
    made.kill()


def _processes(folder):
    """The processes whose command lines name the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if folder in command:
                found.append(f"{entry.name} {command[:100]}")
    return found
