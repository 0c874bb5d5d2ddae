"""Dialects defined in Python; each of ours lives in a file of its own, others come from plugins.

A plugin's dialect is a class made with `pipeline.mlir.ext.Dialect`; see docs/writing-a-pass.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline import locks, plugins
from pipeline.errors import OptionError

if TYPE_CHECKING:
    from pipeline.mlir import ir

_OURS = {"fusion": "pipeline.dialects.fusion"}
_loading = locks.lock()  # `ext.Dialect.load` keeps its module on the class while it loads


def plugin_dialects() -> dict[str, tuple[type[Any], str]]:
    """The dialects of plugins by name, each with its owner; raises `OptionError` where two share a name."""
    from pipeline.mlir import ext

    found: dict[str, tuple[type[Any], str]] = {}
    for plugin in plugins.plugins():
        for dialect in plugin.classes(ext.Dialect):
            name = dialect.DIALECT_NAMESPACE
            holder = _OURS.get(name) or found.get(name, (dialect, plugin.owner))[1]
            if name in _OURS or (name in found and found[name][0] is not dialect):
                raise _clash(name, plugin.owner, holder)
            found[name] = (dialect, plugin.owner)
    return found


def load_plugin_dialects(ctx: ir.Context) -> None:
    """Loads the dialects of plugins into `ctx`; raises `OptionError` naming the plugin if one cannot be loaded."""
    for name, (dialect, owner) in plugin_dialects().items():
        if _is_known(ctx, name):
            raise _clash(name, owner, "MLIR")
        try:
            with _loading, ctx:
                dialect.load()
        except Exception as error:  # whatever the definition of someone else's dialect does wrong
            raise OptionError(f"dialect '{name}' of {owner}: {plugins.one_line(error)}") from error


def known_dialects() -> list[str]:
    """The names of all dialects: MLIR's, torch-mlir's, ours and those of plugins."""
    from pipeline.mlir import context, dialect_names

    return sorted({*dialect_names(context()), *_OURS})


def _is_known(ctx: ir.Context, name: str) -> bool:
    try:
        ctx.get_dialect_descriptor(name)
    except ValueError:
        return False
    return True


def _clash(name: str, newcomer: str, holder: str) -> OptionError:
    return OptionError(f"two dialects are called '{name}': that of {newcomer} and that of {holder}")
