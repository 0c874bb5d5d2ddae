"""The table of training steps, in docs/training.md."""

from __future__ import annotations

from report import DOCS, Lines, Setting, about, described, markdown
from rich.console import Console
from training_contestants import TRAINERS
from training_workloads import TRAINING

PAGE = DOCS / "training.md"
START, END = "<!-- training -->", "<!-- /training -->"


def tables(lines: Lines) -> str:
    """Times, errors, compile times and memory as Markdown, a table for each number of threads."""
    parts = [about(lines)]
    parts += [f"#### A step: {described(setting)}\n\n{_table(lines, setting)}" for setting in lines.settings()]
    return "\n\n".join(parts)


def write_page(lines: Lines, console: Console) -> None:
    """Puts the tables between their marks in docs/training.md."""
    before, rest = PAGE.read_text().split(START)
    PAGE.write_text(f"{before}{START}\n{tables(lines)}\n{END}{rest.split(END)[1]}")


def _table(lines: Lines, setting: Setting) -> str:
    names = [name for name in TRAINERS if any(lines.get(setting, workload, name) for workload in TRAINING)]
    others = [name for name in names if name != "eager"]
    header = ["workload", "eager ms", *(f"{name} ×" for name in others), "error"]
    header += ["compilation, CPU s: " + " / ".join(others), "MB: " + " / ".join(names)]
    rows = []
    for workload in (name for name in TRAINING if lines.get(setting, name, "eager")):
        found = {name: lines.get(setting, workload, name) for name in names}
        rows.append(
            [
                workload,
                _figure(found["eager"].get("ms"), ".2f"),
                *(_figure(found[name].get("ratio"), ".2f") for name in others),
                _figure(found.get("pipeline", {}).get("error"), ".0e"),
                " / ".join(_figure(found[name].get("compile_cpu"), ".0f") for name in others),
                " / ".join(_figure(_megabytes(found[name]), ".0f") for name in names),
            ]
        )
    return markdown(header, rows)


def _megabytes(outcome: dict[str, float]) -> float | None:
    """What a step takes at most beside the model: what is held between steps, gradients among it, and its growth."""
    return outcome["held_mb"] + outcome["call_mb"] if "call_mb" in outcome else None


def _figure(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
