"""Checks executables on an NVIDIA GPU: numbers against PyTorch, time against eager, torch.compile and a copy.

python scripts/gpu_check.py build DIR [--target cuda:sm_90]   makes artifacts, with arguments and expected results
python scripts/gpu_check.py run DIR [--figures FILE]          runs them; writes figures
python scripts/gpu_check.py report FILE                       writes the figures into docs/performance.md

`run` needs no compiler: NumPy, ml-dtypes, safetensors and cuda-bindings, and for times, torch with CUDA. Each case runs
in a process of its own, so that one that fails leaves the others alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import gpu_figures
import gpu_outcome
from gpu_outcome import PEERS

ROOT = Path(__file__).resolve().parents[1]

#: How long a case may take, in seconds.
_PATIENCE = 180

#: How much is kept of what a case that failed has said, in lines.
_LINES = 12


def build(folder: Path, target: str, only: Sequence[str]) -> None:
    """An artifact for each case, with arguments and what PyTorch computes where those are small."""
    import numpy as np
    import torch
    from gpu_cases import NUMBERS, TIMED, Function
    from gpu_whole import WHOLE

    import pipeline
    from pipeline.runtime import artifact

    folder.mkdir(parents=True, exist_ok=True)
    index: list[dict[str, Any]] = []

    def add(kind: str, name: str, model: Any, args: Any, tolerance: float, features: str = "", dynamic: Any = None):
        number = len(index)
        executable = pipeline.compile(model, args, target=target + features, dynamic_shapes=dynamic)
        path = folder / f"{number}.pipeline"
        if kind == "whole":
            artifact.save(path, executable.code, executable.signature, {}, name)  # the model has its weights there, too
        else:
            executable.save(path)
        index.append({"kind": kind, "name": name, "tolerance": tolerance})
        if kind == "numbers":
            expected = torch.utils._pytree.tree_leaves(model(*args))
            np.savez_compressed(
                folder / f"{number}.npz", **gpu_outcome.named("argument", args), **gpu_outcome.named("result", expected)
            )
        print(f"built {kind}: {name}", flush=True)

    def wanted(name: str) -> bool:
        return not only or any(one in name for one in only)

    torch.manual_seed(0)
    for name, make in NUMBERS.items():
        if wanted(name):
            case = make()
            add("numbers", name, case.model, case.args, case.tolerance, dynamic=case.dynamic)
    for name, timed in TIMED.items():
        if wanted(name):
            add("timed", name, Function(timed.function), timed.arguments("cpu"), timed.tolerance, timed.target)
    for name, whole in WHOLE.items():
        if wanted(name):
            add("whole", name, *whole.made(), whole.tolerance, whole.target)
    (folder / "index.json").write_text(json.dumps({"target": target, "cases": index}))


def run(folder: Path, figures: Path, only: Sequence[str] = (), jobs: int = 1, peers: Sequence[str] = PEERS) -> int:
    """Runs what is in a folder; returns the exit code: 0, 1 if something was wrong, 2 if nothing could run.

    What is not timed runs in `jobs` processes side by side.
    """
    try:
        index = json.loads((folder / "index.json").read_text())
    except FileNotFoundError:
        print(f"{folder} has no index.json; make it with: python scripts/gpu_check.py build {folder}", file=sys.stderr)
        return 2
    missing = _what_is_missing()
    if missing is not None:
        print(f"nothing can run here: {missing}", file=sys.stderr)
        return 2
    chosen = [
        (number, case)
        for number, case in enumerate(index["cases"])
        if not only or any(part in case["name"] for part in only)
    ]
    outcomes = []
    for case, outcome in _outcomes(folder, chosen, jobs, peers):
        outcomes.append({**case, **outcome})
        print(gpu_figures.line(outcomes[-1]), flush=True)
        figures.parent.mkdir(parents=True, exist_ok=True)
        figures.write_text(json.dumps({"target": index["target"], "machine": _machine(), "cases": outcomes}, indent=1))
    wrong = [one["name"] for one in outcomes if one["outcome"] != "right"]
    print(f"{len(outcomes) - len(wrong)} right, {len(wrong)} not{': ' if wrong else ''}{', '.join(wrong)}")
    return int(bool(wrong))


def _outcomes(
    folder: Path, chosen: Sequence[tuple[int, dict[str, Any]]], jobs: int, peers: Sequence[str]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each case with what came out: first those that are not timed, side by side, then the others alone."""
    together = [(number, case) for number, case in chosen if case["kind"] == "numbers"]
    with ThreadPoolExecutor(jobs) as pool:
        found = pool.map(lambda one: _in_a_process(folder, one[0], peers), together)
        yield from zip((case for _, case in together), found, strict=True)
    for number, case in chosen:
        if case["kind"] != "numbers":
            yield case, _in_a_process(folder, number, peers)


def _what_is_missing() -> str | None:
    """Why no executable can run on this machine; None if one can."""
    from pipeline.errors import PipelineError
    from pipeline.runtime.device.cuda import find_gpu

    try:
        find_gpu()
    except PipelineError as error:
        return str(error)
    return None


def _machine() -> str:
    from pipeline.runtime.device.cuda import find_gpu

    return find_gpu()


def _in_a_process(folder: Path, number: int, peers: Sequence[str]) -> dict[str, Any]:
    """What `gpu_outcome.case` finds out, in a process of its own; a crash is an outcome like others."""
    command = [sys.executable, __file__, "case", str(folder), "--number", str(number), "--peers", *peers]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        return {"outcome": f"no answer in {_PATIENCE} s"}
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("{"):
            return dict(json.loads(line))
    said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return {"outcome": said[-1], "said": said[-_LINES:]}


def main(argv: Sequence[str] | None = None) -> int:
    """Does what the command line says; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("build", "run", "case", "report"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--target", default="cuda:sm_90")
    parser.add_argument("--only", action="append", default=[], help="cases with this in their names alone")
    parser.add_argument("--figures", type=Path, default=ROOT / "build" / "gpu-figures.json")
    parser.add_argument("--write", action="store_true", help="report what was run at once")
    parser.add_argument("--number", type=int, default=0, help="which case, of `case`")
    parser.add_argument("--jobs", type=int, default=1, help="how many cases that are not timed run side by side")
    parser.add_argument("--peers", nargs="*", default=PEERS, choices=PEERS, help="what times are compared with")
    arguments = parser.parse_args(argv)
    if arguments.what == "run":
        code = run(arguments.path, arguments.figures, arguments.only, arguments.jobs, arguments.peers)
        if arguments.write and code != 2:
            gpu_figures.report(arguments.figures)
        return code
    if arguments.what == "build":
        build(arguments.path, arguments.target, arguments.only)
    elif arguments.what == "case":
        gpu_outcome.case(arguments.path, arguments.number, arguments.peers)
    else:
        gpu_figures.report(arguments.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
