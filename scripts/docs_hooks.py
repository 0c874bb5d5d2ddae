"""What mkdocs does not know of our pages, which are read in the repository, too: links to its files, names of listings.

A link to a file outside of docs/ is shown as its path, for the site has no such files; one that leads nowhere is a
warning, which a strict build takes for an error.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path, PurePosixPath
from typing import Any

log = logging.getLogger("mkdocs.hooks")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Is called by mkdocs with the text of each page."""
    docs = Path(config["docs_dir"])
    folder = (docs / page.file.src_uri).parent

    def path_of(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        if target.is_relative_to(docs):
            return link[0]
        if not target.exists():
            log.warning("%s links to %s, which is not there", page.file.src_uri, link[2])
        path = PurePosixPath(target.relative_to(docs.parent))
        return f"{link[1]} `{path}`" if link[1].strip("`") != str(path) else f"`{path}`"

    markdown = re.sub(r"^```(\w+) ([\w./-]+)$", r'```\1 title="\2"', markdown, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]+)\]\((\.\./[^)#\s]+)\)", path_of, markdown)
