"""Lists of passes and dialects for people."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.passmanager import mlir_passes, registry
from pipeline.passmanager.base import Pass


def pass_listing(plugins: Iterable[str]) -> str:
    """All passes: ours and those of `plugins` with help and options, MLIR's by name."""
    for plugin in plugins:
        registry.load_plugin(plugin)
    lines = ["Passes of pipeline and its plugins:"]
    for cls in registry.passes().values():
        lines += _describe(cls)
    lines += [
        "",
        "Passes of MLIR:",
        *(f"  --{name:<50} on {anchor}" for name, anchor in sorted(mlir_passes.PASSES.items())),
    ]
    return "\n".join(lines) + "\n"


def dialect_listing(plugins: Iterable[str]) -> str:
    """The names of all dialects: MLIR's, torch-mlir's, ours and those of `plugins`."""
    from pipeline.dialects import known_dialects

    for plugin in plugins:
        registry.load_plugin(plugin)
    return f"Available Dialects: {', '.join(known_dialects())}\n"


def _describe(cls: type[Pass]) -> list[str]:
    options = [
        f"      {option.name + '=' + option.metavar:<48} {option.help} (default: {option.format_default()})"
        for option in cls.options().values()
    ]
    return [f"  --{cls.name:<50} on {cls.anchor}: {cls.summary()}", *options]
