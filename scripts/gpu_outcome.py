"""What comes out of one case of gpu_check.py: numbers against PyTorch's, times against eager and torch.compile."""

from __future__ import annotations

import contextlib
import copy
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

#: NumPy has no bfloat16 in its files: such arrays are kept as their bits, under a name with this at the end.
_BITS = "_bfloat16"

#: How many kernels of a model are named.
_MOST_KERNELS = 40

#: What times are compared with.
PEERS = ("eager", "torch.compile")


def named(name: str, tensors: Any) -> dict[str, Any]:
    """Tensors as arrays of NumPy's under numbered names."""
    import torch

    halves = [tensor.dtype == torch.bfloat16 for tensor in tensors]
    bits = [tensor.view(torch.int16) if half else tensor for tensor, half in zip(tensors, halves, strict=True)]
    return {
        f"{name}{n:02}{_BITS * half}": one.detach().numpy()
        for n, (one, half) in enumerate(zip(bits, halves, strict=True))
    }


def unnamed(arrays: Any, name: str) -> list[Any]:
    """The inverse of `named`."""
    import ml_dtypes

    names = sorted(one for one in arrays if one.startswith(name))
    return [arrays[one].view(ml_dtypes.bfloat16) if one.endswith(_BITS) else arrays[one] for one in names]


def case(folder: Path, number: int, peers: Sequence[str] = PEERS) -> None:
    """Runs one case and prints what came out as JSON."""
    import pipeline

    about = json.loads((folder / "index.json").read_text())["cases"][number]
    executable = pipeline.load(folder / f"{number}.pipeline")
    torch = None if about["kind"] == "numbers" else _torch()  # importing it takes longer than most cases
    if about["kind"] == "timed":
        outcome = {"outcome": "right, not timed: torch with CUDA is missing"} if torch is None else {}
        outcome = outcome or _timed(torch, executable, about["name"], peers)
    elif about["kind"] == "whole":
        outcome = {"outcome": "not run: torch with CUDA is missing"} if torch is None else {}
        outcome = outcome or _whole(torch, executable, about["name"], peers)
    else:
        outcome = _numbers(executable, folder, number, about["tolerance"])
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
    arguments, expected = unnamed(arrays, "argument"), unnamed(arrays, "result")
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


def _timed(torch: Any, executable: Any, name: str, peers: Sequence[str]) -> dict[str, Any]:
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
    found |= _against(torch, timed.function, args, seconds, peers)
    if timed.operations:
        return found | {"tflops": timed.operations / seconds / 1e12}
    moved = sum(one.numel() * one.element_size() for one in (*args, got))
    source = torch.empty(moved // 2, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    copied = _seconds(torch, lambda: target.copy_(source))
    return found | {"bandwidth": copied / seconds, "gigabytes": moved / seconds / 1e9}


def _whole(torch: Any, executable: Any, name: str, peers: Sequence[str]) -> dict[str, Any]:
    """Compares a model with itself in float32, by eager; times, and which kernels took them."""
    from gpu_whole import WHOLE

    whole = WHOLE[name]
    model, args = whole.made("cuda")
    named = (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False))
    executable = executable.with_weights(dict(named))
    exact = (arg.float() if arg.is_floating_point() else arg for arg in args)
    with torch.no_grad(), _without_tf32(torch):
        wanted = copy.deepcopy(model).float()(*exact)
    with torch.no_grad():
        got = executable(*args)
        error, theirs = (
            float((result.float() - wanted).abs().max() / wanted.abs().max()) for result in (got, model(*args))
        )
        if not error <= whole.tolerance:
            return {"outcome": f"WRONG: differs by {error:.3g} of the greatest result, eager by {theirs:.3g}"}
        seconds = _seconds(torch, lambda: executable(*args))
        found = {"outcome": "right", "error": error, "eager's error": theirs, "seconds": seconds}
        found["kernels"] = _kernels(torch, lambda: executable(*args))
        return found | _against(torch, model, args, seconds, peers)


@contextlib.contextmanager
def _without_tf32(torch: Any) -> Iterator[None]:
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


def _kernels(torch: Any, function: Callable[[], Any]) -> list[tuple[str, int, float]]:
    """The kernels of a call that take longest: names, how often, microseconds in all."""
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as profile:
        function()
        torch.cuda.synchronize()
    found = [(one.key, one.count, one.self_device_time_total) for one in profile.key_averages()]
    return sorted((one for one in found if one[2]), key=lambda one: -one[2])[:_MOST_KERNELS]


def _against(torch: Any, function: Any, args: Any, seconds: float, peers: Sequence[str]) -> dict[str, Any]:
    """How many times as fast as each of the peers."""
    found: dict[str, Any] = {}
    if "eager" in peers:
        found["eager"] = _seconds(torch, lambda: function(*args)) / seconds
    if "torch.compile" in peers:
        found["compiled"] = _against_compiled(torch, function, args, seconds)
    return found


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
