"""Folders by path or URL: local ones, and those that fsspec knows (`s3://bucket/folder`, where s3fs is installed)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pipeline.errors import OptionError
from pipeline.runtime.interface.atomic_files import replacing


class Folder(Protocol):
    """A folder somewhere. Beside the errors that are named, every file system has its own."""

    def read(self, name: str) -> bytes:
        """A file; raises `FileNotFoundError` where there is none."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Writes a file; folders on the way to it are made."""
        ...


def open_folder(url: str) -> Folder:
    """The folder that a path or URL names, whether or not it is there; raises `OptionError` if none knows the URL."""
    if "://" not in url or url.startswith("file://"):
        return _Local(Path(url.removeprefix("file://")).absolute())
    try:
        from fsspec.core import url_to_fs

        return _Remote(*url_to_fs(url))
    except (ImportError, ValueError) as error:
        raise OptionError(f"{url}: expected a path, or a URL that fsspec knows: {error}") from None


@dataclass(frozen=True)
class _Local:
    """Of this machine, or mounted. A file is there whole or not at all."""

    folder: Path

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_bytes(data)


@dataclass(frozen=True)
class _Remote:
    """Behind fsspec. Stores of objects have an object whole or not at all; others may show a part of one."""

    files: Any = field(repr=False)
    folder: str

    def read(self, name: str) -> bytes:
        data: bytes = self.files.cat_file(f"{self.folder}/{name}")
        return data

    def write(self, name: str, data: bytes) -> None:
        path = f"{self.folder}/{name}"
        try:
            self.files.pipe_file(path, data)
        except FileNotFoundError:  # a file system that has folders
            self.files.makedirs(path.rpartition("/")[0], exist_ok=True)
            self.files.pipe_file(path, data)
