"""What torch.export took for granted about sizes as it ran the model's Python: the runtime checks it at each call."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch._guards import detect_fake_mode
from torch.utils._sympy.functions import Mod, PythonMod

from pipeline.errors import PipelineError
from pipeline.frontend.numbers.assumed_sizes import Assumption, assumed
from pipeline.remarks import note
from pipeline.runtime.signature import Guard
from pipeline.runtime.symbols import evaluate

_TORCH = Path(torch.__file__).parent

#: Parts of torch that decide by sizes what a model computes; the others look for layouts and sizes of 1.
_PARTS_OF_MODELS = (_TORCH / "nn", _TORCH / "functional.py")

#: Functions of other parts that do, by the folder of their file: how many dims or tensors there are as a result.
_DECIDING = {
    ("_prims_common", "infer_size"),
    ("_refs", "squeeze"),
    ("_decomp", "split"),
    ("_refs", "chunk"),
    ("_refs", "tensor_split"),
    ("_refs", "unbind"),
}


def guards_of(graph: fx.Graph) -> tuple[Guard, ...]:
    """The conditions on sizes under which the graph is what the model does: `if x.shape[0] % 2`, `int(s * 0.7)`."""
    fake = detect_fake_mode([node.meta.get("val") for node in graph.nodes])
    environment = None if fake is None else fake.shape_env
    if environment is None:
        return ()
    found: dict[str, Guard] = {}
    conditions: list[Assumption] = []
    for guard in environment.guards:
        place = guard.sloc.framework_loc
        if isinstance(place, traceback.FrameSummary):
            conditions.append((environment.replace(guard.expr), place.filename, place.lineno or 0, place.name))
    for condition, file, line, function in [*conditions, *assumed(environment)]:
        if not (_decides(Path(file), function) or condition.has(Mod, PythonMod)):  # no layout goes by remainders
            continue
        text = str(condition)
        if condition.free_symbols and _is_known(text, condition):
            found.setdefault(text, Guard(text, f"{file}:{line}"))
    return tuple(found.values())


def _decides(path: Path, function: str) -> bool:
    """Whether a function asks for the sake of what the model computes, not of how torch does."""
    if _TORCH not in path.parents:
        return True
    if (path.parent.name, function) in _DECIDING:
        return True
    return any(part == path or part in path.parents for part in _PARTS_OF_MODELS)


def _is_known(text: str, condition: Any) -> bool:
    """Whether the runtime can compute the condition."""
    try:
        evaluate(text, {str(symbol): 6 for symbol in condition.free_symbols})
    except ArithmeticError:
        return True
    except PipelineError:
        note(
            "capture", "missed", "builtin.module", f"calls are not checked for {text}, which the model was captured for"
        )
        return False
    return True
