"""From whatever the user has to a functional ExportedProgram.

Takes an nn.Module, a callable, a ScriptModule, an ExportedProgram or an archive of these; gives an ExportedProgram in
which mutation is extra results and ops are those that the importer knows. Everything about torch.export's quirks lives
here.
"""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as torch_pytree
from torch._dynamo.exc import UserError
from torch.export import Dim, ExportedProgram
from torch.export._remove_effect_tokens_pass import _remove_effect_tokens
from torch.export.dynamic_shapes import _DimHint
from torch.fx._lazy_graph_module import _use_lazy_graph_module
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from pipeline import locks
from pipeline.errors import CaptureError, OptionError, PipelineError
from pipeline.frontend.capture import torch_functions, torch_output
from pipeline.frontend.capture.below_autograd import comes_from_transform, differentiates, export_below_autograd
from pipeline.frontend.capture.callables import module_of_function, name_of, without_compile
from pipeline.frontend.capture.capture_errors import cause, explain
from pipeline.frontend.capture.composite_ops import remembered
from pipeline.frontend.capture.keyword_overloads import written_as_attributes
from pipeline.frontend.capture.lean_traces import lean_traces
from pipeline.frontend.capture.model_files import is_onnx, load_file, onnx_module
from pipeline.frontend.capture.pytree_nodes import register_containers
from pipeline.frontend.fallback.fakes import register_fakes
from pipeline.frontend.functionalize.centered_weights import drop_zero_points
from pipeline.frontend.functionalize.effect_tokens import linalg_checks_taken_apart
from pipeline.frontend.functionalize.functionalize_regions import purified
from pipeline.frontend.functionalize.higher_order_call import writes_are_kept
from pipeline.frontend.functionalize.idle_dropouts import alias_idle_dropouts
from pipeline.frontend.functionalize.loop_results import results_are_new
from pipeline.frontend.functionalize.op_by_op import decomposed
from pipeline.frontend.functionalize.shared_elements import refuse_writes_to_shared_elements
from pipeline.frontend.functionalize.strides_of_owners import stride_from_owners
from pipeline.frontend.functionalize.written_windows import stride_written_windows
from pipeline.frontend.numbers import assumed_sizes
from pipeline.frontend.numbers.asserted_flags import assertions_on_flags
from pipeline.frontend.numbers.guards import makes_numbers_of_sizes
from pipeline.frontend.numbers.symbolic_math import symbolic_math
from pipeline.frontend.recurrent import kept_whole, packed_as_selection, recurrences_as_loops
from pipeline.frontend.torchscript.interpreter import module_of_script
from pipeline.runtime.call.array_libraries import extent, overlap

#: Marks the graph of a model that was captured by reading its bytecode.
BY_BYTECODE = "pipeline.by_bytecode"

#: torch keeps the state of a capture in globals: one thread at a time.
capturing = locks.recursive_lock()

# torch 2.13 warns, while it captures, of what it does itself: it copies its own LeafSpec, and takes the list in which
# a recurrent module keeps its weights for tensors that the model assigned. Goes with a torch that does not.
warnings.filterwarnings("ignore", ".*LeafSpec", FutureWarning, "copyreg")
warnings.filterwarnings("ignore", r"The tensor attributes? (self\.[\w.]*_flat_weights\[\d+\](, )?)+ w", UserWarning)

#: Where the module of an exported graph says which functions of a model are none of the recurrences that are known.
UNKNOWN_RECURRENCES = "pipeline.unknown_recurrences"

_SCRIPTS = (torch.jit.ScriptModule, torch.jit.ScriptFunction)


def capture(
    model: Any,
    args: tuple[Any, ...] | None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    mode: str = "export",
) -> ExportedProgram:
    """Captures `model` on example arguments as a functional program in torch's core ops.

    Args:
        model: nn.Module, a function or other callable, torch.jit.ScriptModule, ExportedProgram, or the path of a
            `.pt2` or TorchScript archive; what torch.compile made is taken for what it was made from.
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
    args, keywords = checked_arguments(args, kwargs)
    with _in_torch():
        return _export(loaded(model), args, keywords, dynamic_shapes, mode)


@contextlib.contextmanager
def _in_torch() -> Iterator[None]:
    """What both halves ask of torch."""
    with capturing, torch.no_grad(), _use_lazy_graph_module(True), lean_traces(), torch_output.kept_back():
        yield


def functionalize(exported: ExportedProgram, random: str = "philox") -> ExportedProgram:
    """The second half of `capture`: mutation as results, torch's core ops; `random` as of `decomposition_table`."""
    from pipeline.frontend.decompositions import decomposition_table  # loads MLIR, which the first half does without

    with _in_torch(), remembered():
        try:
            pools = torch_functions.pools_of_all_sizes()
            with pools, linalg_checks_taken_apart(), written_as_attributes():
                table, ranges = decomposition_table(random), exported.range_constraints
                symbolic = symbolic_math() if ranges else contextlib.nullcontext()
                with symbolic, assumed_sizes.recorded(ranges):
                    plain = decomposed(exported, table)
                if plain is not None:
                    return plain
                with symbolic_math(), assumed_sizes.recorded(ranges):
                    return _remove_effect_tokens(exported.run_decompositions(table))
        except Exception as error:  # torch raises many types here
            raise CaptureError(f"torch could not functionalize the model: {_why(error, exported)}") from cause(error)


def _why(error: Exception, exported: ExportedProgram) -> str:
    """What is wrong; torch trips over writes to one of two weights that share memory with an assertion of its own."""
    shared = _shared_weights(exported) if isinstance(error, AssertionError) and "compiled_fn" in str(error) else None
    if shared is None:
        return explain(error)
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
    if isinstance(model, ExportedProgram):
        if dynamic_shapes is not None:
            raise OptionError("dynamic_shapes: an ExportedProgram has its own; give them to torch.export.export")
        model = _rewritten(model)
        refuse_writes_to_shared_elements(model.graph_module)
        return purified(model)
    if args is None:
        raise PipelineError("args: example arguments are needed to capture a module")
    register_containers()
    register_fakes()
    name = name_of(model)
    if mode == "script" and not isinstance(model, _SCRIPTS):
        model = _script(model)
    is_script = isinstance(model, _SCRIPTS)
    args, kwargs = _distinct((args, kwargs))
    try:
        traceable = module_of_script(model, args, kwargs) if is_script else _module(model, len(args))
        exported = _rewritten(_export_module(traceable, args, kwargs, dynamic_shapes))
        refuse_writes_to_shared_elements(exported.graph_module)
        return _without_guards(purified(exported, loops_share=is_script))
    except PipelineError:
        raise
    except Exception as error:  # torch.export raises many types
        raise CaptureError(f"torch.export could not capture {name}: {explain(error)}") from cause(error)


def _rewritten(exported: ExportedProgram) -> ExportedProgram:
    """A program in which ops say themselves what functionalization would lose."""
    return drop_zero_points(stride_from_owners(stride_written_windows(alias_idle_dropouts(exported))))


def _module(model: Any, count: int) -> torch.nn.Module:
    return model if isinstance(model, torch.nn.Module) else module_of_function(model, count)


def loaded(model: Any) -> Any:
    """A model as torch has it: what lies in a file, what torch.compile was given.

    Raises:
        PipelineError: it is no model.
    """
    if isinstance(model, (str, Path)):
        return load_file(Path(model))
    if is_onnx(model):
        return onnx_module(model)
    model = without_compile(model)
    if isinstance(model, ExportedProgram) or callable(model):
        return model
    kinds = (
        "an nn.Module, a function, ScriptModule, ExportedProgram, the path of a .pt2, TorchScript or ONNX file, or MLIR"
    )
    hint = "; it holds weights: build the module and load_state_dict them" if isinstance(model, dict) else ""
    raise PipelineError(f"model: expected {kinds}, got {type(model).__name__}{hint}")


def checked_arguments(args: Any, kwargs: Any) -> tuple[tuple[Any, ...] | None, dict[str, Any]]:
    """Example arguments as a tuple, which a tensor alone becomes, and a dict.

    Raises:
        PipelineError: they are something else.
    """
    if isinstance(args, torch.Tensor):
        args = (args,)
    if args is not None and not isinstance(args, tuple):
        hint = "pass tuple(args), or (args,) for one argument" if isinstance(args, list) else "pass (args,)"
        raise PipelineError(f"args: expected a tuple of example arguments, got {type(args).__name__}; {hint}")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise PipelineError(f"kwargs: expected a dict of example arguments by name, got {type(kwargs).__name__}")
    names = [name for name in kwargs or {} if not isinstance(name, str)]
    if names:
        raise PipelineError(f"kwargs: expected names, got {names[0]!r}")
    for leaf in torch_pytree.tree_leaves((args, kwargs)):
        if isinstance(leaf, torch.Tensor) and leaf.layout != torch.strided:
            layout = str(leaf.layout).removeprefix("torch.")
            raise PipelineError(f"args: {layout} tensors are not supported; pass x.to_dense()")
    return args, dict(kwargs or {})


def _export_module(module: torch.nn.Module, args: Any, kwargs: dict[str, Any], shapes: Any) -> ExportedProgram:
    """torch.export's program, by running the model; if Python makes a number of a tensor's, by reading its bytecode.

    `int(x.sum())` and `float(x.shape[0])` have to give Python a number as the model runs; Dynamo knows it for one of
    the program. What is asked about a function of a size (`int(math.log2(s))`) torch knows where the size is the
    example's.
    """

    def export(**options: Any) -> ExportedProgram:
        with recurrences_as_loops(module) as unknown:
            exported = torch.export.export(module, args, kwargs, dynamic_shapes=shapes, **options)
        exported.graph_module.meta[UNKNOWN_RECURRENCES] = unknown
        return exported

    def below_autograd() -> ExportedProgram:
        with _as_traced():
            return export_below_autograd(module, args, kwargs, shapes)

    try:
        with _as_traced(), symbolic_math():
            exported = export(strict=False)
    except GuardOnDataDependentSymNode as error:
        first: Exception = error
        with contextlib.suppress(Exception), _as_traced():
            return export(strict=False)  # the first error says more
    except UserError as error:
        if "specialized" not in str(error):
            raise
        first = error
    except Exception as error:  # torch.export raises many types
        if not comes_from_transform(error):
            raise
        return below_autograd()
    else:
        if differentiates(exported):
            return below_autograd()
        is_short = _symbolic_sizes(exported) < _most_symbolic_sizes(shapes)
        return _with_more_symbols(exported, export) if is_short and makes_numbers_of_sizes(exported.graph) else exported
    exported = _by_bytecode(export)
    if exported is None:
        raise first
    return exported


@contextlib.contextmanager
def _as_traced() -> Iterator[None]:
    """While torch traces a model by running it, see each."""
    with (
        writes_are_kept(),
        results_are_new(),
        kept_whole(),
        packed_as_selection(),
        assumed_sizes.recorded(),
        torch_functions.as_traced(),
    ):
        yield


def _with_more_symbols(exported: ExportedProgram, export: Callable[..., ExportedProgram]) -> ExportedProgram:
    """The program, or the one by the model's bytecode if that keeps sizes symbolic that are numbers in it."""
    by_bytecode = _by_bytecode(export)
    if by_bytecode is None or _symbolic_sizes(by_bytecode) <= _symbolic_sizes(exported):
        return exported
    return by_bytecode


def _symbolic_sizes(exported: ExportedProgram) -> int:
    values = [node.meta.get("val") for node in exported.graph.nodes if node.op == "placeholder"]
    sizes = [size for value in values if isinstance(value, torch.Tensor) for size in value.shape]
    return sum(isinstance(size, torch.SymInt) and not size.node.expr.is_number for size in sizes)


def _most_symbolic_sizes(shapes: Any) -> float:
    """How many sizes of tensors can be symbolic at most; infinity where that is not to be told."""
    asked = torch_pytree.tree_leaves(shapes)
    if not all(dim is None or isinstance(dim, (int, Dim, _DimHint)) for dim in asked):
        return math.inf
    return sum(isinstance(dim, (Dim, _DimHint)) for dim in asked)


def _by_bytecode(export: Callable[..., ExportedProgram]) -> ExportedProgram | None:
    """The program by the model's bytecode; None if that fails."""
    try:
        with _use_lazy_graph_module(False), assumed_sizes.recorded(), assertions_on_flags() as asserted:
            exported = export(strict=True)
    except Exception:  # torch.export raises many types
        return None
    exported.graph_module.meta[BY_BYTECODE] = True
    return exported if _asserts(exported, asserted) else None


def _asserts(exported: ExportedProgram, conditions: Sequence[str]) -> bool:
    """Whether the program has an assertion for each of the conditions."""
    nodes = exported.graph.find_nodes(op="call_function", target=torch.ops.aten._assert_scalar.default)
    messages = [str(node.args[1]) for node in nodes]
    return all(any(condition in message for message in messages) for condition in conditions)


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


def _script(model: torch.nn.Module) -> torch.jit.ScriptModule:
    try:
        return torch.jit.script(model)
    except Exception as error:  # torch.jit raises many types
        raise CaptureError(f"torch.jit could not script {name_of(model)}: {explain(error)}") from cause(error)
