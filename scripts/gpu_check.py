"""Checks executables on a GPU: numbers against PyTorch, bandwidth against a copy on the device.

python scripts/gpu_check.py build DIR [--target cuda:sm_90]   makes artifacts, with arguments and expected results
python scripts/gpu_check.py run DIR                           runs them; needs neither torch nor a compiler
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import pipeline

#: Elements of the kernels that are timed.
_LARGE = 1 << 24

#: NumPy has no bfloat16 in its files: such arrays are kept as their bits, under a name with this at the end.
_BITS = "_bfloat16"


def build(folder: Path, target: str) -> None:
    """An artifact for each test model and timed kernel, with arguments and what PyTorch computes."""
    import torch

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "gpu"))
    from gpu_models import MODELS, Case, Function

    rows = torch.randn(_LARGE // 1024, 1024)
    cases: dict[str, Any] = {name: make() for name, make in MODELS.items()}
    cases["timed: x * 2 + y"] = Case(Function(lambda x, y: x * 2 + y), (rows, rows.clone()))
    cases["timed: softmax"] = Case(Function(lambda x: torch.softmax(x, -1)), (rows,))
    cases["timed: layer norm"] = Case(torch.nn.LayerNorm(1024), (rows,))
    cases["timed: matmul 1024"] = Case(Function(lambda x, y: x @ y), (rows[:1024], rows[1024:2048]), 1e-3)
    halves = tuple(torch.randn(4096, 4096).to(torch.bfloat16) for _ in range(2))
    cases["timed: matmul 4096, bfloat16"] = Case(Function(lambda x, y: x @ y), halves, 2e-2)
    heads = tuple(torch.randn(4, 16, 1024, 64) for _ in range(3))
    attention = torch.nn.functional.scaled_dot_product_attention
    cases["timed: attention"] = Case(Function(lambda q, k, v: attention(q, k, v)), heads, 1e-3)
    folder.mkdir(parents=True, exist_ok=True)
    index = []
    for number, (name, case) in enumerate(cases.items()):
        executable = pipeline.compile(case.model, case.args, target=target, dynamic_shapes=case.dynamic)
        executable.save(folder / f"{number}.pipeline")
        expected = torch.utils._pytree.tree_leaves(case.model(*case.args))
        np.savez(folder / f"{number}.npz", **_named("argument", case.args), **_named("result", expected))
        index.append({"name": name, "tolerance": case.tolerance})
        print(f"built {name}", flush=True)
    (folder / "index.json").write_text(json.dumps(index))


def _named(name: str, tensors: Any) -> dict[str, np.ndarray]:
    """Tensors as arrays under numbered names."""
    import torch

    halves = [tensor.dtype == torch.bfloat16 for tensor in tensors]
    bits = [tensor.view(torch.int16) if half else tensor for tensor, half in zip(tensors, halves, strict=True)]
    return {f"{name}{n}{_BITS * half}": one.numpy() for n, (one, half) in enumerate(zip(bits, halves, strict=True))}


def _arrays(arrays: Any, name: str) -> list[np.ndarray]:
    """The inverse of `_named`."""
    names = sorted(one for one in arrays if one.startswith(name))
    return [arrays[one].view(ml_dtypes.bfloat16) if one.endswith(_BITS) else arrays[one] for one in names]


def run(folder: Path) -> int:
    """Runs everything in a folder; returns how many results were wrong."""
    wrong = 0
    for number, case in enumerate(json.loads((folder / "index.json").read_text())):
        arrays = np.load(folder / f"{number}.npz")
        arguments, expected = _arrays(arrays, "argument"), _arrays(arrays, "result")
        executable = pipeline.load(folder / f"{number}.pipeline")
        results = _leaves(executable(*arguments))
        tolerance = case["tolerance"]
        right = all(
            np.allclose(_wide(one), _wide(other), tolerance, tolerance, equal_nan=True)
            for one, other in zip(results, expected, strict=True)
        )
        wrong += not right
        print(
            f"{'right' if right else 'WRONG'}  {case['name']}{_timing(executable, arguments, case['name'])}", flush=True
        )
    print(f"{wrong} wrong")
    return wrong


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array


def _leaves(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in _leaves(part)]
    return [result]


def _timing(executable: Any, arguments: list[Any], name: str) -> str:
    """The time of a call with its copies; and with tensors on the GPU, where torch is there to make them."""
    if not name.startswith("timed"):
        return ""
    times = [_seconds(lambda: executable(*arguments))]
    try:
        import torch
    except ImportError:
        return f": {times[0] * 1e3:.3f} ms with copies"
    if not torch.cuda.is_available():
        return f": {times[0] * 1e3:.3f} ms with copies"
    tensors = [_tensor(torch, array).cuda() for array in arguments]
    seconds = _on_gpu(torch, lambda: executable(*tensors))
    eager = _on_gpu(torch, lambda: _eager(torch, name)(*tensors))
    copied = _on_gpu(torch, lambda: tensors[0].clone())
    moved = (len(tensors) + 1) / 2
    said = f": {seconds * 1e3:.3f} ms on the GPU, {eager / seconds:.2f} times as fast as eager"
    if "matmul" in name or "attention" in name:
        return said
    return f"{said}, {moved * copied / seconds:.0%} of the bandwidth of a copy"


def _tensor(torch: Any, array: np.ndarray) -> Any:
    if array.dtype != ml_dtypes.bfloat16:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)


def _eager(torch: Any, name: str) -> Any:
    """What PyTorch does for a timed case."""
    if "matmul" in name:
        return torch.matmul
    if "attention" in name:
        return torch.nn.functional.scaled_dot_product_attention
    if "norm" in name:
        return lambda x: torch.nn.functional.layer_norm(x, (x.shape[-1],))
    return (lambda x: torch.softmax(x, -1)) if "softmax" in name else (lambda x, y: x * 2 + y)


def _on_gpu(torch: Any, function: Any) -> float:
    for _ in range(3):
        function()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(20):
        function()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / 20


def _seconds(function: Any) -> float:
    function()
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main() -> int:
    """Builds or runs; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("build", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="cuda:sm_90")
    arguments = parser.parse_args()
    if arguments.what == "build":
        build(arguments.folder, arguments.target)
        return 0
    return int(run(arguments.folder) > 0)


if __name__ == "__main__":
    sys.exit(main())
