"""The registry of passes: ours, found by file in the rooms of `pipeline.passes`, and those of plugins.

A file there that defines a `Pass` defines exactly one, and is named after it with `_` for `-`: it is loaded when the
pass is asked for. MLIR's own passes are not in the registry; `pipeline.passmanager.mlir_passes` has their names, which
no pass of ours may take.
"""

from __future__ import annotations

import functools
import importlib
import re
from inspect import isabstract
from pathlib import Path

import pipeline.passes
from pipeline import locks, plugins
from pipeline.errors import OptionError
from pipeline.passmanager import mlir_passes
from pipeline.passmanager.base import Pass
from pipeline.passmanager.options import nearest

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

#: Those of MLIR's that convert to what later ones take.
_MANDATORY = re.compile(
    r"convert-.*|refback-.*|expand-strided-metadata|finalize-memref-to-llvm|reconcile-unrealized-casts|lower-affine|"
    r"one-shot-bufferize|buffer-deallocation-pipeline|fold-memref-alias-ops|affine-expand-index-ops|"
    r"arith-(expand|emulate-unsupported-floats)|math-(expand-ops|extend-to-supported-types)|linalg-generalize-named-ops"
)
_lock = locks.recursive_lock()
_classes: dict[str, type[Pass]] = {}
_owners: dict[str, str] = {}
_has_plugins = False


def passes() -> dict[str, type[Pass]]:
    """All passes of ours and of plugins by name, sorted; raises `OptionError` if a plugin cannot be loaded."""
    with _lock:
        for name in _files():
            _load(name)
        _load_plugins()
        return dict(sorted(_classes.items()))


def find(name: str) -> type[Pass] | None:
    """The pass called `name`; None if there is none. Raises `OptionError` if a plugin cannot be loaded."""
    found = _classes.get(name)
    if found is None:
        with _lock:
            _load(name)
            _load_plugins()
            found = _classes.get(name)
    return found


def get(name: str) -> type[Pass]:
    """The pass called `name`; raises `OptionError` with the nearest name if there is none."""
    known = find(name)
    if known is None:
        raise unknown_pass(name)
    return known


def owner(name: str) -> str:
    """Where the pass called `name` comes from: a module, a plugin file, an installed package or MLIR."""
    get(name)
    return _owners[name]


def all_names() -> list[str]:
    """The names of all passes: ours, those of plugins and MLIR's."""
    return [*passes(), *mlir_passes.PASSES]


def is_pass(name: str) -> bool:
    """Whether `name` is a pass, of ours, of a plugin or of MLIR."""
    return name in mlir_passes.PASSES or find(name) is not None


def is_mandatory(name: str) -> bool:
    """Whether no model may be compiled without the pass `name`."""
    known = find(name)
    return _MANDATORY.fullmatch(name) is not None if known is None else known.mandatory


def unknown_pass(name: str) -> OptionError:
    """The error for a name that no pass has, ours or MLIR's."""
    return OptionError(f"unknown pass '{name}'{nearest(name, all_names())}")


def load_plugin(path: str | Path) -> None:
    """Loads a plugin from a Python file; raises `OptionError` if that fails or one of its names is taken."""
    with _lock:
        passes()
        loaded_before = Path(path).resolve() in plugins.files()
        plugin = plugins.load_file(path)
        try:
            _register_plugin(plugin)
        except OptionError:
            if not loaded_before:
                plugins.unload_file(plugin)
            raise


@functools.cache
def _files() -> dict[str, list[str]]:
    """The modules in the rooms of passes, by what a pass in them would be called: some have what passes share."""
    modules: dict[str, list[str]] = {}
    for root in map(Path, pipeline.passes.__path__):
        for path in sorted(root.rglob("*.py")):
            module = ".".join(("pipeline.passes", *path.relative_to(root).with_suffix("").parts))
            modules.setdefault(path.stem.replace("_", "-"), []).append(module)
    return modules


def _load(name: str) -> None:
    """Registers our pass called `name`, if there is one."""
    if name in _classes:
        return
    for module in _files().get(name, ()):
        for cls in vars(importlib.import_module(module)).values():
            if isinstance(cls, type) and issubclass(cls, Pass) and cls.__module__ == module and not isabstract(cls):
                _register({cls.name: cls}, module)


def _load_plugins() -> None:
    global _has_plugins
    if not _has_plugins:
        for plugin in plugins.plugins():
            _register_plugin(plugin)
        _has_plugins = True  # not before, so that the next call fails in the same way


def _register_plugin(plugin: plugins.Plugin) -> None:
    classes: dict[str, type[Pass]] = {}
    for cls in plugin.classes(Pass):
        _check(cls, plugin.owner)
        if cls.name in classes and classes[cls.name] is not cls:
            raise _clash(cls.name, plugin.owner, plugin.owner)
        _load(cls.name)  # a clash with one of ours is told whatever runs
        classes[cls.name] = cls
    _register(classes, plugin.owner)


def _register(classes: dict[str, type[Pass]], owner: str) -> None:
    """Adds all of `classes`, or, if a name is taken, none."""
    for name, cls in classes.items():
        if name in mlir_passes.PASSES:
            raise _clash(name, owner, "MLIR")
        if _classes.get(name, cls) is not cls:
            raise _clash(name, owner, _owners[name])
    _classes.update(classes)
    _owners.update(dict.fromkeys(classes, owner))


def _clash(name: str, newcomer: str, holder: str) -> OptionError:
    return OptionError(f"two passes are called '{name}': that of {newcomer} and that of {holder}")


def _check(cls: type[Pass], owner: str) -> None:
    """Refuses a class that has not the form of a pass."""
    name = getattr(cls, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise OptionError(
            f"{owner}: class {cls.__name__} needs a `name` of lower-case words joined by '-', has {name!r}"
        )
    made = vars(cls).get("__dataclass_params__")  # its own, not those that it inherits
    if made is None or not made.frozen:
        raise OptionError(f"{owner}: class {cls.__name__} needs the decorator @dataclass(frozen=True)")
    try:
        cls.options()
    except (NameError, TypeError) as error:
        raise OptionError(f"{owner}: class {cls.__name__}: {error}") from None
