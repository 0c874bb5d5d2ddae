"""An entry of a language model as a source of a Program, which is exported when the disk cache has no outcome for it.

torch.export takes seconds for each entry of a model of some layers, most of which goes into torch's own reasoning about
symbolic sizes. A decoder of transformers is told by less than its graph: its classes, what their files say and the
functions that are there now (others may have been put in their places), its config, the numbers in its modules, the
types of its weights.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import transformers
from torch import nn
from torch.utils import _pytree as pytree

from pipeline import timing
from pipeline.errors import CaptureError
from pipeline.frontend.capture.module_weights import ModuleWeights
from pipeline.frontend.generation.cached_attention import CacheBuffers, attending_to_buffers
from pipeline.frontend.generation.equal_layers import equal_layers
from pipeline.frontend.generation.repeated_layers import CannotRepeatError, RepeatedLayers
from pipeline.frontend.generation.told_modules import PLAIN, Untold, is_local, own_attributes
from pipeline.frontend.sources import ExportedSource, exported_source
from pipeline.options import Options
from pipeline.program import Dump, Program, ProgramSource
from pipeline.remarks import note
from pipeline.runtime.weights.preparation import Preparation

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from pipeline.frontend.importer.graph_reader import CapturedGraph, TypeOf


Asked = TypeVar("Asked")


class EntrySource(ProgramSource):
    """An entry, `PromptEntry` or `StepEntry`, with example arguments; entries of a model share a `preparation`."""

    def __init__(
        self,
        entry: nn.Module,
        args: tuple[Any, ...],
        dynamic_shapes: Any,
        options: Options,
        preparation: Preparation | None = None,
        missed: str = "",
    ):
        """`missed` is what a remark says about it, if anything."""
        self.preparation, self._missed = preparation, missed
        self.name = type(entry.model).__name__
        self._entry, self._args, self._shapes, self._options = entry, args, dynamic_shapes, options
        named = (*entry.named_parameters(remove_duplicate=False), *entry.named_buffers(remove_duplicate=False))
        self._weights = ModuleWeights(entry, dict(named))
        self._layers: RepeatedLayers | None = None
        self._exported: ExportedSource | None = None

    def _source(self) -> ExportedSource:
        """What torch.export makes of it."""
        if self._exported is None:
            if self._layers is None:
                self._layers = _repeated(self._entry)
            options, layers = self._options, self._layers
            model = self._entry.model
            within = (
                attending_to_buffers(model),
                layers.traced(),
                timing.stage("torch.export"),
            )
            with contextlib.ExitStack() as state, torch.no_grad():
                for context in within:
                    state.enter_context(context)
                source = exported_source(self._entry, self._args, None, self._shapes, options.capture, options.random)
            self._check_lengths(source.exported)
            self._exported = replace(source, expand=layers.expanded, written_elsewhere=_kept_by(self._entry))
        return self._exported

    def _check_lengths(self, exported: ExportedProgram) -> None:
        """Raises `CaptureError` if a length that is to be any is the example's in what torch.export has made."""
        values = {node.name: node.meta["val"] for node in exported.graph.nodes if node.op == "placeholder"}
        shapes = pytree.tree_leaves(self._shapes, is_leaf=_is_shape)
        for name, shape in zip(exported.graph_signature.user_inputs, shapes, strict=False):
            for dim in shape or ():
                size = values[name].shape[dim]
                if not isinstance(size, torch.SymInt) or size.node.expr.is_number:
                    raise CaptureError(f"{self.name}: takes {name} of the example's length, {int(size)}, alone")

    def _asked(self, ask: Callable[[ExportedSource], Asked]) -> Asked:
        """What the exported program says, whose equal layers are traced once if that can be."""
        try:
            return ask(self._source())
        except (CannotRepeatError, CaptureError) as error:
            if self._layers is None or not self._layers.layers:
                raise
            self._layers, self._exported = RepeatedLayers((), {}), None
            found = ask(self._source())
            note("capture", "missed", "builtin.module", f"equal layers are not traced once for all: {error}")
            return found

    def program(self, dump: Dump) -> Program:
        """Exports and imports it."""
        if self._missed:
            note("capture", "missed", "builtin.module", self._missed)
        return self._asked(lambda source: source.program(dump))

    def captured(self, type_of: TypeOf) -> CapturedGraph | None:
        """Exports and reads it."""
        return self._asked(lambda source: source.captured(type_of))

    def fingerprint(self) -> str | None:
        """What the entry is told by; None for a model with hooks, methods of an object's own, or tensors apart."""
        try:
            return "\n".join(_lines(self._entry, self._args, self._shapes))
        except Untold:
            return None

    def example(self) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """The example arguments."""
        return self._args, {}

    def tensors(self) -> Mapping[str, Any]:
        """The parameters and buffers, those of the cache among them."""
        return self._weights.tensors()

    def holders(self) -> tuple[dict[str, Any], ...]:
        """Those of the modules."""
        return self._weights.holders()


def _kept_by(entry: nn.Module) -> frozenset[str]:
    """The buffers that an entry has beside its model's: what one of the entries writes, others read."""
    parts = [(name, part) for name, part in entry.named_children() if part is not entry.model]
    return frozenset(f"{name}.{buffer}" for name, part in parts for buffer, _ in part.named_buffers())


def _is_shape(value: Any) -> bool:
    """Whether a value has the dynamic dimensions of one tensor, by number."""
    return isinstance(value, dict) and all(isinstance(dim, int) for dim in value)


def _repeated(entry: nn.Module) -> RepeatedLayers:
    """The equal layers of an entry: those that have equal keys and values in the cache, too."""
    caches = [(name, part) for name, part in entry.named_children() if isinstance(part, CacheBuffers)]
    kept: dict[int, list[Any]] = {}
    names: dict[int, list[str]] = {}
    for cache_name, cache in caches:
        for number, layer in enumerate(cache.layers):
            kept.setdefault(number, []).append(layer)
            names.setdefault(number, []).extend(f"{cache_name}.{name}" for name in cache.names(number))
    return RepeatedLayers(equal_layers(entry, {number: repr(layers) for number, layers in kept.items()}), names)


def _lines(entry: nn.Module, args: tuple[Any, ...], shapes: Any) -> Iterator[str]:
    yield f"transformers {transformers.__version__}, default {torch.get_default_dtype()}"
    leaves, structure = pytree.tree_flatten(args)
    yield f"{[(arg.dtype, tuple(arg.shape)) for arg in leaves]} {structure} {shapes}"
    yield entry.model.config.to_json_string(use_diff=False)
    kinds: dict[type, None] = {}
    for name, module in entry.named_modules(remove_duplicate=False):
        kinds.update(dict.fromkeys(type(module).__mro__))
        yield f"module {name}: {type(module).__module__}.{type(module).__qualname__} {module.extra_repr()}"
        yield from (f"  {own} {value}" for own, value in own_attributes(module).items())
    first: dict[int, str] = {}
    named = (*entry.named_parameters(remove_duplicate=False), *entry.named_buffers(remove_duplicate=False))
    for name, tensor in named:
        kind = (
            f"{type(tensor).__qualname__} {tensor.dtype}{tuple(tensor.shape)}{tensor.stride()} {tensor.requires_grad}"
        )
        yield f"weight {name}: {kind} {first.setdefault(id(tensor), name)}"
    yield from sorted({_file(kind) for kind in kinds})
    for owner in kinds:
        yield from _functions(owner.__module__, vars(owner))
    for module_name in sorted({kind.__module__ for kind in kinds}):
        yield from _functions(module_name, vars(sys.modules[module_name]))


def _functions(module: str, names: Mapping[str, Any]) -> Iterator[str]:
    """The functions that a module, or a class of it, has now; torch's are told by its version."""
    if module.partition(".")[0] in ("torch", "builtins"):
        return
    for name, value in sorted(names.items()):
        function = inspect.unwrap(value) if inspect.isfunction(value) else None
        if function is None:
            continue
        if function.__closure__ and is_local(function):
            raise Untold
        yield f"function {module}.{name} {_code(function.__code__)} {_defaults(function)}"


def _defaults(function: FunctionType) -> list[str]:
    """What a function takes where nothing is given; functions and objects by what they are."""
    given = function.__defaults__ or ()
    codes = [_code(value.__code__) if inspect.isfunction(value) else None for value in given]
    plain = [repr(value) if isinstance(value, PLAIN) else type(value).__qualname__ for value in given]
    return [code or text for code, text in zip(codes, plain, strict=True)]


def _code(code: CodeType) -> str:
    """The digest of what a function does, wherever it stands."""
    constants = [_code(item) if inspect.iscode(item) else _constant(item) for item in code.co_consts]
    return hashlib.sha256(repr((code.co_code, code.co_names, constants)).encode()).hexdigest()


def _constant(value: Any) -> str:
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)


def _file(kind: type) -> str:
    """What a class is defined in: torch by its version, which is known; else the file's digest."""
    package = kind.__module__.partition(".")[0]
    if package in ("torch", "builtins"):
        return package
    path = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if path is None:
        raise Untold
    return f"file {kind.__module__} {hashlib.sha256(Path(path).read_bytes()).hexdigest()}"
