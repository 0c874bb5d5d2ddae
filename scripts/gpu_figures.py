"""What gpu_check.py says of its outcomes: a line for each, and the table of docs/performance.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
START, END = "<!-- gpu: scripts/gpu_check.py report -->", "<!-- end of gpu -->"


def line(outcome: dict[str, Any]) -> str:
    """The outcome of a case, for people."""
    said = f"{outcome['outcome']}: {outcome['name']}"
    if "seconds" in outcome:
        said += f", {outcome['seconds'] * 1e3:.3f} ms, {_times(outcome.get('eager'))} eager"
        said += f", {_times(outcome.get('compiled'))} torch.compile"
    if "bandwidth" in outcome:
        said += f", {outcome['bandwidth']:.0%} of the bandwidth of a copy"
    return said + (f" ({outcome['missed']})" if "missed" in outcome else "")


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}x"


def report(figures: Path) -> None:
    """Writes the figures between their marks in docs/performance.md."""
    text = PAGE.read_text()
    before, _, rest = text.partition(START)
    _, _, behind = rest.partition(END)
    PAGE.write_text(f"{before}{START}\n{table(json.loads(figures.read_text()))}{END}{behind}")


def table(figures: dict[str, Any]) -> str:
    """Figures as Markdown."""
    cases = figures["cases"]
    numbers = [one for one in cases if one["kind"] == "numbers"]
    wrong = [one for one in cases if one["outcome"] != "right"]
    lines = [
        f"On {figures['machine']}, target `{figures['target']}`. {len(numbers)} kernels and small models were compared",
        f"with PyTorch's results on a CPU; {len(wrong)} of all {len(cases)} cases were not right.",
    ]
    lines += [f"- {one['name']}: {one['outcome']}" for one in wrong]
    lines += [
        "",
        "| case | ms | × eager | × torch.compile | of a copy's bandwidth | TFLOP/s |",
        "|---|---|---|---|---|---|",
    ]
    for one in (one for one in cases if "seconds" in one):
        share = f"{one['bandwidth']:.0%}" if "bandwidth" in one else ""
        speed = f"{one['tflops']:.1f}" if "tflops" in one else ""
        ratios = (_times(one.get(name)).removesuffix("x") for name in ("eager", "compiled"))
        lines.append(f"| {one['name']} | {one['seconds'] * 1e3:.3f} | {' | '.join(ratios)} | {share} | {speed} |")
    return "\n".join(lines) + "\n"
