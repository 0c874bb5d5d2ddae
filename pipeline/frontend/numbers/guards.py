"""What torch.export took for granted about sizes as it ran the model's Python: the runtime checks it at each call."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sympy
import torch
from torch import fx
from torch._guards import detect_fake_mode
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from pipeline.errors import PipelineError
from pipeline.frontend.source_lines import source_line
from pipeline.remarks import note
from pipeline.runtime.signature import Guard
from pipeline.runtime.symbols import evaluate

_TORCH = Path(torch.__file__).parent

#: Parts of torch that decide by sizes what a model computes; the others look for layouts and sizes of 1.
_PARTS_OF_MODELS = (_TORCH / "nn", _TORCH / "functional.py")

_SQUEEZES = tuple(getattr(torch.ops.aten.squeeze, name) for name in ("default", "dim", "dims"))


def guards_of(graph: fx.Graph) -> tuple[Guard, ...]:
    """The conditions on sizes under which the graph is what the model does: `if x.shape[0] % 2`, `int(s * 0.7)`."""
    fake = detect_fake_mode([node.meta.get("val") for node in graph.nodes])
    environment = None if fake is None else fake.shape_env
    if environment is None:
        return ()
    found: dict[str, Guard] = {}
    for guard in environment.guards:
        place = guard.sloc.framework_loc
        if isinstance(place, traceback.FrameSummary) and _decides(place):
            condition = environment.replace(guard.expr)
            text = str(condition)
            if condition.free_symbols and _is_known(text, condition):
                found.setdefault(text, Guard(text, f"{place.filename}:{place.lineno}"))
    for guard in _of_squeezes(graph):
        found.setdefault(guard.condition, guard)
    return tuple(found.values())


def _of_squeezes(graph: fx.Graph) -> Iterator[Guard]:
    """x.squeeze(0) of [s, 3]  →  s != 1, since the dim would go: torch.export takes no symbolic size for 1."""
    for node in graph.nodes:
        if node.op != "call_function" or node.target not in _SQUEEZES:
            continue
        shape = node.args[0].meta["val"].shape
        named = node.args[1] if len(node.args) > 1 else range(len(shape))
        for dim in named if isinstance(named, (list, tuple, range)) else [named]:
            if isinstance(size := shape[dim], torch.SymInt) and not free_unbacked_symbols(size):
                file, line = source_line(node) or ("squeeze", 0)
                yield Guard(str(sympy.Ne(size.node.expr, 1, evaluate=False)), f"{file}:{line}")


def _decides(place: traceback.FrameSummary) -> bool:
    """Whether code at this place asks for the sake of what the model computes, not of how torch does."""
    path = Path(place.filename)
    if _TORCH not in path.parents:
        return True
    is_size = place.name == "infer_size" and path.parent.name == "_prims_common"
    return is_size or any(part == path or part in path.parents for part in _PARTS_OF_MODELS)


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
