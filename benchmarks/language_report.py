"""The table of language models, in docs/generation.md."""

from __future__ import annotations

from language_contestants import DECODERS
from language_workloads import LANGUAGE
from report import DOCS, Lines, Setting, about, described, markdown
from rich.console import Console

PAGE = DOCS / "generation.md"
START, END = "<!-- language models: benchmarks/compare.py --language --write -->", "<!-- end of language models -->"


def tables(lines: Lines) -> str:
    """Times and how far results are off, as Markdown, a table of times for each number of threads."""
    parts = [about(lines)]
    parts += [f"#### A call: {described(setting)}\n\n{_times(lines, setting)}" for setting in lines.settings()]
    if lines.settings():
        setting = lines.settings()[0]
        parts.append(f"#### Divergence from float64, in nats\n\n{_figures(lines, setting, 'divergence', '.0e')}")
        parts.append(f"#### Memory held in MB\n\n{_figures(lines, setting, 'held_mb', '.0f')}")
    return "\n\n".join(parts)


def write_page(lines: Lines, console: Console) -> None:
    """Puts the tables between their marks in docs/generation.md."""
    before, rest = PAGE.read_text().split(START)
    PAGE.write_text(f"{before}{START}\n\n{tables(lines)}\n\n{END}{rest.split(END)[1]}")


def _times(lines: Lines, setting: Setting) -> str:
    names = _contestants(lines, setting)
    rows = []
    for workload in _workloads(lines, setting):
        times = {name: lines.get(setting, workload, name).get("ms") for name in names}
        peers = [time for name, time in times.items() if name != "pipeline" and time is not None]
        ours = times.get("pipeline")
        best = format(min(peers) / ours, ".2f") if peers and ours else "-"
        rows.append([workload, *(_figure(time, ".2f") for time in times.values()), best])
    return markdown(["workload", *(f"{name} ms" for name in names), "to best peer"], rows)


def _figures(lines: Lines, setting: Setting, key: str, form: str) -> str:
    names = _contestants(lines, setting)
    rows = [
        [workload, *(_figure(lines.get(setting, workload, name).get(key), form) for name in names)]
        for workload in _workloads(lines, setting)
    ]
    return markdown(["workload", *names], rows)


def _workloads(lines: Lines, setting: Setting) -> list[str]:
    return [name for name in LANGUAGE if any(lines.get(setting, name, one) for one in DECODERS)]


def _contestants(lines: Lines, setting: Setting) -> list[str]:
    return [name for name in DECODERS if any(lines.get(setting, workload, name) for workload in LANGUAGE)]


def _figure(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
