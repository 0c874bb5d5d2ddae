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
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

#: NumPy has no bfloat16 in its files: such arrays are kept as their bits, under a name with this at the end.
_BITS = "_bfloat16"

#: How long a case may take, in seconds.
_PATIENCE = 180

_PAGE = ROOT / "docs" / "performance.md"
_START, _END = "<!-- gpu: scripts/gpu_check.py report -->", "<!-- end of gpu -->"


def build(folder: Path, target: str, only: Sequence[str]) -> None:
    """An artifact for each case, with arguments and what PyTorch computes where those are small."""
    import numpy as np
    import torch
    from gpu_cases import NUMBERS, TIMED, WHOLE, Function

    import pipeline

    folder.mkdir(parents=True, exist_ok=True)
    index: list[dict[str, Any]] = []

    def add(kind: str, name: str, model: Any, args: Any, tolerance: float, features: str = "", dynamic: Any = None):
        number = len(index)
        executable = pipeline.compile(model, args, target=target + features, dynamic_shapes=dynamic)
        executable.save(folder / f"{number}.pipeline")
        index.append({"kind": kind, "name": name, "tolerance": tolerance})
        if kind != "timed":
            expected = torch.utils._pytree.tree_leaves(model(*args))
            np.savez_compressed(folder / f"{number}.npz", **_named("argument", args), **_named("result", expected))
        print(f"built {kind}: {name}", flush=True)

    def wanted(name: str) -> bool:
        return not only or any(one in name for one in only)

    torch.manual_seed(0)
    for kind, cases in (("numbers", NUMBERS), ("model", WHOLE)):
        for name, make in cases.items():
            if wanted(name):
                case = make()
                add(kind, name, case.model, case.args, case.tolerance, dynamic=case.dynamic)
    for name, timed in TIMED.items():
        if wanted(name):
            add("timed", name, Function(timed.function), timed.arguments("cpu"), timed.tolerance, timed.target)
    (folder / "index.json").write_text(json.dumps({"target": target, "cases": index}))


def _named(name: str, tensors: Any) -> dict[str, Any]:
    """Tensors as arrays under numbered names."""
    import torch

    halves = [tensor.dtype == torch.bfloat16 for tensor in tensors]
    bits = [tensor.view(torch.int16) if half else tensor for tensor, half in zip(tensors, halves, strict=True)]
    return {
        f"{name}{n:02}{_BITS * half}": one.detach().numpy()
        for n, (one, half) in enumerate(zip(bits, halves, strict=True))
    }


def _arrays(arrays: Any, name: str) -> list[Any]:
    """The inverse of `_named`."""
    import ml_dtypes

    names = sorted(one for one in arrays if one.startswith(name))
    return [arrays[one].view(ml_dtypes.bfloat16) if one.endswith(_BITS) else arrays[one] for one in names]


def run(folder: Path, figures: Path, only: Sequence[str] = ()) -> int:
    """Runs what is in a folder; returns the exit code: 0, 1 if something was wrong, 2 if nothing could run."""
    try:
        index = json.loads((folder / "index.json").read_text())
    except FileNotFoundError:
        print(f"{folder} has no index.json; make it with: python scripts/gpu_check.py build {folder}", file=sys.stderr)
        return 2
    missing = _what_is_missing()
    if missing is not None:
        print(f"nothing can run here: {missing}", file=sys.stderr)
        return 2
    outcomes = []
    for number, case in enumerate(index["cases"]):
        if only and not any(one in case["name"] for one in only):
            continue
        outcomes.append({**case, **_in_a_process(folder, number)})
        print(_line(outcomes[-1]), flush=True)
        figures.parent.mkdir(parents=True, exist_ok=True)
        figures.write_text(json.dumps({"target": index["target"], "machine": _machine(), "cases": outcomes}, indent=1))
    wrong = [one["name"] for one in outcomes if one["outcome"] != "right"]
    print(f"{len(outcomes) - len(wrong)} right, {len(wrong)} not{': ' if wrong else ''}{', '.join(wrong)}")
    return int(bool(wrong))


def _what_is_missing() -> str | None:
    """Why no executable can run on this machine; None if one can."""
    from pipeline.errors import PipelineError
    from pipeline.runtime.cuda import find_gpu

    try:
        find_gpu()
    except PipelineError as error:
        return str(error)
    return None


def _machine() -> str:
    from pipeline.runtime.cuda import find_gpu

    return find_gpu()


def _in_a_process(folder: Path, number: int) -> dict[str, Any]:
    """What `case` finds out, in a process of its own; a crash is an outcome like others."""
    command = [sys.executable, __file__, "case", str(folder), "--number", str(number)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        return {"outcome": f"no answer in {_PATIENCE} s"}
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("{"):
            return dict(json.loads(line))
    said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return {"outcome": said[-1]}


def case(folder: Path, number: int) -> None:
    """Runs one case and prints what came out as JSON."""
    import pipeline

    about = json.loads((folder / "index.json").read_text())["cases"][number]
    executable = pipeline.load(folder / f"{number}.pipeline")
    torch = None if about["kind"] == "numbers" else _torch()  # importing it takes longer than most cases
    if about["kind"] == "timed":
        outcome = {"outcome": "right, not timed: torch with CUDA is missing"} if torch is None else {}
        outcome = outcome or _timed(torch, executable, about["name"])
    else:
        outcome = _numbers(executable, folder, number, about["tolerance"])
        if about["kind"] == "model" and torch is not None:
            outcome |= _model_times(torch, executable, about["name"])
    missed = [one.reason for one in executable.remarks if one.op == "cublas"]
    print(json.dumps(outcome | ({"missed": missed[0]} if missed else {})))


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def _numbers(executable: Any, folder: Path, number: int, tolerance: float) -> dict[str, Any]:
    """Compares with what PyTorch said; twice more, for then a graph is recorded and replayed."""
    import numpy as np

    arrays = np.load(folder / f"{number}.npz")
    arguments, expected = _arrays(arrays, "argument"), _arrays(arrays, "result")
    worst = 0.0
    for _ in range(3):
        results = _leaves(executable(*(one.copy() for one in arguments)))
        for one, other in zip(results, expected, strict=True):
            a, b = np.asarray(one).astype(np.float64), np.asarray(other).astype(np.float64)
            if not np.allclose(a, b, tolerance, tolerance, equal_nan=True):
                return {"outcome": f"WRONG: differs by {np.nanmax(np.abs(a - b), initial=0):.3g}"}
            worst = max(worst, float(np.nanmax(np.abs(a - b), initial=0)))
    return {"outcome": "right", "error": worst}


def _leaves(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in _leaves(part)]
    return [result]


def _timed(torch: Any, executable: Any, name: str) -> dict[str, Any]:
    """Compares with the function in float32, and times both, and a copy of as many bytes."""
    from gpu_cases import TIMED

    timed = TIMED[name]
    args = timed.arguments("cuda")
    wanted = timed.function(*(one.float() for one in args))
    got = executable(*args)
    error = float((got.float() - wanted).abs().max() / wanted.abs().max())
    if not error <= timed.tolerance:
        return {"outcome": f"WRONG: differs by {error:.3g} of the greatest result"}
    seconds = _seconds(torch, lambda: executable(*args))
    found = {"outcome": "right", "error": error, "seconds": seconds}
    found["eager"] = _seconds(torch, lambda: timed.function(*args)) / seconds
    found["compiled"] = _against_compiled(torch, timed.function, args, seconds)
    if timed.operations:
        return found | {"tflops": timed.operations / seconds / 1e12}
    moved = sum(one.numel() * one.element_size() for one in (*args, got))
    source = torch.empty(moved // 2, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    copied = _seconds(torch, lambda: target.copy_(source))
    return found | {"bandwidth": copied / seconds, "gigabytes": moved / seconds / 1e9}


def _model_times(torch: Any, executable: Any, name: str) -> dict[str, Any]:
    """A model's time against eager and torch.compile, with other weights: times do not depend on them."""
    from gpu_cases import WHOLE

    torch.manual_seed(0)
    made = WHOLE[name]()
    model, args = made.model.cuda(), tuple(one.cuda() for one in made.args)
    with torch.no_grad():
        seconds = _seconds(torch, lambda: executable(*args))
        eager = _seconds(torch, lambda: model(*args)) / seconds
        compiled = _against_compiled(torch, model, args, seconds)
    return {"seconds": seconds, "eager": eager, "compiled": compiled}


def _against_compiled(torch: Any, function: Callable[..., Any], args: Any, seconds: float) -> float | None:
    """How many times as fast as torch.compile; None where that does not work."""
    try:
        compiled = torch.compile(function)
        compiled(*args)
        return _seconds(torch, lambda: compiled(*args)) / seconds
    except Exception as error:
        print(f"torch.compile: {error}", file=sys.stderr)
        return None


def _seconds(torch: Any, function: Callable[[], Any]) -> float:
    """The median time of a call on the GPU, in batches long enough to time."""
    for _ in range(5):
        function()
    torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    torch.cuda.synchronize()
    count = max(1, min(50, int(0.02 / max(1e-6, time.perf_counter() - start))))
    times = []
    for _ in range(15):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(count):
            function()
        last.record()
        last.synchronize()
        times.append(first.elapsed_time(last) / 1e3 / count)
    return sorted(times)[len(times) // 2]


def _line(outcome: dict[str, Any]) -> str:
    said = f"{outcome['outcome']}: {outcome['name']}"
    if "seconds" in outcome:
        said += f", {outcome['seconds'] * 1e3:.3f} ms, {_times(outcome['eager'])} eager"
        said += f", {_times(outcome.get('compiled'))} torch.compile"
    if "bandwidth" in outcome:
        said += f", {outcome['bandwidth']:.0%} of the bandwidth of a copy"
    return said + (f" ({outcome['missed']})" if "missed" in outcome else "")


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}x"


def report(figures: Path) -> None:
    """Writes the figures between their marks in docs/performance.md."""
    text = _PAGE.read_text()
    before, _, rest = text.partition(_START)
    _, _, behind = rest.partition(_END)
    _PAGE.write_text(f"{before}{_START}\n{table(json.loads(figures.read_text()))}{_END}{behind}")


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
    arguments = parser.parse_args(argv)
    if arguments.what == "run":
        code = run(arguments.path, arguments.figures, arguments.only)
        if arguments.write and code != 2:
            report(arguments.figures)
        return code
    if arguments.what == "build":
        build(arguments.path, arguments.target, arguments.only)
    elif arguments.what == "case":
        case(arguments.path, arguments.number)
    else:
        report(arguments.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
