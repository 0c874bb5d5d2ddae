"""The cache that machines share by a URL: what is taken from it, what is refused, and that it stops no compilation."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest
import torch
from torch import nn

import pipeline
from pipeline import shared_cache, timing
from pipeline.disk_cache import DiskCache
from pipeline.errors import OptionError
from pipeline.shared_cache import SharedCache, TwoLevels, open_caches


@pytest.fixture
def url(tmp_path, monkeypatch):
    """A shared folder; the disk cache is that of one machine until `on` says another."""
    monkeypatch.setenv("PIPELINE_CACHE_URL", str(tmp_path / "shared"))
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "100M")
    monkeypatch.setenv("PIPELINE_CACHE_DIR", str(tmp_path / "here"))
    return str(tmp_path / "shared")


def net():
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh()).eval().requires_grad_(False)


def compiled(model=None):
    """The executable, and whether it came from a cache; what waits has been written then."""
    model, x = model or net(), torch.randn(3, 6)
    with timing.collect() as times:
        exe = pipeline.compile(model, (x,))
    torch.testing.assert_close(exe(x), model(x))
    shared = open_caches().shared
    if shared is not None:
        assert shared.flush()
    return exe, times.find("machine code") is None


def files(folder):
    return [file for file in Path(folder).rglob("*") if file.is_file()]


def said(exe):
    return [remark.reason for remark in exe.remarks if remark.pass_name == "cache"]


def test_what_one_machine_has_compiled_others_take(url, tmp_path, monkeypatch):
    assert not compiled()[1]
    (entry,) = files(url)
    assert entry.relative_to(url).parts[:2] == ("v1", entry.name[:2])
    counts = open_caches().shared.counts
    assert (counts.misses, counts.written, counts.refused, counts.failed) == (1, 1, 0, 0)
    monkeypatch.setenv("PIPELINE_CACHE_DIR", str(tmp_path / "there"))
    assert compiled()[1] and counts.hits == 1
    assert compiled()[1] and counts.hits == 1  # this machine has it now, too
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "0")
    assert compiled()[1] and counts.hits == 2  # without a disk it is taken from there each time


def test_behind_a_url_of_fsspecs(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_CACHE_URL", f"memory://{uuid.uuid4().hex}/cache")
    assert not compiled()[1]
    assert compiled()[1]
    monkeypatch.setenv("PIPELINE_CACHE_URL", f"local://{tmp_path}/cache")  # it has folders, which are made
    assert not compiled()[1]
    assert compiled()[1]
    assert files(tmp_path / "cache")


DAMAGE = {
    "cut short": (lambda data: data[:-1], "is damaged, or signed with another secret"),
    "half of it": (lambda data: data[: len(data) // 2], "is damaged"),
    "only its beginning": (lambda data: data[:20], "is damaged"),
    "a bit": (lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:], "is damaged"),
    "another format": (lambda data: b"pipeline cache 2\n" + data[17:], "is of another format"),
    "nothing": (lambda data: b"", "is of another format"),
}


@pytest.mark.parametrize("change", DAMAGE)
def test_what_is_damaged_or_foreign_is_refused_and_replaced(url, monkeypatch, change):
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "0")
    compiled()
    (entry,) = files(url)
    whole = entry.read_bytes()
    damage, reason = DAMAGE[change]
    entry.write_bytes(damage(whole))
    exe, taken = compiled()
    assert not taken and open_caches().shared.counts.refused == 1
    (sentence,) = said(exe)
    assert sentence.startswith(f"the entry {entry.name[:12]} of the shared cache {url} {reason}"), sentence
    exe, taken = compiled()
    assert taken and not said(exe)  # what was said is no part of the entry


def test_an_entry_under_another_key_is_refused(url, monkeypatch):
    cache = SharedCache(url)
    cache.put("aa", b"value")
    assert cache.flush()
    Path(url, "v1/bb").mkdir()
    Path(url, "v1/aa/aa").rename(Path(url, "v1/bb/bb"))
    assert cache.get("bb") is None and cache.counts.refused == 1


def test_secrets(url):
    signed = SharedCache(url, "secret")
    signed.put("aa", b"value")
    assert signed.flush() and SharedCache(url, "secret").get("aa") == b"value"
    for other in ("", "another"):
        cache = SharedCache(url, other)
        assert cache.get("aa") is None and cache.counts.refused == 1


def test_a_cache_that_cannot_be_reached_stops_nothing(url, tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_CACHE_SIZE", "0")
    Path(url).write_text("a file, where a folder is wanted")
    exe, taken = compiled()
    shared = open_caches().shared
    assert not taken and shared.counts.failed == 1
    sentences = said(exe)
    assert f"the shared cache {url} cannot be read: " in sentences[0] and "it is left alone for 60 s" in sentences[0]
    assert sentences[1].startswith("the outcome is not kept: the shared cache")
    compiled()
    assert shared.counts.failed == 1  # it is not asked again
    Path(url).unlink()
    monkeypatch.setattr(shared, "_silent_until", 0.0)
    assert not compiled()[1]
    assert compiled()[1]


def test_what_nobody_knows_is_an_error(monkeypatch):
    monkeypatch.setenv("PIPELINE_CACHE_URL", "nothing://bucket")
    with pytest.raises(OptionError, match="nothing://bucket: expected a path, or a URL that fsspec knows"):
        pipeline.compile(net(), (torch.randn(3, 6),))


class Slow:
    """A folder that takes its time."""

    def __init__(self):
        self.files, self.go = {}, threading.Event()

    def read(self, name):
        if name not in self.files:
            raise FileNotFoundError
        return self.files[name]

    def write(self, name, data):
        assert self.go.wait(10)
        self.files[name] = data


def test_it_is_written_behind_the_program(url, monkeypatch):
    cache, folder = SharedCache(url), Slow()
    cache._folder = folder
    for number in range(3):
        assert cache.put(f"key{number}", b"value") is None
    assert not folder.files and cache.get("key2") == b"value"  # it waits, and can be read
    assert not cache.flush(0.05)
    folder.go.set()
    assert cache.flush() and len(folder.files) == 3 and cache.counts.written == 3
    assert cache.get("key2") == b"value" and cache.counts.hits == 1
    deadline = time.monotonic() + 10
    while cache._writer is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert cache._writer is None  # no thread is left


def test_much_that_waits_makes_the_program_wait(url, monkeypatch):
    monkeypatch.setattr(shared_cache, "_MOST_WAITING", 10)
    cache, folder = SharedCache(url), Slow()
    cache._folder = folder
    cache.put("key0", b"0123456789")
    threading.Timer(0.1, folder.go.set).start()
    cache.put("key1", b"0123456789")
    assert folder.go.is_set() and cache.flush()


PROGRAM = """
import os, sys
from pipeline.shared_cache import open_caches
cache = open_caches()
for number in range(20):
    cache.put(f"key{number:02}", b"value" * 1000)
if os.fork() == 0:  # the child has no thread that writes
    other = open_caches()
    other.put("child", b"value")
    assert other.shared.flush(10)
    os._exit(0)
os.wait()
"""


def test_processes_that_end_or_write_at_the_same_time(url):
    processes = [subprocess.Popen([sys.executable, "-c", PROGRAM]) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0] * 3
    cache = SharedCache(url)
    for key in ["child", *(f"key{number:02}" for number in range(20))]:
        assert cache.get(key) is not None
    assert len(files(url)) == 21 and cache.counts.hits == 21  # no file is left over


def test_two_levels(tmp_path):
    disk, shared = DiskCache(tmp_path / "disk", 1 << 20), SharedCache(str(tmp_path / "shared"))
    both = TwoLevels(disk, shared)
    assert both.put("aa", b"value") is None and shared.flush()
    assert disk.get("aa") == shared.get("aa") == both.get("aa") == b"value"
    disk.shrink(0)
    assert both.get("aa") == disk.get("aa") == b"value"
    small = TwoLevels(DiskCache(tmp_path / "small", 10), shared)
    assert "more than the cache may take" in small.put("bb", b"value" * 9)
    assert shared.flush() and small.get("bb") == b"value" * 9
    assert TwoLevels(DiskCache(tmp_path, 0), None).is_off and not TwoLevels(DiskCache(tmp_path, 0), shared).is_off


def test_tuning_takes_choices_from_there(url, tmp_path, monkeypatch):
    model, x = nn.Sequential(nn.LayerNorm(48), nn.Softmax(-1)).eval().requires_grad_(False), torch.randn(9, 48)
    pipeline.compile(model, (x,), tune=60, num_threads=1)
    assert open_caches().shared.flush()
    monkeypatch.setenv("PIPELINE_CACHE_DIR", str(tmp_path / "there"))
    exe = pipeline.compile(model, (x,), tune=0, num_threads=1)
    assert [remark.reason for remark in exe.remarks if remark.pass_name == "tune"]
    assert all("no time was left" not in remark.reason for remark in exe.remarks)


def test_nobody_elses_environment_is_read():
    assert "PIPELINE_CACHE_URL" not in os.environ and open_caches().shared is None
