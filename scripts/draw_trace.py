"""Draws a trace that `Profile.save_trace` wrote as an SVG: a bar for each run of a kernel, along the time.

Usage: python scripts/draw_trace.py trace.json picture.svg
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.sax.saxutils import escape

WIDTH, ROW, LEFT, TOP = 1000, 18, 220, 40
COLORS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#ff9da6", "#9d755d")


def draw(events: list[dict]) -> str:
    """The SVG of the events of one call: a row for each kernel, in the order of first runs."""
    whole, *runs = events
    names = list(dict.fromkeys(event["name"] for event in runs))
    scale = (WIDTH - LEFT - 20) / whole["dur"]
    height = TOP + ROW * len(names) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" '
        f'font-size="11"><rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="20">a call of {whole["dur"] / 1e3:.2f} ms</text>',
    ]
    for number, name in enumerate(names):
        y = TOP + ROW * number
        parts.append(f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<line x1="{LEFT}" y1="{y + 8}" x2="{WIDTH - 20}" y2="{y + 8}" stroke="#eee"/>')
        for event in (event for event in runs if event["name"] == name):
            x, width = LEFT + event["ts"] * scale, max(event["dur"] * scale, 0.5)
            tip = escape(f"{name} {event['dur']:.1f} us {event['args']['source'].rpartition('/')[2]}")
            color = COLORS[number % len(COLORS)]
            bar = f'<rect x="{x:.1f}" y="{y + 2}" width="{width:.1f}" height="12" fill="{color}">'
            parts.append(f"{bar}<title>{tip}</title></rect>")
    for step in range(6):
        x, label = LEFT + step * (WIDTH - LEFT - 20) / 5, whole["dur"] / 1e3 * step / 5
        parts.append(f'<text x="{x:.0f}" y="{height - 8}" text-anchor="middle">{label:.1f} ms</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Reads the trace and writes the picture."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    events = json.loads(Path(sys.argv[1]).read_text())["traceEvents"]
    Path(sys.argv[2]).write_text(draw(events))


if __name__ == "__main__":
    main()
