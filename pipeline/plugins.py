"""Plugins: modules of other people that bring passes and dialects.

A plugin is a Python file, or a module that an installed package names under the entry point group `pipeline.plugins`.
What it brings are the `Pass` and `Dialect` classes found in it; who collects them is `pipeline.passmanager.registry`
and `pipeline.dialects`.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from pipeline.errors import OptionError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "pipeline.plugins"
Base = TypeVar("Base")


@dataclass(frozen=True)
class Plugin:
    """A loaded plugin and, for messages, where it came from."""

    module: ModuleType
    owner: str

    def classes(self, base: type[Base], words: Sequence[str] = ()) -> Iterator[type[Base]]:
        """The subclasses of `base` in the module's namespace that are the plugin's own, not imported from elsewhere.

        Abstract ones are left out; raises `OptionError` for one that lacks a string among its attributes `words`.
        """
        package = self.module.__name__.partition(".")[0]
        for value in vars(self.module).values():
            if not isinstance(value, type) or not issubclass(value, base) or inspect.isabstract(value):
                continue
            if value.__module__.partition(".")[0] != package:
                continue
            for word in words:
                if not isinstance(getattr(value, word, None), str):
                    raise OptionError(f"plugin {self.owner}: class {value.__name__} needs a string as its `{word}`")
            yield value


_files: dict[Path, Plugin] = {}


def plugins() -> list[Plugin]:
    """Those of installed packages, then those loaded from files, in that order."""
    return [*_installed(), *_files.values()]


def files() -> list[Path]:
    """The files that plugins were loaded from."""
    return list(_files)


def load_file(path: str | Path) -> Plugin:
    """Loads the plugin in the Python file `path`, once; raises `OptionError` if that fails."""
    file = Path(path).resolve()
    if file in _files:
        return _files[file]
    if file.suffix != ".py" or not file.is_file():
        raise OptionError(f"plugin {path}: not a Python file")
    name = f"pipeline_plugin_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec and spec.loader  # a file that ends in .py has both
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look the module of a class up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise OptionError(f"plugin {path}: {one_line(error)}") from error
    _files[file] = Plugin(module, str(path))
    return _files[file]


def unload_file(plugin: Plugin) -> None:
    """Forgets a plugin that `load_file` gave; what it registered elsewhere stays."""
    for file in [file for file, loaded in _files.items() if loaded is plugin]:
        del _files[file], sys.modules[plugin.module.__name__]


@functools.cache
def _installed() -> tuple[Plugin, ...]:
    import importlib.metadata  # takes as long as half of `import pipeline`

    return tuple(map(_load_entry_point, sorted(importlib.metadata.entry_points(group=GROUP), key=lambda e: e.name)))


def _load_entry_point(entry: EntryPoint) -> Plugin:
    owner = f"package {entry.dist.name}, entry point '{entry.name}'" if entry.dist else f"entry point '{entry.name}'"
    try:
        module = entry.load()
    except (Exception, SystemExit) as error:
        raise OptionError(f"plugin of {owner}: {one_line(error)}") from error
    if not isinstance(module, ModuleType):
        raise OptionError(f"plugin of {owner}: '{entry.value}' names no module")
    return Plugin(module, owner)


def one_line(error: BaseException) -> str:
    """An unexpected exception in one line: its type, its message and the line of code that raised it."""
    message = " ".join(str(error).split())
    said = f"{type(error).__name__}: {message}" if message else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    return f"{said} ({frames[-1].filename}:{frames[-1].lineno})" if frames else said
