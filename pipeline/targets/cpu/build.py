"""Kernels → object files: the way through the CPU's lowering, and what the runtime has to know about the code."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline import progress, timing
from pipeline.errors import PipelineError
from pipeline.ir.attributes import CALLS, OUTPUTS, SITES
from pipeline.ir.matchers import BUFFER_VIEWS
from pipeline.mlir import called_function, function, ir, symbol_name, walk
from pipeline.passes.bufferization.results_to_out_params import places_of_results
from pipeline.passmanager.pass_pipeline import PassPipeline
from pipeline.program import Dump
from pipeline.runtime.interface.code import Code, ExternalFunction, Site
from pipeline.runtime.interface.entry_point import DYNAMIC, EntryPoint, Value
from pipeline.runtime.interface.signature import ParameterSource
from pipeline.runtime.native.linker import link
from pipeline.targets.common.module_summary import check_messages, entry_names, kernels_of, result_types, sources_of
from pipeline.targets.common.recipes import recipes_of
from pipeline.targets.common.target import CodeForm
from pipeline.targets.cpu.codegen import units
from pipeline.targets.cpu.copied_updates import report_copies
from pipeline.targets.cpu.isa import Isa
from pipeline.targets.cpu.lower import BUFFERIZE, CALLING_CONVENTION, PLACE, SHARE, TO_LLVM, vectorize, workspace_bytes
from pipeline.targets.cpu.machine_code import Machine, Unit, assembly, compile_units


def build(module: ir.Module, dump: Dump, isa: Isa, form: CodeForm, disable: frozenset[str]) -> Code:
    """See `Target.compile`; passes in `disable` are left out."""

    def run(pipeline: str) -> None:
        PassPipeline.parse(pipeline).run(module, disable=disable)

    checks, recipes = check_messages(module), recipes_of(module)
    run(PLACE)
    kernels = kernels_of(module)
    run(SHARE)
    progress.kernels(0, len(kernels))
    run(CALLING_CONVENTION.format(profile=str(form.profile).lower()))
    sources = {name: sources_of(function(module, name)) for name in entry_names(module)}
    prepared = result_types(function(module, "prepare")) if "prepare" in sources else ()
    run("results-to-out-params")
    entries = {name: _entry(function(module, name)) for name in sources}
    with timing.stage("bufferize"):
        run(BUFFERIZE)
    report_copies(module)
    externals = _externals(module)
    run("profile-kernels")
    sites = _sites(module)
    with timing.stage("vectorize"):
        run(vectorize(isa, parallel=form.parallel))
    workspace, thread_bytes = workspace_bytes(module)
    unread = _unread(module, sources["main"])
    with timing.stage("to LLVM dialect"):
        run(TO_LLVM)
    dump("llvm", module)
    machine = Machine(isa.cpu, isa.features, isa.machine)
    made = units(module, list(entries.items()), whole=form.assembly or form.linked, sites=len(sites))
    if form.assembly:
        dump("asm", assembly(made[0], machine))
    with timing.stage("machine code"):
        objects = compile_units(made, machine, _Count(len(kernels), len(made)))
    if not form.linked:
        with timing.stage("link"):
            objects = (link(objects),)
    return Code(
        objects=objects,
        main=entries["main"],
        main_sources=sources["main"],
        prepare=entries.get("prepare"),
        prepare_sources=sources.get("prepare", ()),
        prepared=prepared,
        workspace=workspace,
        thread_bytes=thread_bytes,
        checks=checks,
        machine=isa.machine,
        cpu=isa.cpu,
        required=isa.required,
        kernels=kernels,
        sites=sites,
        externals=externals,
        unread=unread,
        recipes=recipes,
    )


class _Count:
    """Tells of how many kernels there is machine code, about: units have as many each."""

    def __init__(self, kernels: int, units: int):
        self._kernels, self._units, self._finished = kernels, units, 0

    def __call__(self, units: Sequence[Unit]) -> None:
        """Is told of units that are finished."""
        self._finished += len(units)
        progress.kernels(self._kernels * self._finished // self._units, self._kernels)


def _sites(module: ir.Module) -> tuple[Site, ...]:
    attributes = module.operation.attributes
    listed = ir.ArrayAttr(attributes[SITES]) if SITES in attributes else ()
    return tuple(Site(*(ir.StringAttr(part).value for part in ir.ArrayAttr(site))) for site in listed)


def _unread(module: ir.Module, sources: Sequence[ParameterSource]) -> tuple[int, ...]:
    """The numbers of the prepared tensors that @main doesn't read: with Winograd's algorithm, the direct weights."""
    arguments = function(module, "main").regions[0].blocks[0].arguments
    taken = zip(arguments, sources, strict=False)
    return tuple(source.index for value, source in taken if source.kind == "prepared" and not _is_read(value))


def _is_read(value: ir.Value) -> bool:
    """Whether something reads a buffer, or a view of it, or may do so."""
    for use in value.uses:
        user = use.owner.operation
        if user.name == "func.call":
            blocks = called_function(user).regions[0].blocks
            if not len(blocks) or _is_read(blocks[0].arguments[use.operand_number]):
                return True
        elif user.name not in BUFFER_VIEWS or any(map(_is_read, user.results)):
            return True
    return False


def _externals(module: ir.Module) -> tuple[ExternalFunction, ...]:
    """The functions from outside that kernels call, once kernels take buffers."""
    found = []
    for declared in walk(module, "func.func"):
        if CALLS not in declared.attributes or len(declared.regions[0].blocks):
            continue
        function, library, *numbers = ir.ArrayAttr(declared.attributes[CALLS])
        kind = ir.FunctionType(ir.TypeAttr(declared.attributes["function_type"]).value)
        own = list(kind.inputs)[: len(kind.inputs) - len(numbers)]
        found.append(
            ExternalFunction(
                symbol=f"_mlir_ciface_{ir.StringAttr(declared.attributes['sym_name']).value}",
                function=ir.StringAttr(function).value,
                library=ir.StringAttr(library).value,
                parameters=tuple(map(_parameter, own)),
                outputs=ir.IntegerAttr(declared.attributes[OUTPUTS]).value,
                numbers=tuple(ir.IntegerAttr(number).value for number in numbers),
            )
        )
    return tuple(found)


def _parameter(kind: ir.Type) -> tuple[str, int | None]:
    if isinstance(kind, ir.MemRefType):
        return str(kind.element_type), kind.rank
    return str(kind), None


def _entry(entry: ir.Operation) -> EntryPoint:
    """The function's slots."""
    kind = ir.FunctionType(ir.TypeAttr(entry.attributes["function_type"]).value)
    return EntryPoint(
        symbol=f"pipeline_{symbol_name(entry)}",
        parameters=tuple(map(_value, kind.inputs)),
        results=tuple(map(_value, kind.results)),
        where=places_of_results(entry),
    )


def _value(kind: ir.Type) -> Value:
    if isinstance(kind, (ir.RankedTensorType, ir.MemRefType)):
        return Value(tuple(DYNAMIC if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim) for dim in range(kind.rank)))
    if str(kind) not in ("i64", "index"):
        raise PipelineError(f"@main takes or returns a {kind}; expected tensors and 64-bit integers")
    return Value(None)
