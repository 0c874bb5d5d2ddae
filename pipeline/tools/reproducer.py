"""Reproducers: MLIR text that carries the pass pipeline that fails on it, in the format of mlir-opt.

    {-# external_resources: { mlir_reproducer: { pipeline: "builtin.module(cse)", verify_each: true } } #-}

mlir-opt runs one too, unless it names plugins, which only `pipeline-opt` has.
"""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import OptionError
from pipeline.tools.source import NamedText, write

_TEMPLATE = """{source}

{{-#
  external_resources: {{
    mlir_reproducer: {{
      {entries}
    }}
  }}
#-}}
"""
_STRING = r'"(?:[^"\\]|\\.)*"'
_ENTRY = rf"\s*(\w+)\s*:\s*({_STRING}|true|false)\s*,?"
_SECTION = re.compile(
    rf"\{{-#\s*external_resources\s*:\s*\{{\s*mlir_reproducer\s*:\s*\{{((?:{_ENTRY})*)\s*\}}\s*\}}\s*#-\}}"
)


@dataclass(frozen=True)
class Recipe:
    """What a reproducer runs: a pipeline, with what plugins, verifying after each pass or not."""

    pipeline: str
    plugins: tuple[str, ...] = ()
    verify_each: bool = True


def format_reproducer(source: str, recipe: Recipe) -> str:
    """`source` with `recipe` attached."""
    entries = [
        f"pipeline: {_quoted(recipe.pipeline)}",
        "disable_threading: true",
        f"verify_each: {str(recipe.verify_each).lower()}",
    ]
    if recipe.plugins:
        entries.append(f"plugins: {_quoted(os.pathsep.join(recipe.plugins))}")
    return _TEMPLATE.format(source=source.rstrip(), entries=",\n      ".join(entries))


def parse_reproducer(source: NamedText) -> tuple[NamedText, Recipe]:
    """The program and the recipe in a reproducer; raises `OptionError` if the file is none."""
    section = _SECTION.search(source.text)
    if not section:
        raise OptionError(f"{source.name}: not a reproducer, it has no 'mlir_reproducer' resource")
    entries = dict(re.findall(_ENTRY, section.group(1)))
    if "pipeline" not in entries:
        raise OptionError(f"{source.name}: the reproducer names no 'pipeline'")
    plugins = _unquoted(entries["plugins"]).split(os.pathsep) if "plugins" in entries else []
    program = source.text[: section.start()] + source.text[section.end() :]
    recipe = Recipe(_unquoted(entries["pipeline"]), tuple(plugins), entries.get("verify_each", "true") == "true")
    return NamedText(source.name, program), recipe


def write_reproducer(path: str | None, source: str, recipe: Recipe) -> str:
    """Writes a reproducer to `path`, or to a new file of a unique name; returns where."""
    if path is None:
        handle, path = tempfile.mkstemp(prefix="pipeline-opt-", suffix=".mlir")
        os.close(handle)
    absolute = tuple(str(Path(plugin).resolve()) for plugin in recipe.plugins)
    write(path, format_reproducer(source, Recipe(recipe.pipeline, absolute, recipe.verify_each)))
    return path


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])
