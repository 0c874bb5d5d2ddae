"""A folder of byte strings by key, bounded in size, that several processes use at once.

Every entry is one file, written beside its place and moved there, so that a reader sees all of it or nothing, whoever
is killed when. There are no locks and no index: what is there is what lies in the folder, and who loses a race has
nothing cached. Whoever writes makes room first and looks again afterwards; only a process that is killed while others
write can leave more than the limit, until the next one writes. A process that has seen much room looks again when it
has written an eighth of that. What was used least recently goes first. An entry carries its own digest; a damaged one
is deleted. (A database such as diskcache's would add a file that a killed process can leave locked, and pickles.)
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline import logs
from pipeline.errors import OptionError
from pipeline.runtime.interface.atomic_files import replacing

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_DIGEST_BYTES = 32

#: What the names of entries begin with that are the code of kernels, which models share.
KERNEL_PREFIX = "kernel-"

#: So many files take some 50 ms to look at.
MOST_ENTRIES = 20_000

#: Which part of the room that it has seen a process fills without another look, as others may at the same time.
_UNSEEN = 8

_told = logs.log("cache")


@dataclass
class _Room:
    """How many bytes and entries a process may add before it looks again."""

    size: int
    count: int

    def take(self, size: int, count: int) -> bool:
        """Whether there is room for so much; it is taken then."""
        if size > self.size or count > self.count:
            return False
        self.size, self.count = self.size - size, self.count - count
        return True


#: What this process has seen of folders, by their limits.
_rooms: dict[tuple[Path, int], _Room] = {}


@dataclass(frozen=True)
class Entry:
    """A file of the cache: its size in bytes, and when it was used last, in seconds since 1970."""

    path: Path
    size: int
    used: float

    @property
    def is_kernel(self) -> bool:
        """Whether it is the code of a kernel, not the outcome of a compilation."""
        return self.path.name.startswith(KERNEL_PREFIX)


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
            _tell(key, "%s is not there", key[:12])
            return None
        digest, value = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if _digest(key, value) != digest:
            _told.warning("%s is damaged, and deleted", path)
            path.unlink(missing_ok=True)
            return None
        _tell(key, "%s has %d bytes", key[:12], len(value))
        with contextlib.suppress(OSError):  # another process may have deleted it meanwhile
            os.utime(path)
        return value

    def put(self, key: str, value: bytes) -> str | None:
        """Keeps `value` under `key`; returns why it could not be kept, None if it was."""
        return self.put_all({key: value})

    def put_all(self, entries: Mapping[str, bytes]) -> str | None:
        """Keeps several values; returns why not all could be kept, None if they were."""
        length = sum(map(len, entries.values()))
        size = length + len(entries) * _DIGEST_BYTES
        if size > self.limit:
            return f"its {length} bytes are more than the cache may take"
        room = _rooms.get((self.folder, self.limit))
        has_room = room is not None and room.take(size, len(entries))
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not has_room:
                self.shrink(self.limit - size)
            for key, value in entries.items():
                with replacing(self._path(key)) as temporary:
                    temporary.write_bytes(_digest(key, value) + value)
                _tell(key, "%s is kept, %d bytes", key[:12], len(value))
        except OSError as error:
            return f"{self.folder}: {error.strerror or error}"
        if not has_room:
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
        """Deletes what was used least recently until all takes at most `limit` bytes; returns how many went.

        More than `MOST_ENTRIES` are never kept: whoever writes looks at all of them.
        """
        entries = self.entries()
        total, gone = sum(entry.size for entry in entries), 0
        for number, entry in enumerate(entries):
            if total <= limit and len(entries) - number <= MOST_ENTRIES and not _is_left_over(entry):
                continue
            with contextlib.suppress(OSError):
                entry.path.unlink()
                gone += 1
            total -= entry.size
        left = max(0, self.limit - total), max(0, MOST_ENTRIES - len(entries) + gone)
        _rooms[self.folder, self.limit] = _Room(*(amount // _UNSEEN for amount in left))
        return gone

    def _path(self, key: str) -> Path:
        return self.folder / key


def _is_left_over(entry: Entry) -> bool:
    """Whether it is a file that a process began long ago and never finished."""
    return entry.path.name.startswith(".") and entry.used < time.time() - 3600


def _tell(key: str, message: str, *values: object) -> None:
    """Says in the log what became of an entry; of the many that are kernels only where details are wanted."""
    _told.log(logging.DEBUG if key.startswith(KERNEL_PREFIX) else logging.INFO, message, *values)


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
