"""pipeline-cache: what the disk cache of compilations holds, and how to empty it. Imports neither torch nor MLIR."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from pipeline.disk_cache import DiskCache, Entry, open_cache
from pipeline.tools.command_line import DriverParser, exit_code

_DESCRIPTION = """Looks into the disk cache of compilations, or empties it. PIPELINE_CACHE_DIR says where it lies
(~/.cache/pipeline by default), PIPELINE_CACHE_SIZE how large it may get (1G by default, 0 for no cache). The cache that
machines share behind PIPELINE_CACHE_URL stays as it is."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the driver; returns the exit code, 0 or 1."""
    parser = DriverParser(prog="pipeline-cache", description=_DESCRIPTION, allow_abbrev=False)
    commands = {"list": _list, "size": _size, "clear": _clear}
    parser.add_argument(
        "command",
        choices=commands,
        help="list: the entries and kernels, what was used last first; size: how much they take; clear: delete them",
    )
    arguments = parser.parse_args(argv)
    return exit_code("pipeline-cache", lambda: commands[arguments.command](open_cache()))


def _list(cache: DiskCache) -> None:
    for entry in reversed(cache.entries()):
        used = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.used))
        print(f"{used}  {entry.size:>12,}  {entry.path.name}")


def _size(cache: DiskCache) -> None:
    entries = cache.entries()
    total = sum(entry.size for entry in entries)
    print(f"{total:,} of {cache.limit:,} bytes in {_counted(entries)} in {cache.folder}")


def _clear(cache: DiskCache) -> None:
    entries = cache.entries()
    cache.shrink(0)
    print(f"{_counted(entries)} deleted")


def _counted(entries: Sequence[Entry]) -> str:
    kernels = sum(entry.is_kernel for entry in entries)
    return f"{len(entries) - kernels} entries and {kernels} kernels"


if __name__ == "__main__":
    sys.exit(main())
