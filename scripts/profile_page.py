"""Writes the table and the picture of docs/profiling.md anew: a ResNet-18 (examples/resnet18.py) on one thread.

Usage: taskset -c 0 python scripts/profile_page.py
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "scripts")]

PAGE, PICTURE = ROOT / "docs" / "profiling.md", ROOT / "docs" / "profile.svg"
START, END = "<!-- profile: scripts/profile_page.py -->", "<!-- end of profile -->"

#: The kernels that the page shows: those that take most, and what is not in kernels.
FIRST, LAST = 12, 2


def main() -> None:
    """Profiles the network and writes both files."""
    from draw_trace import draw
    from resnet18 import resnet18

    import pipeline

    model, inputs = resnet18()
    executable = pipeline.compile(model, inputs, num_threads=1, profile=True)
    profile = min((executable.profile(*inputs, repeats=1) for _ in range(40)), key=lambda one: one.seconds)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profile.save_trace(str(trace))
        PICTURE.write_text(draw(json.loads(trace.read_text())["traceEvents"]))
    before, rest = PAGE.read_text().split(START)
    table = shortened(str(profile).replace(f"{ROOT}/", ""))
    load = f"Measured on {date.today()}; the machine's load average was {os.getloadavg()[0]:.1f}."
    PAGE.write_text(f"{before}{START}\n```\n{table}\n```\n\n{load}\n{END}{rest.split(END)[1]}")


def shortened(table: str) -> str:
    """The table without the kernels in the middle."""
    lines = table.strip("\n").split("\n")
    start = next(number for number, line in enumerate(lines) if "% of call" in line) + 1
    if len(lines) <= start + FIRST + LAST:
        return "\n".join(lines)
    return "\n".join([*lines[: start + FIRST], " ...", *lines[-LAST:]])


if __name__ == "__main__":
    main()
