"""From whatever the user has to a functional ExportedProgram.

Takes an nn.Module, a ScriptModule, an ExportedProgram or a `.pt2` archive; gives an ExportedProgram in which mutation
is extra results and ops are those that the importer knows. Everything about torch.export's quirks lives here.
"""

from __future__ import annotations

import contextlib
import functools
import re
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as torch_pytree
from torch.export import ExportedProgram
from torch.export._remove_effect_tokens_pass import _remove_effect_tokens
from torch.fx._lazy_graph_module import _use_lazy_graph_module
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from pipeline.errors import CaptureError, OptionError, PipelineError
from pipeline.frontend.composite_ops import remembered
from pipeline.frontend.containers import register_containers
from pipeline.frontend.numbers.symbolic_math import symbolic_math
from pipeline.frontend.purify import purified
from pipeline.frontend.recurrent import kept_whole
from pipeline.frontend.region_call import writes_are_kept
from pipeline.frontend.script import module_of_script
from pipeline.runtime.arrays import extent, overlap

#: Marks the graph of a model that was captured by reading its bytecode.
BY_BYTECODE = "pipeline.by_bytecode"

#: torch keeps the state of a capture in globals: one thread at a time.
capturing = threading.RLock()


def capture(
    model: Any,
    args: tuple[Any, ...] | None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    mode: str = "export",
) -> ExportedProgram:
    """Captures `model` on example arguments as a functional program in torch's core ops.

    Args:
        model: nn.Module, torch.jit.ScriptModule, ExportedProgram, or the path of a `.pt2` archive.
        args, kwargs: example arguments; for an ExportedProgram they may be None.
        dynamic_shapes: as torch.export takes it.
        mode: `export`, or `script` to go through TorchScript, which captures Python control flow on tensors.

    Raises:
        CaptureError: torch cannot capture the model; says why and where in the model's source.
    """
    return functionalize(export(model, args, kwargs, dynamic_shapes, mode))


def export(
    model: Any,
    args: tuple[Any, ...] | None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    mode: str = "export",
) -> ExportedProgram:
    """The first half of `capture`: the program as torch.export gives it."""
    if args is not None and not isinstance(args, tuple):
        raise PipelineError(f"args: expected a tuple of example arguments, got {type(args).__name__}")
    with capturing, torch.no_grad(), _use_lazy_graph_module(True):
        return _export(model, args, dict(kwargs or {}), dynamic_shapes, mode)


def functionalize(exported: ExportedProgram) -> ExportedProgram:
    """The second half of `capture`: mutation as results, torch's core ops."""
    from pipeline.frontend.decompositions import decomposition_table  # loads MLIR, which the first half does without

    with capturing, torch.no_grad(), _use_lazy_graph_module(True), remembered():  # no code for graphs nobody runs
        try:
            with symbolic_math():
                return _remove_effect_tokens(exported.run_decompositions(decomposition_table()))
        except Exception as error:  # torch raises many types here
            raise CaptureError(f"torch could not functionalize the model: {_why(error, exported)}") from error


def _why(error: Exception, exported: ExportedProgram) -> str:
    """What is wrong; torch trips over writes to one of two weights that share memory with an assertion of its own."""
    shared = _shared_weights(exported) if isinstance(error, AssertionError) and "compiled_fn" in str(error) else None
    if shared is None:
        return _explain(error)
    return f"{shared[0]} and {shared[1]} share memory, and it writes to one of them; make that a copy"


def _shared_weights(exported: ExportedProgram) -> tuple[str, str] | None:
    """The names of two weights of a program that share memory."""
    tensors = {**exported.constants, **exported.state_dict}
    extents = [extent(name, tensor) for name, tensor in tensors.items() if isinstance(tensor, torch.Tensor)]
    for number, one in enumerate(extents):
        for other in extents[:number]:
            if overlap(one, other):
                return other[0], one[0]
    return None


def _export(model: Any, args: Any, kwargs: dict[str, Any], dynamic_shapes: Any, mode: str) -> ExportedProgram:
    if isinstance(model, (str, Path)):
        model = _load_archive(Path(model))
    if isinstance(model, ExportedProgram):
        if dynamic_shapes is not None:
            raise OptionError("dynamic_shapes: an ExportedProgram has its own; give them to torch.export.export")
        return purified(model)
    if args is None:
        raise PipelineError("args: example arguments are needed to capture a module")
    register_containers()
    if not isinstance(model, torch.nn.Module):
        kinds = "an nn.Module, ScriptModule, ExportedProgram, .pt2 path or MLIR"
        raise PipelineError(f"model: expected {kinds}, got {type(model).__name__}")
    name = type(model).__name__
    if mode == "script" and not isinstance(model, torch.jit.ScriptModule):
        model = _script(model)
    is_script = isinstance(model, torch.jit.ScriptModule)
    traceable = module_of_script(model) if is_script else model
    args, kwargs = _distinct((args, kwargs))
    try:
        exported = _export_module(traceable, args, kwargs, dynamic_shapes)
    except Exception as error:  # torch.export raises many types
        raise CaptureError(f"torch.export could not capture {name}: {_explain(error)}") from error
    return _without_guards(purified(exported, loops_share=is_script))


def _export_module(module: torch.nn.Module, args: Any, kwargs: dict[str, Any], shapes: Any) -> ExportedProgram:
    """torch.export's program, by running the model; if Python makes a number of a tensor's, by reading its bytecode.

    `int(x.sum())` has to give Python an int as the model runs; Dynamo knows it for a number of the program. What is
    asked about a function of a size (`int(math.log2(s))`) torch knows where the size is the example's.
    """
    export = functools.partial(torch.export.export, module, args, kwargs, dynamic_shapes=shapes)
    try:
        with writes_are_kept(), kept_whole(), symbolic_math():
            return export(strict=False)
    except GuardOnDataDependentSymNode as error:
        first = error
    with contextlib.suppress(Exception), writes_are_kept(), kept_whole():  # the first error says more
        return export(strict=False)
    with contextlib.suppress(Exception), _use_lazy_graph_module(False):
        exported = export(strict=True)
        exported.graph_module.meta[BY_BYTECODE] = True
        return exported
    raise first


def _without_guards(exported: ExportedProgram) -> ExportedProgram:
    """Leaves torch's checks of sizes out of what is decomposed: the runtime has its own, and torch's can fail."""
    exported.module = functools.partial(exported.module, check_guards=False)
    return exported


def _distinct(arguments: Any) -> Any:
    """The arguments with a copy for each tensor that came before: torch.export takes equal objects for one input."""
    seen: set[int] = set()

    def distinct(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) in seen:
            return tensor.clone()
        seen.add(id(tensor))
        return tensor

    return torch_pytree.tree_map_only(torch.Tensor, distinct, arguments)


def _load_archive(path: Path) -> ExportedProgram:
    try:
        return torch.export.load(path)
    except Exception as error:  # torch.export.load raises many types
        raise CaptureError(f"{path}: not a .pt2 archive that torch can load: {_first_line(error)}") from error


def _script(model: torch.nn.Module) -> torch.jit.ScriptModule:
    try:
        return torch.jit.script(model)
    except Exception as error:  # torch.jit raises many types
        raise CaptureError(f"torch.jit could not script {type(model).__name__}: {_explain(error)}") from error


#: Where files lie that are not the model's; `<` begins the names of generated code.
_NOT_THE_MODEL = (str(Path(torch.__file__).parent), str(Path(__file__).parent), "<")

#: What torch refuses in the bodies of branches and loops, in eager, too; by a part of its message.
_REGION_ERRORS = {
    "input mutation during higher order op": "the body of a scan or a map writes in place to what it is given or "
    "captures; carry that or return it",
    "aliasing during higher order op": "a branch or the body of a loop has a tensor under two names: it captures a "
    "tensor and a view of it, or returns what it is given; take the view inside, return a clone",
}

_DATA_DEPENDENT = ("data-dependent", "DataDependent", "dynamic control flow", "GuardOnDataDependent")


def _explain(error: BaseException) -> str:
    """The first line of torch's message, the line of the model's source that it is about, and what to do."""
    message = str(error)
    text, place = _first_line(error), _place(error)
    for part, meaning in _REGION_ERRORS.items():
        if part in message:
            text = meaning
    if place:
        text += f" (at {place})"
    if any(word in message or word in type(error).__name__ for word in _DATA_DEPENDENT):
        text += (
            ". The model branches on the values of a tensor: write the branch with torch.cond or torch.while_loop, "
            'or compile with capture="script"'
        )
    return text


def _place(error: BaseException) -> str | None:
    """`file:line` of the innermost line of the model's source that torch's message, or else the traceback, names."""
    named = re.findall(r'File "([^"]+)", line (\d+)', str(error))
    passed = [(frame.filename, str(frame.lineno)) for frame in traceback.extract_tb(error.__traceback__)]
    for frames in (named, passed):
        own = [frame for frame in frames if not frame[0].startswith(_NOT_THE_MODEL)]
        if own:
            return ":".join(own[-1])
    return None


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
