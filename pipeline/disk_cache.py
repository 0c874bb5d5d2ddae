"""A folder of byte strings by key, bounded in size, that several processes use at once.

Every entry is one file, written beside its place and moved there, so that a reader sees all of it or nothing, whoever
is killed when. There are no locks and no index: what is there is what lies in the folder, and who loses a race has
nothing cached. Whoever writes makes room first and looks again afterwards; only a process that is killed while others
write can leave more than the limit, until the next one writes. What was used least recently goes first. An entry
carries its own digest; a damaged one is deleted. (A database such as diskcache's would add a file that a killed process
can leave locked, and pickles.)
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from pipeline import logs
from pipeline.errors import OptionError
from pipeline.runtime.interface.atomic_files import replacing

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_DIGEST_BYTES = 32

_told = logs.log("cache")


@dataclass(frozen=True)
class Entry:
    """A file of the cache: its size in bytes, and when it was used last, in seconds since 1970."""

    path: Path
    size: int
    used: float


@dataclass(frozen=True)
class DiskCache:
    """The cache in a folder.

    Attributes:
        folder: is made when the first entry is written.
        limit: how many bytes all entries together may take.
    """

    folder: Path
    limit: int

    def get(self, key: str) -> bytes | None:
        """What is kept under `key`; None if there is nothing, or it is damaged."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            _told.info("%s is not there", key[:12])
            return None
        digest, value = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if _digest(key, value) != digest:
            _told.warning("%s is damaged, and deleted", path)
            path.unlink(missing_ok=True)
            return None
        _told.info("%s has %d bytes", key[:12], len(value))
        with contextlib.suppress(OSError):  # another process may have deleted it meanwhile
            os.utime(path)
        return value

    def put(self, key: str, value: bytes) -> str | None:
        """Keeps `value` under `key`; returns why it could not be kept, None if it was."""
        size = len(value) + _DIGEST_BYTES
        if size > self.limit:
            return f"its {len(value)} bytes are more than the cache may take"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.shrink(self.limit - size)
            with replacing(self._path(key)) as temporary:
                temporary.write_bytes(_digest(key, value) + value)
        except OSError as error:
            return f"{self.folder}: {error.strerror or error}"
        _told.info("%s is kept, %d bytes", key[:12], len(value))
        self.shrink(self.limit)  # others may have written at the same time
        return None

    def entries(self) -> list[Entry]:
        """What lies in the folder, what was used least recently first; unfinished files of killed processes too."""
        found = []
        with contextlib.suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                with contextlib.suppress(OSError):  # it may be gone by now
                    status = file.stat(follow_symlinks=False)
                    found.append(Entry(Path(file.path), status.st_size, status.st_mtime))
        return sorted(found, key=lambda entry: entry.used)

    def shrink(self, limit: int) -> int:
        """Deletes what was used least recently until all takes at most `limit` bytes; returns how many went."""
        entries = self.entries()
        total, gone = sum(entry.size for entry in entries), 0
        for entry in entries:
            if total <= limit and not _is_left_over(entry):
                continue
            with contextlib.suppress(OSError):
                entry.path.unlink()
                gone += 1
            total -= entry.size
        return gone

    def _path(self, key: str) -> Path:
        return self.folder / key


def _is_left_over(entry: Entry) -> bool:
    """Whether it is a file that a process began long ago and never finished."""
    return entry.path.name.startswith(".") and entry.used < time.time() - 3600


def _digest(key: str, value: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + value).digest()


def open_cache() -> DiskCache:
    """The cache of this user: `PIPELINE_CACHE_DIR`, `PIPELINE_CACHE_SIZE`; raises `OptionError` for a wrong size."""
    folder = os.environ.get("PIPELINE_CACHE_DIR")
    if folder is None:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = str(Path(base) / "pipeline")
    return DiskCache(Path(folder), parse_size(os.environ.get("PIPELINE_CACHE_SIZE", "1G")))


def parse_size(text: str) -> int:
    """The bytes that `500M`, `2G` or `1000000` stand for; raises `OptionError` for anything else."""
    number = text.strip().lower().removesuffix("ib").rstrip("bkmg")
    unit = text.strip().lower()[len(number) :].removesuffix("ib").removesuffix("b")
    if not number.isdecimal() or unit not in _UNITS:
        raise OptionError(f"PIPELINE_CACHE_SIZE={text!r}: expected a size such as 500M or 2G, or 0 for no cache")
    return int(number) * _UNITS[unit]
