"""Which executables are behind what torch.compile returned."""

from __future__ import annotations

import inspect
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch._dynamo.eval_frame import _debug_get_cache_entry_list, innermost_backend
from torch._dynamo.symbolic_convert import InstructionTranslator

from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pipeline.frontend.dynamo.compiled_graph import CompiledGraph
    from pipeline.runtime.executable import Executable

#: The attribute of torch.compile's own object for one call of it, that has what was compiled for it.
_GRAPHS = "_pipeline_graphs"


def current_owner() -> Any:
    """torch.compile's own object for the call of it whose graph dynamo is compiling now."""
    return innermost_backend(InstructionTranslator.current_tx().output.compiler_fn)


def register(owner: Any, graph: CompiledGraph) -> None:
    """Notes that a graph has been compiled for an owner, which does not keep it alive."""
    owner.__dict__.setdefault(_GRAPHS, []).append(weakref.ref(graph))


def executables(compiled: Any) -> list[Executable]:
    """The executables behind a module or function that torch.compile returned, or an nn.Module after `compile()`.

    There is one for each graph that dynamo captured and for each set of weights that it was called with, in the order
    of compilation; none before the first call, or after torch._dynamo.reset().

    Raises:
        PipelineError: it is nothing of the kind, or has another backend.
    """
    context = _context(compiled)
    if context is None:
        raise PipelineError(f"expected what torch.compile returned, got {type(compiled).__name__}")
    owner = innermost_backend(context.callback)
    graphs = _graphs(owner) or _shared_graphs(compiled, owner)
    return [executable for graph in graphs for executable in graph.executables]


def _context(compiled: Any) -> Any:
    """Dynamo's context of a compiled module or function; None if it is none."""
    if isinstance(compiled, torch.nn.Module):
        if hasattr(compiled, "dynamo_ctx"):
            return compiled.dynamo_ctx
        compiled = compiled._compiled_call_impl
    method = getattr(compiled, "get_compiler_config", None)
    return None if method is None else inspect.getclosurevars(method).nonlocals.get("self")


def _graphs(owner: Any) -> list[CompiledGraph]:
    found = (reference() for reference in getattr(owner, _GRAPHS, ()))
    return [graph for graph in found if graph is not None]


def _shared_graphs(compiled: Any, owner: Any) -> list[CompiledGraph]:
    """Those of an equal call of torch.compile on the same code: dynamo compiles for the first one only."""
    original = compiled._orig_mod.forward if hasattr(compiled, "_orig_mod") else inspect.unwrap(compiled)
    code = getattr(original, "__code__", None)
    entries = [] if code is None else _debug_get_cache_entry_list(code)
    owners = {id(entry.backend): entry.backend for entry in entries if entry.backend == owner}
    return [graph for backend in owners.values() for graph in _graphs(backend)]
