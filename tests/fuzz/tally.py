"""Counts of what became of random programs: a line of JSON for every share, which runs append to one file."""

from __future__ import annotations

import datetime
import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from outcomes import Outcome

#: What may become of a program; all but the first two are defects.
WHATS = ("right", "refused", "wrong", "defect", "crashed", "hung")


def commit() -> str:
    """The commit that is tried, with a `+` if files differ from it."""
    described = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(described, capture_output=True, text=True, check=True).stdout.strip()


def append(path: Path, commit_tried: str, kind: str, first: int, outcomes: Sequence[Outcome]) -> None:
    """Adds the counts of programs of one kind, whose first seed is `first`."""
    counts = Counter(what for what, _ in outcomes)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    line = {"date": date, "commit": commit_tried, "kind": kind, "first": first, "programs": len(outcomes), **counts}
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def table(path: Path) -> str:
    """The sums of a file's counts as a table in Markdown, with a row for each kind and one for all."""
    sums: dict[str, Counter[str]] = {}
    for line in map(json.loads, path.read_text().splitlines()):
        for kind in (line["kind"], "all"):
            sums.setdefault(kind, Counter()).update({name: line.get(name, 0) for name in ("programs", *WHATS)})
    rows = [["kind", "programs", *WHATS], ["---"] * (2 + len(WHATS))]
    kinds = sorted(sums, key=lambda one: (one == "all", one))
    rows += [[kind, *(f"{sums[kind][name]:,}" for name in ("programs", *WHATS))] for kind in kinds]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
