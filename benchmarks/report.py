"""Tables and a picture of what compare.py has measured."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contestants import CONTESTANTS
from rich.console import Console
from workloads import WORKLOADS

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE, PICTURE = DOCS / "performance.md", DOCS / "pictures" / "benchmarks.png"
START, END = "<!-- benchmarks: benchmarks/compare.py --write -->", "<!-- end of benchmarks -->"

#: Where the table of those who round to bf16 goes, and who they are.
START_BF16, END_BF16 = "<!-- bf16: benchmarks/compare.py --write -->", "<!-- end of bf16 -->"
IN_BF16 = ("eager-bf16", "pipeline-of-bf16", "pipeline-bf16")

#: Whose memory is shown: the others are too small to tell it from noise.
MEMORY_WORKLOADS = ("W8a_resnet18", "W8b_mobilenetv2", "W8c_bert", "W8d_gpt2")

Outcome = dict[str, Any]
Setting = tuple[int, bool]

#: One thread, malloc as it comes.
USUAL: Setting = (1, False)


@dataclass
class Lines:
    """Outcomes in a file of JSON lines; of several of the same, the last one counts."""

    path: Path
    machine: dict[str, Any] = field(default_factory=dict)
    outcomes: dict[tuple[Setting, str, str], Outcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for line in self.path.read_text().splitlines() if self.path.exists() else ():
            self._take(json.loads(line))

    def append(self, line: dict[str, Any]) -> None:
        """Adds a line to the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self._take(line)

    def has(self, workload: str, contestants: Iterable[str], threads: int, malloc_tuned: bool) -> bool:
        """Whether all these contestants have an outcome of a workload."""
        return all(((threads, malloc_tuned), workload, name) in self.outcomes for name in contestants)

    def settings(self) -> list[Setting]:
        """The settings that there are outcomes of, the usual one first."""
        return sorted({setting for setting, _, _ in self.outcomes})

    def workloads(self, setting: Setting) -> list[str]:
        """The workloads that there are outcomes of, in their own order."""
        found = {workload for one, workload, _ in self.outcomes if one == setting}
        return [name for name in WORKLOADS if name in found]

    def contestants(self, setting: Setting) -> list[str]:
        """The contestants that there are outcomes of, in their own order."""
        found = {contestant for one, _, contestant in self.outcomes if one == setting}
        return [name for name in CONTESTANTS if name in found]

    def get(self, setting: Setting, workload: str, contestant: str) -> Outcome:
        """An outcome; empty if there is none."""
        return self.outcomes.get((setting, workload, contestant), {})

    def _take(self, line: dict[str, Any]) -> None:
        if "machine" in line:
            old, new = self.machine, line["machine"]
            peak = {name: max(old.get(name, 0.0), new[name]) for name in ("flops", "bytes")}  # a busy machine has less
            self.machine = {**new, **peak, "versions": {**old.get("versions", {}), **new["versions"]}}
            return
        setting = (line["threads"], line["malloc_tuned"])
        self.outcomes[setting, line["workload"], line["contestant"]] = line


def write_page(lines: Lines, console: Console) -> None:
    """Puts the tables between their marks in docs/performance.md, and the picture beside it.

    Outcomes of contestants in bf16 make a table of their own, and no picture.
    """
    is_bf16 = set(IN_BF16) <= set(lines.contestants(USUAL))
    start, end = (START_BF16, END_BF16) if is_bf16 else (START, END)
    before, rest = PAGE.read_text().split(start)
    text = f"{about(lines)}\n\n{_in_bf16(lines)}" if is_bf16 else tables(lines)
    PAGE.write_text(f"{before}{start}\n{text}\n{end}{rest.split(end)[1]}")
    if is_bf16:
        return
    try:
        draw(lines, PICTURE)
    except ModuleNotFoundError as error:
        console.print(f"{PICTURE.name} is not drawn: {sys.executable} has no {error.name}", soft_wrap=True)


def tables(lines: Lines) -> str:
    """All tables as Markdown."""
    parts = [about(lines)]
    parts += [f"#### Times: {described(setting)}\n\n{_times(lines, setting)}" for setting in lines.settings()]
    if lines.workloads(USUAL):
        parts.append(f"#### Largest error, relative to the largest result in float64\n\n{_errors(lines)}")
        parts.append(f"#### Compilation, CPU seconds: capture + the rest\n\n{_compilation(lines)}")
        parts.append(f"#### Memory in MB: what the executable holds + what a call takes at most\n\n{_memory(lines)}")
    failures = [
        f"- {workload}, {contestant}: {_in_a_line(outcome['failure'])}"
        for (setting, workload, contestant), outcome in lines.outcomes.items()
        if setting == USUAL and "failure" in outcome
    ]
    if failures:
        parts.append("#### Failures\n\n" + "\n".join(failures))
    return "\n\n".join(parts)


def _in_a_line(failure: str) -> str:
    """The first sentence of a message, without a terminal's colours."""
    plain = " ".join(re.sub(r"\x1b\[\d*m", "", failure).split())
    return re.split(r"(?<=[a-z])\. ", plain)[0]


def about(lines: Any) -> str:
    """What figures depend on, in a sentence, from what `machine` has."""
    machine = lines.machine
    if not machine:
        return "Nothing has been measured yet."
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"{machine['date']}, {machine['cpu']}; one thread's peak {machine['flops'] / 1e9:.0f} GFLOP/s, "
        f"{machine['bytes'] / 1e9:.0f} GB/s; {versions}. Load average at the beginning: {machine['load']:.1f}."
    )


def described(setting: Setting) -> str:
    """The setting in words."""
    threads, malloc_tuned = setting
    return f"{threads} thread{'s' * (threads > 1)}{', malloc tuned' * malloc_tuned}"


def _times(lines: Lines, setting: Setting) -> str:
    """Ratios to eager, pipeline's place among its peers, and what part of the machine's peak it reaches."""
    names = lines.contestants(setting)
    others = [name for name in names if name != "eager"]
    ratios_of = [f"{name} ×" for name in others]
    header = ["workload", "eager ms", "pipeline ms (best)", *ratios_of, "to best peer", "of peak"]
    if setting[0] > 1:
        header.append("to one thread")
    rows = []
    for workload in lines.workloads(setting):
        ratios = {name: lines.get(setting, workload, name).get("ratio") for name in others}
        fastest = max((ratio for ratio in ratios.values() if ratio), default=0.0)
        best_peer = max((ratio for name, ratio in ratios.items() if ratio and name != "pipeline"), default=None)
        ours = lines.get(setting, workload, "pipeline")
        rows.append(
            [
                workload,
                _figure(lines.get(setting, workload, "eager").get("ms")),
                f"{_figure(ours.get('ms'))} ({_figure(ours.get('best_ms'))})",
                *(_ratio(ratio, bold=ratio == fastest) for ratio in ratios.values()),
                _ratio(ours["ratio"] / best_peer if best_peer and "ratio" in ours else None),
                _share(lines, workload, setting, ours.get("ms")),
            ]
        )
        if setting[0] > 1:
            alone = lines.get((1, setting[1]), workload, "pipeline").get("ms")
            rows[-1].append(_ratio(alone / ours["ms"] if alone and "ms" in ours else None))
    return markdown(header, rows)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _ratio(value: float | None, bold: bool = False) -> str:
    text = "-" if value is None else f"{value:.2f}"
    return f"**{text}**" if bold else text


def _share(lines: Lines, workload: str, setting: Setting, milliseconds: float | None) -> str:
    """Which part of the time the work would take at the peak of all threads; small data is faster than memory."""
    machine, known = lines.machine, WORKLOADS[workload]
    if milliseconds is None or not machine:
        return "-"
    least = max(known.flops / machine["flops"] / setting[0], known.bytes / machine["bytes"])
    return f"{1e3 * least / milliseconds:.0%}"


def _errors(lines: Lines) -> str:
    return _by_contestant(lines, lines.workloads(USUAL), lines.contestants(USUAL), lambda one: f"{one['error']:.0e}")


def _in_bf16(lines: Lines) -> str:
    """How many times as fast as eager in f32, and how far off: contestants in f32, and in bf16."""
    names = ["pipeline", *IN_BF16]
    header = ["workload", "eager ms", *(f"{name} ×" for name in names), *(f"error of {name}" for name in names)]
    rows = []
    for workload in lines.workloads(USUAL):
        outcomes = [lines.get(USUAL, workload, name) for name in names]
        times = [_ratio(one.get("ratio")) for one in outcomes]
        eager = _figure(lines.get(USUAL, workload, "eager").get("ms"))
        rows.append([workload, eager, *times, *(_cell(one, lambda one: f"{one['error']:.0e}") for one in outcomes)])
    return markdown(header, rows)


def _compilation(lines: Lines) -> str:
    """What each contestant's compilation costs; that of a contestant with a cache once more, with the cache filled."""
    names = [name for name in lines.contestants(USUAL) if name != "eager"]
    return _with_cached(lines, lines.workloads(USUAL), names, _capture_and_rest, "warm_cpu", _rest_again)


def _with_cached(
    lines: Lines,
    workloads: list[str],
    names: list[str],
    text: Callable[[Outcome], str],
    key: str,
    again: Callable[[Outcome], str],
) -> str:
    """A table with a column for each contestant, and a second one for who has `key`, from a filled cache."""
    header, columns = ["workload"], []
    for name in names:
        header.append(name)
        columns.append((name, text))
        if any(key in lines.get(USUAL, workload, name) for workload in workloads):
            header.append(f"{name}, cached")
            columns.append((name, lambda one: again(one) if key in one else "-"))
    rows = [
        [workload, *(_cell(lines.get(USUAL, workload, name), text) for name, text in columns)] for workload in workloads
    ]
    return markdown(header, rows)


def _capture_and_rest(one: Outcome) -> str:
    return f"{one['capture_cpu']:.1f} + {one['compile_cpu']:.1f}"


def _rest_again(one: Outcome) -> str:
    return f"{one['warm_cpu']:.2f}"


def _held_and_call(one: Outcome) -> str:
    return f"{one['held_mb']:.0f} + {one['call_mb']:.1f}"


def _held_and_call_again(one: Outcome) -> str:
    return f"{one['warm_held_mb']:.0f} + {one['warm_call_mb']:.1f}"


def _memory(lines: Lines) -> str:
    workloads = [name for name in lines.workloads(USUAL) if name in MEMORY_WORKLOADS]
    return _with_cached(
        lines, workloads, lines.contestants(USUAL), _held_and_call, "warm_held_mb", _held_and_call_again
    )


def _by_contestant(lines: Lines, workloads: list[str], contestants: list[str], text: Callable[[Outcome], str]) -> str:
    rows = [
        [workload, *(_cell(lines.get(USUAL, workload, name), text) for name in contestants)] for workload in workloads
    ]
    return markdown(["workload", *contestants], rows)


def _cell(outcome: Outcome, text: Callable[[Outcome], str]) -> str:
    return text(outcome) if "error" in outcome else "fails" if "failure" in outcome else "-"


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown, all columns but the first to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def draw(lines: Lines, path: Path) -> None:
    """Draws how many times as fast as eager each contestant runs each workload; needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = [name for name in lines.contestants(USUAL) if name != "eager"]
    workloads = lines.workloads(USUAL)
    halves = [workloads[: (len(workloads) + 1) // 2], workloads[(len(workloads) + 1) // 2 :]]
    figure, axes = pyplot.subplots(2, 1, figsize=(13, 8), sharey=True, layout="constrained")
    width = 0.84 / max(1, len(names))
    for axis, half in zip(axes, halves, strict=True):
        for number, name in enumerate(names):
            ratios = [lines.get(USUAL, workload, name).get("ratio") or float("nan") for workload in half]
            places = [place + (number + 0.5) * width - 0.42 for place in range(len(half))]
            bars = axis.bar(places, [ratio - 1 for ratio in ratios], width, bottom=1, label=name, color=f"C{number}")
            if name == "pipeline":
                for bar, ratio in zip(bars, ratios, strict=True):
                    if ratio == ratio:
                        above = max(ratio, 1) * 1.04
                        axis.text(bar.get_x() + width / 2, above, f"{ratio:.2g}", ha="center", va="bottom", fontsize=8)
        axis.set_yscale("log")
        axis.set_yticks(ticks := [0.25, 0.5, 1, 2, 4, 8, 16], [f"{tick:g}" for tick in ticks])
        axis.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
        axis.set_xticks(range(len(half)), half, rotation=20, ha="right")
        axis.set_xlim(-0.6, max(len(workloads) / 2, 1) - 0.4)
        axis.axhline(1, color="black", linewidth=0.8)
        axis.grid(axis="y", alpha=0.3)
        axis.set_axisbelow(True)
        axis.set_ylabel("times as fast as eager")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(names), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
