"""The page of a report: one HTML file that needs no network, and back from the file to what the report has."""

from __future__ import annotations

import base64
import html
import json
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import PipelineError
from pipeline.report.contents import VERSION, Contents
from pipeline.runtime.interface.atomic_files import replacing

_ASSETS = Path(__file__).parent / "assets"

#: The parts of the script of each page, in order.
_REPORT = (
    "elements.js",
    "units.js",
    "data.js",
    "code.js",
    "charts.js",
    "tables.js",
    "layout.js",
    "graph.js",
    "details.js",
    "time.js",
    "passes.js",
    "memory.js",
    "source.js",
    "search.js",
    "report.js",
)
_COMPARISON = ("elements.js", "units.js", "data.js", "charts.js", "tables.js", "comparison.js")


def write(path: str | Path, contents: Contents) -> None:
    """Writes a report, whole or not at all; raises `PipelineError` if the file cannot be written."""
    write_page(path, page(contents))


def write_page(path: str | Path, text: str) -> None:
    """Writes a page likewise."""
    try:
        with replacing(Path(path)) as temporary:
            temporary.write_text(text)
    except OSError as error:
        raise PipelineError(f"{path}: cannot be written: {error.strerror}") from None


def page(contents: Contents) -> str:
    """The HTML of a report."""
    return _page(f"{contents.summary['title']} · pipeline", contents.parts(), _REPORT, ("dagre/dagre.min.js",))


def comparison_page(title: str, comparison: Mapping[str, Any]) -> str:
    """The HTML of a comparison of two reports, see `pipeline.report.comparison`."""
    return _page(title, {"comparison": comparison}, _COMPARISON, ())


def read(path: str | Path) -> dict[str, Any]:
    """What the page of a report has at once: the part `main`, see `Contents.parts`.

    Raises:
        PipelineError: the file cannot be read, or is no report, or one of another version.
    """
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(f"{path}: cannot be read: {error}") from None
    found = re.search(r'<script type="text/plain" data-part="main">([^<]*)</script>', text)
    if found is None:
        raise PipelineError(f"{path}: is no report: exe.report(FILE) and --report=FILE write those")
    try:
        main = json.loads(zlib.decompress(base64.b64decode(found[1])))
    except ValueError as error:
        raise PipelineError(f"{path}: the report in it is damaged: {error}") from None
    if main["summary"]["version"] != VERSION:
        raise PipelineError(f"{path}: is a report of version {main['summary']['version']}, expected {VERSION}")
    return main


def _page(title: str, parts: Mapping[str, Any], scripts: tuple[str, ...], libraries: tuple[str, ...]) -> str:
    script = "\n".join(_asset(name) for name in scripts)
    data = "\n".join(
        f'<script type="text/plain" data-part="{name}">{_packed(value)}</script>' for name, value in parts.items()
    )
    values = {
        "title": html.escape(title),
        "style": _asset("report.css"),
        "data": data,
        "libraries": "\n".join(f"<script>{_library(name)}</script>" for name in libraries),
        "script": f'"use strict";\n(() => {{\n{script}\n}})();',
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda hole: values[hole[1]], _asset("page.html"))


def _packed(value: Any) -> str:
    """JSON, deflated, as base64: a browser unpacks a part when it is looked at."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _library(name: str) -> str:
    """A library with its licence in front, and without the address of its source map, which browsers would look for."""
    licence = _asset(f"{Path(name).parent}/LICENSE")
    code = re.sub(r"//# sourceMappingURL=.*", "", _asset(name))
    return f"/*\n{licence}*/\n{code}"


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text()
