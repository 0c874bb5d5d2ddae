"""A model that is captured and imported once, and compiled with any number of options."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline import gc_pause, interrupts
from pipeline.compiler import captured_source, compile_source, target_for, with_kept_weights
from pipeline.errors import OptionError
from pipeline.frontend.node_places import NodePlace, tell, told
from pipeline.options import Options
from pipeline.program import Dump, Program, ProgramSource
from pipeline.remarks import Remark, collect, repeat
from pipeline.runtime.executable import Executable
from pipeline.runtime.interface.signature import Signature, TensorType
from pipeline.stage_texts import Observer

if TYPE_CHECKING:
    from pipeline.frontend.importer.graph_reader import CapturedGraph
    from pipeline.mlir import ir


#: The options that capture looks at.
_OF_CAPTURE = {"capture", "random"}


class Captured:
    """What `pipeline.capture` gives: a model whose Python has run, to be compiled as often as one likes.

    Executables of it read the weights of the model as others do, and see when these change.
    """

    def __init__(self, source: ProgramSource):
        self._source = _ImportedOnce(source)

    def compile(
        self, *, observer: Observer | None = None, assembly: bool = False, linked: bool = False, **options: Any
    ) -> Executable:
        """An executable; see `pipeline.compile`, which takes the same options but `capture` and `random`.

        Raises:
            UnsupportedOpError: ops of the model cannot be lowered; lists all of them with their source lines.
            OptionError: an option or its value is unknown.
            CompileError: a pass or the code generator failed.
        """
        for name in sorted(_OF_CAPTURE & options.keys()):
            raise OptionError(f"{name}: the model is captured already; pipeline.capture takes this option")
        chosen = Options.create(options)
        if chosen.keep:
            chosen = with_kept_weights(chosen, self._source.tensors())
        target = target_for(chosen, assembly, linked)
        with gc_pause.left(), interrupts.kept():
            return compile_source(self._source, chosen, target, observer)


def capture(
    model: Any,
    args: tuple[Any, ...] | None,
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    options: Mapping[str, Any],
) -> Captured:
    """See `pipeline.capture`."""
    unknown = options.keys() - _OF_CAPTURE
    if unknown:
        raise OptionError(f"{min(unknown)}: an option of the compilation: give it to compile() of what capture() gives")
    chosen = Options.create(options)
    with gc_pause.left(), interrupts.kept():
        return Captured(captured_source(model, args, kwargs, dynamic_shapes, chosen))


@dataclass(frozen=True)
class _Import:
    """What an import gave, its module as bytecode, and what was said on the way.

    The context is the one that it was imported into: torch-mlir's passes have loaded dialects that no other one has.
    """

    bytecode: bytes
    context: ir.Context
    signature: Signature
    weights: Mapping[str, Any]
    weights_library: str
    stages: tuple[tuple[str, str], ...]
    remarks: tuple[Remark, ...]
    places: tuple[NodePlace, ...]

    def program(self) -> Program:
        """The Program, with a module of its own."""
        from pipeline.mlir import ir

        module = ir.Module.parse(self.bytecode, self.context)
        return Program(module, self.signature, self.weights, self.weights_library)


class _ImportedOnce(ProgramSource):
    """Another source, whose Program is imported when it is first asked for."""

    def __init__(self, source: ProgramSource):
        self.name = source.name
        self._source = source
        self._import: _Import | None = None

    def program(self, dump: Dump) -> Program:
        """A Program with a module of its own."""
        if self._import is None:
            program, self._import = self._imported(dump)
            return program
        for stage, text in self._import.stages:
            dump(stage, text)
        for remark in self._import.remarks:
            repeat(remark)
        for place in self._import.places:
            tell(place)
        return self._import.program()

    def _imported(self, dump: Dump) -> tuple[Program, _Import]:
        from pipeline.mlir import shared_context, text

        stages: list[tuple[str, str]] = []

        def keep(stage: str, code: ir.Module | str) -> None:
            stages.append((stage, code if isinstance(code, str) else text(code.operation, elements=None)))
            dump(*stages[-1])

        with collect() as remarks, told() as places, shared_context(allowed=False):
            program = self._source.program(keep)
        bytecode = io.BytesIO()
        program.module.operation.write_bytecode(bytecode)
        kept = _Import(
            bytecode.getvalue(),
            program.module.context,
            program.signature,
            program.weights,
            program.weights_library,
            tuple(stages),
            tuple(remarks),
            tuple(places),
        )
        return program, kept

    def fingerprint(self) -> str | None:
        """The other one's."""
        return self._source.fingerprint()

    def captured(self, type_of: Callable[[Any, str], TensorType]) -> CapturedGraph | None:
        """The other one's."""
        return self._source.captured(type_of)

    def example(self) -> tuple[tuple[Any, ...], Mapping[str, Any]] | None:
        """The other one's."""
        return self._source.example()

    def tensors(self) -> Mapping[str, Any]:
        """The other one's."""
        return self._source.tensors()

    def holders(self) -> tuple[dict[str, Any], ...]:
        """The other one's."""
        return self._source.holders()
