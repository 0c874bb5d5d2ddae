"""What a sweep has found: a table of kinds, the worst cases, what is wrong, and a picture of the distributions."""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from report import about, markdown
from rich.console import Console

from shapes.case import Case

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE, PICTURE = DOCS / "performance.md", DOCS / "pictures" / "shapes.png"
START, END = "<!-- shapes: benchmarks/sweep.py --write -->", "<!-- end of shapes -->"

#: Whose cases are smaller move through a cache: the bandwidth of copies says nothing of them.
CACHE_BYTES = 32 << 20

#: Multiply-adds of bf16 to one of f32, where the processor has dot products of pairs.
SPEED_OF_BF16 = 2.0

WORST = 20

Outcome = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """One case in one setting: how long all that ran it took.

    Attributes:
        case, setting: what was run.
        seconds: of a call, by contestant.
        share: of the floor, the least time that the machine could do the work in; None where it is not known.
    """

    case: str
    setting: str
    seconds: dict[str, float]
    share: float | None

    @property
    def kind(self) -> str:
        """The kind of the case."""
        return self.case.partition("/")[0]

    @property
    def to_eager(self) -> float:
        """How many times as fast as eager."""
        return self.seconds["eager"] / self.seconds["pipeline"]

    @property
    def best(self) -> str:
        """The fastest of the others, eager among them: Inductor does not run what it leaves to eager's libraries."""
        return min((name for name in self.seconds if name != "pipeline"), key=lambda name: self.seconds[name])

    @property
    def to_best(self) -> float:
        """How many times as fast as the fastest of the others."""
        return self.seconds[self.best] / self.seconds["pipeline"]


@dataclass
class Outcomes:
    """Outcomes in a file of JSON lines; of several of the same, the last one counts."""

    path: Path
    machine: dict[str, Any] = field(default_factory=dict)
    found: dict[tuple[str, str], dict[str, Outcome]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for line in self.path.read_text().splitlines() if self.path.exists() else ():
            self._take(json.loads(line))

    def append(self, line: Outcome) -> None:
        """Adds a line to the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self._take(line)

    def of(self, case: Case, setting: Any) -> dict[str, Outcome]:
        """The outcomes of a case in a setting, by contestant."""
        return self.found.get((case.name, str(setting)), {})

    def has(self, case: Case, setting: Any, names: Sequence[str], timed: bool) -> bool:
        """Whether all these have an outcome, with times if `timed`; where eager fails, there are no others."""
        outcomes = self.of(case, setting)
        if "failure" in outcomes.get("eager", {}):
            return True
        return all(
            name in outcomes and (not timed or "wall" in outcomes[name] or "failure" in outcomes[name])
            for name in names
        )

    def results(self) -> list[Result]:
        """All cases that eager and pipeline have run."""
        found = []
        for (case, setting), outcomes in self.found.items():
            seconds = {name: _seconds(one, setting) for name, one in outcomes.items() if _counts(name, one)}
            if {"eager", "pipeline"} <= set(seconds):
                share = self._floor(outcomes["eager"], setting)
                found.append(Result(case, setting, seconds, share and share / seconds["pipeline"]))
        return found

    def troubles(self) -> list[Outcome]:
        """What pipeline has computed wrong, or not at all."""
        return [
            outcomes["pipeline"]
            for outcomes in self.found.values()
            if {"failure", "wrong"} & set(outcomes.get("pipeline", ()))
        ]

    def to_eager(self, outcome: Outcome) -> float | None:
        """How many times as fast as eager an outcome is."""
        eager = self.found.get((outcome["case"], outcome["setting"]), {}).get("eager", {})
        if "wall" not in eager or "wall" not in outcome:
            return None
        return _seconds(eager, outcome["setting"]) / _seconds(outcome, outcome["setting"])

    def _floor(self, eager: Outcome, setting: str) -> float | None:
        """The seconds that the work takes at the machine's peak, by multiply-adds or, out of caches, by copies."""
        dtype, _, threads = setting.partition("/")
        speed = self.machine.get("flops", 0.0) * int(threads) * (SPEED_OF_BF16 if dtype == "bf16" else 1.0)
        if not speed:
            return None
        by_memory = eager["bytes"] / self.machine["bytes"] if eager["bytes"] > CACHE_BYTES else 0.0
        return max(eager["flops"] / speed, by_memory) or None

    def _take(self, line: Outcome) -> None:
        if "machine" in line:
            new, old = line["machine"], self.machine
            peak = {name: max(old.get(name, 0.0), new[name]) for name in ("flops", "bytes")}  # a busy machine has less
            self.machine = {**new, **peak, "versions": {**old.get("versions", {}), **new["versions"]}}
            return
        self.found.setdefault((line["case"], line["setting"]), {})[line["contestant"]] = line


def _counts(name: str, outcome: Outcome) -> bool:
    return "wall" in outcome and "failure" not in outcome and (name == "pipeline" or "wrong" not in outcome)


def _seconds(outcome: Outcome, setting: str) -> float:
    """CPU time where one thread works, in which others' work does not count; else time by the clock."""
    return outcome["cpu" if setting.endswith("/1") else "wall"]


def page(outcomes: Outcomes) -> str:
    """All tables as Markdown."""
    results = outcomes.results()
    parts = [about(outcomes)]
    if results:
        parts += [
            _told(results),
            _kinds(results),
            f"#### The {WORST} slowest beside the best of the others",
            _worst(results),
        ]
    troubles = outcomes.troubles()
    if troubles:
        rows = [[f"**{one['case']}**", one["setting"], _trouble(one)] for one in troubles]
        parts += ["#### Wrong or refused", markdown(["case", "setting", "what"], rows)]
    return "\n\n".join(parts)


def _told(results: list[Result]) -> str:
    ratios = [one.to_best for one in results]
    return (
        f"{len(results)} cases: {_geomean(ratios):.2f} times as fast as the best of the others (geometric mean), "
        f"{_part(ratios, 1.0)} at least as fast, the slowest {min(ratios):.2f}; "
        f"{sum(one.to_eager < 1 for one in results)} slower than eager."
    )


def _geomean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def _part(values: Sequence[float], least: float) -> str:
    return f"{sum(value >= least for value in values) / len(values):.0%}"


def _kinds(results: list[Result]) -> str:
    header = ["kind", "cases", "× best", "at least 1", "below 0.9", "least", "× eager", "slower than eager", "of floor"]
    rows = []
    for kind in dict.fromkeys(one.kind for one in results):
        of_kind = [one for one in results if one.kind == kind]
        best, eager = [one.to_best for one in of_kind], [one.to_eager for one in of_kind]
        shares = [one.share for one in of_kind if one.share]
        rows.append(
            [
                kind,
                str(len(of_kind)),
                f"{_geomean(best):.2f}",
                _part(best, 1.0),
                str(sum(one < 0.9 for one in best)),
                f"{min(best):.2f}",
                f"{_geomean(eager):.2f}",
                str(sum(one < 1 for one in eager)),
                f"{statistics.median(shares):.0%}" if shares else "-",
            ]
        )
    return markdown(header, rows)


def _worst(results: list[Result]) -> str:
    rows = [
        [
            one.case,
            one.setting,
            f"{1e3 * one.seconds['pipeline']:.4g}",
            one.best,
            f"{one.to_best:.2f}",
            f"{one.to_eager:.2f}",
            f"{one.share:.0%}" if one.share else "-",
        ]
        for one in sorted(results, key=lambda one: one.to_best)[:WORST]
    ]
    return markdown(["case", "setting", "ms", "best of the others", "× best", "× eager", "of floor"], rows)


def _trouble(outcome: Outcome) -> str:
    return (outcome.get("failure") or outcome["wrong"]).replace("\n", " ").replace("|", "\\|")[:200]


def write(outcomes: Outcomes, console: Console) -> None:
    """Puts the tables between their marks in docs/performance.md, and the picture beside it."""
    before, rest = PAGE.read_text().split(START)
    PAGE.write_text(f"{before}{START}\n{page(outcomes)}\n{END}{rest.split(END)[1]}")
    try:
        draw(outcomes, PICTURE)
    except ModuleNotFoundError as error:
        console.print(f"{PICTURE.name} is not drawn: {sys.executable} has no {error.name}", soft_wrap=True)


def draw(outcomes: Outcomes, path: Path) -> None:
    """Draws each kind's ratios to the best of the others, and shares of the floor; needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    results = outcomes.results()
    names = list(dict.fromkeys(one.kind for one in results))
    wrong = {(one["case"], one["setting"]) for one in outcomes.troubles()}
    figure, (ratios, shares) = pyplot.subplots(
        1, 2, figsize=(13, 0.28 * len(names) + 1.6), sharey=True, layout="constrained"
    )
    for place, kind in enumerate(names):
        of_kind = [one for one in results if one.kind == kind]
        for axis, values in (
            (ratios, [one.to_best for one in of_kind]),
            (shares, [one.share for one in of_kind]),
        ):
            points = [
                (value, place + 0.5 * ((number * 0.618) % 1 - 0.5), (one.case, one.setting) in wrong)
                for number, (one, value) in enumerate(zip(of_kind, values, strict=True))
                if value
            ]
            for is_wrong, color in ((False, "C0"), (True, "red")):
                chosen = [point for point in points if point[2] == is_wrong]
                axis.scatter([x for x, *_ in chosen], [y for _, y, _ in chosen], s=9, color=color, alpha=0.6)
            if points:
                axis.plot([statistics.median(x for x, *_ in points)] * 2, [place - 0.35, place + 0.35], color="black")
    ratios.set_xscale("log")
    ratios.set_xticks(ticks := [0.25, 0.5, 0.9, 2, 4, 8], [f"{tick:g}" for tick in ticks])
    ratios.xaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    ratios.axvline(1, color="black", linewidth=0.8)
    ratios.set_yticks(range(len(names)), names)
    ratios.invert_yaxis()
    ratios.set_xlabel("times as fast as the best of the others")
    shares.axvline(1, color="black", linewidth=0.8)
    shares.set_xlabel("part of the machine's peak")
    for axis in (ratios, shares):
        axis.grid(axis="x", alpha=0.3)
        axis.set_axisbelow(True)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
