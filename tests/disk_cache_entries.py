"""What lies in the folder of a disk cache."""

from __future__ import annotations

from pathlib import Path

from pipeline.disk_cache import DiskCache


def outcomes(folder: Path) -> list[Path]:
    """The entries that are not the code of a kernel."""
    return [entry.path for entry in DiskCache(folder, 1 << 30).entries() if not entry.is_kernel]
