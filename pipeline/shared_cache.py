"""A second level behind the disk cache: entries in a folder that a URL names, which any number of machines share.

`PIPELINE_CACHE_URL` is a local path, or a URL that fsspec knows (`s3://bucket/folder`, where s3fs is installed). What
is read from there is kept in the disk cache, too. What is written is in the disk cache at once, and goes there by a
thread while the program goes on. An entry is `v1/<two digits of its key>/<key>`, written whole; it begins with a digest
of its key and content, by which one that is damaged, half written or of other people's is told, and refused. Whoever
can write to the folder hands code to all that read it: with `PIPELINE_CACHE_SECRET` entries are signed, and only those
are taken.

A shared cache that cannot be reached is a cache without entries: compilations go on, and remarks say so. Nothing is
ever deleted here; that is what rules of the bucket are for, by age.
"""

from __future__ import annotations

import atexit
import hmac
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from pipeline import locks, logs, remarks
from pipeline.disk_cache import DiskCache, open_cache
from pipeline.url_files import open_folder

#: What every entry begins with; another number is another format.
_MAGIC = b"pipeline cache 1\n"
_DIGEST_BYTES = 32

#: So many bytes may wait to be written; who wants to write more waits.
_MOST_WAITING = 256 << 20

#: For so many seconds a folder that could not be reached is left alone.
_PAUSE = 60.0

#: So many seconds a program that ends gives to what waits to be written.
_LAST_SECONDS = 30.0

_told = logs.log("cache")


class Store(Protocol):
    """Byte strings by key."""

    def get(self, key: str) -> bytes | None:
        """What is kept under `key`; None if there is nothing."""
        ...

    def put(self, key: str, value: bytes) -> str | None:
        """Keeps `value` under `key`; returns why it could not be kept, None if it was."""
        ...


@dataclass
class Counts:
    """What became of the entries that this process has asked a shared cache for, and written to it.

    Attributes:
        hits, misses: entries that were there, and that were not.
        refused: those that were damaged, or not of this cache's format and secret.
        written: those that it has by now.
        failed: attempts to read or write that ended in an error.
    """

    hits: int = 0
    misses: int = 0
    refused: int = 0
    written: int = 0
    failed: int = 0


class SharedCache:
    """The entries behind one URL.

    Attributes:
        url: where they lie.
        counts: what became of them in this process.
    """

    def __init__(self, url: str, secret: str = ""):
        """Raises `OptionError` where the URL is one that nothing installed knows."""
        self.url = url
        self.counts = Counts()
        self._secret = secret.encode()
        self._folder = open_folder(url)
        self._waiting: dict[str, bytes] = {}
        self._change = threading.Condition(locks.lock())
        self._writer: threading.Thread | None = None
        self._silent_until, self._problem = 0.0, ""

    @property
    def problem(self) -> str | None:
        """Why the folder is left alone at the moment; None if it is not."""
        return self._problem if time.monotonic() < self._silent_until else None

    def get(self, key: str) -> bytes | None:
        """What is kept under `key`; None if there is nothing, it is refused, or the folder cannot be reached."""
        with self._change:
            if key in self._waiting:
                return self._waiting[key]
        if self.problem:
            return None
        try:
            data = self._folder.read(_place(key))
        except FileNotFoundError:
            self.counts.misses += 1
            _told.info("%s is not in %s", key[:12], self.url)
            return None
        except Exception as error:  # every file system of fsspec's has errors of its own
            self._fail(f"the shared cache {self.url} cannot be read: {_in_words(error)}")
            return None
        return self._checked(key, data)

    def _checked(self, key: str, data: bytes) -> bytes | None:
        """The value of an entry, if it is one."""
        head = len(_MAGIC) + _DIGEST_BYTES
        value = data[head:]
        if not data.startswith(_MAGIC):
            reason = "is of another format"
        elif not hmac.compare_digest(data[len(_MAGIC) : head], self._digest(key, value)):
            reason = "is damaged, or signed with another secret"
        else:
            self.counts.hits += 1
            _told.info("%s has %d bytes in %s", key[:12], len(value), self.url)
            return value
        self.counts.refused += 1
        _say(f"the entry {key[:12]} of the shared cache {self.url} {reason}: it is refused")
        return None

    def put(self, key: str, value: bytes) -> str | None:
        """Has `value` written by and by; waits where much is waiting already. Returns why it will not be, if so."""
        if self.problem:
            return self.problem
        with self._change:
            self._change.wait_for(lambda: sum(map(len, self._waiting.values())) < _MOST_WAITING, _LAST_SECONDS)
            self._waiting[key] = value
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_all, name="pipeline shared cache", daemon=True)
                self._writer.start()
        return None

    def flush(self, seconds: float = _LAST_SECONDS) -> bool:
        """Waits until all is written; returns whether it was within so many seconds."""
        with self._change:
            return self._change.wait_for(lambda: not self._waiting, seconds)

    def _write_all(self) -> None:
        while True:
            with self._change:
                if not self._waiting:
                    self._writer = None
                    return
                key, value = next(iter(self._waiting.items()))
            self._write(key, value)
            with self._change:
                if self._waiting.get(key) is value:
                    del self._waiting[key]
                self._change.notify_all()

    def _write(self, key: str, value: bytes) -> None:
        if self.problem:
            self.counts.failed += 1
            return
        try:
            self._folder.write(_place(key), _MAGIC + self._digest(key, value) + value)
        except Exception as error:  # likewise
            self._fail(f"the shared cache {self.url} cannot be written: {_in_words(error)}")
            return
        self.counts.written += 1
        _told.info("%s is kept in %s, %d bytes", key[:12], self.url, len(value))

    def _fail(self, reason: str) -> None:
        self.counts.failed += 1
        self._problem = f"{reason}; it is left alone for {_PAUSE:.0f} s"
        self._silent_until = time.monotonic() + _PAUSE
        _say(self._problem)

    def _digest(self, key: str, value: bytes) -> bytes:
        digest = hmac.new(self._secret, key.encode() + b"\0", "sha256")
        digest.update(value)
        return digest.digest()


@dataclass(frozen=True)
class TwoLevels:
    """The disk cache of this machine, and the one that is shared behind it, as far as there are any."""

    disk: DiskCache
    shared: SharedCache | None

    @property
    def is_off(self) -> bool:
        """Whether nothing is kept anywhere."""
        return not self.disk.limit and self.shared is None

    def get(self, key: str) -> bytes | None:
        """What is kept under `key`; what the disk had not, it has from now on."""
        value = self.disk.get(key) if self.disk.limit else None
        if value is not None or self.shared is None:
            return value
        value = self.shared.get(key)
        if value is not None and self.disk.limit:
            self.disk.put(key, value)
        return value

    def put(self, key: str | None, value: bytes, beside: Mapping[str, bytes] = MappingProxyType({})) -> str | None:
        """Keeps `value` under `key`, if it has one; returns why not all could keep it, None if they do.

        What comes `beside` it is for this machine alone, and is left out where both are too much.
        """
        entries = dict(beside) if key is None else {key: value, **beside}
        problem = self.disk.put_all(entries) if self.disk.limit and entries else None
        if problem is not None and key is not None and beside:
            problem = self.disk.put(key, value)
        problems = [problem] if self.shared is None or key is None else [problem, self.shared.put(key, value)]
        return "; ".join(filter(None, problems)) or None


def open_caches() -> TwoLevels:
    """The caches that the environment names: those of `open_cache`, and `PIPELINE_CACHE_URL` if it is set.

    Raises:
        OptionError: the size or the URL is none.
    """
    url = os.environ.get("PIPELINE_CACHE_URL", "")
    return TwoLevels(open_cache(), shared_cache(url) if url else None)


_opened: dict[tuple[str, str], SharedCache] = {}
_opening = locks.lock()


def shared_cache(url: str) -> SharedCache:
    """The cache behind a URL, one in a process; raises `OptionError` where nothing installed knows the URL."""
    secret = os.environ.get("PIPELINE_CACHE_SECRET", "")
    with _opening:
        if (url, secret) not in _opened:
            _opened[url, secret] = SharedCache(url, secret)
        return _opened[url, secret]


def _write_what_waits() -> None:
    for cache in list(_opened.values()):
        if not cache.flush():
            _told.warning("%s: not all was written before the program ended", cache.url)


atexit.register(_write_what_waits)
os.register_at_fork(after_in_child=_opened.clear)  # the thread that writes is the parent's


def _place(key: str) -> str:
    return f"v1/{key[:2]}/{key}"


def _say(reason: str) -> None:
    """In the log, and as a remark of the compilation in this thread, if there is one."""
    _told.warning("%s", reason)
    remarks.note("cache", "missed", "builtin.module", reason)


def _in_words(error: Exception) -> str:
    return str(error) or type(error).__name__
