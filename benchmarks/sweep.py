"""The sweep of shapes: many shapes of every kind of op, and whole models, beside PyTorch and the peers that pip has.

Usage: python benchmarks/sweep.py [--sample [N]] [--check] [--only TEXT ...] [--settings f32/1,...] [--write]

Cases are drawn from published networks and at random with a fixed seed (shapes/). Each is compiled by every contestant
in a process of its own; then these take turns in calling it. Results are judged by eager's in float64. Each outcome is
a line of JSON in a file, and what the file has is not run again, so that a sweep goes on where it was stopped.

Every case has a setting of dtype and threads, in turn; `--settings` runs all cases in those given. `--check` compiles
and judges alone. Tables are printed (shapes/summary.py); `--write` puts them into docs/performance.md, with a picture.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from environment import installed, machine
from rich.console import Console
from shapes.case import Case
from shapes.entrants import ENTRANTS
from shapes.families import CASES, kinds
from shapes.race import Setting, track
from shapes.summary import Outcomes, page, write

DEFAULT_OUTPUT = Path(__file__).resolve().parents[1] / "build" / "shapes.jsonl"

#: Settings of the cases of a kind, in turn: half of them are in f32 on one thread.
SETTINGS = tuple(map(Setting.parse, ("f32/1", "bf16/1", "f32/1", "f32/2", "f32/1", "bf16/2")))

#: So many cases of each kind make a sample, unless it is told.
SAMPLED = 4


def chosen(arguments: argparse.Namespace) -> Iterator[tuple[Case, Setting]]:
    """The cases that are asked for, each with its settings."""
    given = arguments.settings
    for kind in kinds():
        cases = [case for case in CASES.values() if case.kind == kind]
        step = max(1, len(cases) // arguments.sample) if arguments.sample else 1
        for number, case in enumerate(cases):
            wanted = not arguments.only or any(text in case.name for text in arguments.only)
            if not wanted or number % step:
                continue
            for setting in given or (SETTINGS[(number // step) % len(SETTINGS)],):
                if setting.dtype in case.dtypes:
                    yield case, setting


def takes_part(name: str, case: Case, setting: Setting) -> bool:
    """Whether a contestant is raced with a case: not where it calls what eager calls, nor without the dtype."""
    return setting.dtype in ENTRANTS[name].by_dtype and (case.inductor or name != "inductor")


def there(names: Sequence[str], console: Console) -> dict[str, str]:
    """The contestants that are installed, with the versions of what they are known by; says who is not."""
    found = {}
    for name in names:
        package = ENTRANTS[name].contestant("f32").packages[0]
        answer = installed("inference", name, sys.executable)
        if answer["missing"]:
            console.print(f"{name} is left out: there is no {', '.join(answer['missing'])}", soft_wrap=True)
            continue
        found[name] = answer["versions"][package]
    return found


def measure(arguments: argparse.Namespace, outcomes: Outcomes, console: Console) -> None:
    """Runs what the file does not have yet."""
    cpus = tuple(sorted(os.sched_getaffinity(0)))[: max(setting.threads for setting in SETTINGS)]
    names = there(arguments.contestants, console)
    outcomes.append({"machine": machine(names), "time": time.strftime("%Y-%m-%d %H:%M")})
    slices = {"slices": 0} if arguments.check else {}
    todo = [
        (case, setting, part)
        for case, setting in chosen(arguments)
        for part in [[name for name in names if takes_part(name, case, setting)]]
        if setting.threads <= len(cpus)
        if arguments.again or not outcomes.has(case, setting, part, timed=not arguments.check)
    ]
    with track(list(names), cpus) as tracks:
        for number, (case, setting, part) in enumerate(todo):
            for outcome in tracks.race(case, setting, part, **slices):
                outcomes.append(outcome)
                if outcome["contestant"] == "pipeline" or "failure" in outcomes.of(case, setting)["eager"]:
                    console.print(
                        f"{number + 1}/{len(todo)} {told(outcome, outcomes)}", highlight=False, soft_wrap=True
                    )


def told(outcome: dict[str, Any], outcomes: Outcomes) -> str:
    """An outcome in a line."""
    text = f"{outcome['case']} {outcome['setting']} {outcome['contestant']}"
    if trouble := outcome.get("failure") or outcome.get("wrong"):
        return f"[red]{text}: {json.dumps(trouble)}[/red]"
    ratio = outcomes.to_eager(outcome)
    return text + (f" {ratio:.2f}x" if ratio else "")


def settings(text: str) -> list[Setting]:
    """What `--settings` lists."""
    found = [Setting.parse(part) for part in text.split(",")]
    dtypes = sorted({dtype for case in CASES.values() for dtype in case.dtypes})
    for setting in found:
        if setting.dtype not in dtypes:
            raise argparse.ArgumentTypeError(f"no case is of {setting.dtype}, but of {', '.join(dtypes)}")
        if setting.threads < 1:
            raise argparse.ArgumentTypeError(f"{text}: one thread is the least")
    return found


def contestants(text: str) -> list[str]:
    """What `--contestants` lists."""
    names = text.split(",")
    for name in names:
        if name not in ENTRANTS:
            raise argparse.ArgumentTypeError(f"there is no {name}, but {', '.join(ENTRANTS)}")
    if "eager" not in names:
        raise argparse.ArgumentTypeError(f"{text}: results are judged by eager's, which is not among them")
    return names


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, nargs="?", const=SAMPLED, metavar="N", help="so many cases of each kind")
    parser.add_argument("--check", action="store_true", help="compile and judge, measure nothing")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="cases whose names have one of these")
    parser.add_argument("--again", action="store_true", help="also what the file has already")
    parser.add_argument("--settings", type=settings, metavar="DTYPE/THREADS,...", help="run all cases in these")
    parser.add_argument(
        "--contestants", type=contestants, metavar="NAME,...", default=",".join(ENTRANTS), help="eager among them"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", default=DEFAULT_OUTPUT)
    parser.add_argument("--report", action="store_true", help="measure nothing, print what the file has")
    parser.add_argument("--write", action="store_true", help="put tables and picture into docs/")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    console = Console()
    outcomes = Outcomes(options.output)
    if not options.report:
        measure(options, outcomes, console)
    print(page(outcomes))
    if options.write:
        write(outcomes, console)


if __name__ == "__main__":
    main()
