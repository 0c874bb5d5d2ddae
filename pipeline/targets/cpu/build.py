"""Kernels → object files: the way through the CPU's lowering, and what the runtime has to know about the code."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline import progress, timing
from pipeline.errors import PipelineError
from pipeline.ir.attributes import CALLS, OUTPUTS, SITES
from pipeline.mlir import context, function, ir, parse, symbol_name, text, walk
from pipeline.passes.bufferization.results_to_out_params import places_of_results
from pipeline.passmanager.pass_pipeline import PassPipeline
from pipeline.program import Dump
from pipeline.remarks import collect, dropped
from pipeline.runtime.interface.code import Code, ExternalFunction, Site
from pipeline.runtime.interface.entry_point import DYNAMIC, EntryPoint, Value
from pipeline.runtime.native.linker import link
from pipeline.targets.common.module_summary import check_messages, entry_names, kernels_of, result_types, sources_of
from pipeline.targets.common.recipes import recipes_of
from pipeline.targets.common.target import CodeForm, KernelStore
from pipeline.targets.cpu.buffer_reads import unread
from pipeline.targets.cpu.codegen import units
from pipeline.targets.cpu.copied_updates import report_copies
from pipeline.targets.cpu.isa import Isa
from pipeline.targets.cpu.lower import (
    BUFFERIZE,
    OUT_PARAMETERS,
    PLACE,
    PROFILE_KERNELS,
    SHARE,
    calling_convention,
    pipelines,
    to_llvm,
    vectorize,
    workspace_bytes,
)
from pipeline.targets.cpu.machine_code import Machine, Unit, assembly, compile_units
from pipeline.targets.cpu.shared_kernels.sharing import KernelSharing
from pipeline.targets.cpu.tensor_entry import tensor_entry_code


def build(
    module: ir.Module, dump: Dump, isa: Isa, form: CodeForm, disable: frozenset[str], store: KernelStore | None = None
) -> Code:
    """See `Target.compile`; passes in `disable` are left out."""

    def run(pipeline: str) -> None:
        PassPipeline.parse(pipeline).run(module, disable=disable)

    checks, recipes = check_messages(module), recipes_of(module)
    run(PLACE)
    kernels = kernels_of(module)
    run(SHARE)
    progress.kernels(0, len(kernels))
    run(calling_convention(profile=form.profile))
    sources = {name: sources_of(function(module, name)) for name in entry_names(module)}
    prepared = result_types(function(module, "prepare")) if "prepare" in sources else ()
    run(OUT_PARAMETERS)
    entries = {name: _entry(function(module, name)) for name in sources}
    with timing.stage("bufferize"):
        run(BUFFERIZE)
    report_copies(module)
    externals = _externals(module)
    run(PROFILE_KERNELS)
    sites = _sites(module)
    whole = form.assembly or form.linked
    sharing = KernelSharing(None if whole else store, repr((isa, form.parallel, sorted(disable))))
    sharing.take(module)
    vectors, last = (PassPipeline.parse(text) for text in (vectorize(isa, parallel=form.parallel), to_llvm(isa)))
    with collect() as remarks:
        with timing.stage("vectorize"):
            vectors.run(module, disable=disable)
        workspace, thread_bytes = workspace_bytes(module)
        without_readers = unread(module, sources["main"])
        sharing.see_buffers(module)
        with timing.stage("to LLVM dialect"):
            last.run(module, disable=disable)
        said = sharing.complete(remarks, [step.pass_.name for step in (*vectors.steps, *last.steps)])
    dump("llvm", module)
    machine = Machine(isa.cpu, isa.features, isa.machine)
    made = units(module, list(entries.items()), whole=whole, sites=len(sites), sharing=sharing)
    if form.assembly:
        dump("asm", assembly(made.own[0], machine))
    with timing.stage("machine code"):
        objects = compile_units(made.all, machine, _Count(len(kernels), len(made.all)))
    new = dict(zip(made.kernels, objects[len(made.own) :], strict=True))
    sharing.keep(module, new, made.with_team(), said)
    objects = (*objects, *(code.machine_code for code in sharing.known.values()))
    if not form.linked:
        objects = (*objects, tensor_entry_code(machine))  # the C programs of linked code have no tensors
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
        unread=without_readers,
        recipes=recipes,
    )


def llvm_dialect(kernels: str, isa: Isa, form: CodeForm, disable: frozenset[str]) -> str:
    """The text in LLVM dialect of a module of kernels on tensors, as `build` dumps it."""
    with dropped():
        module = parse(kernels, context(), "kernels")
        for pipeline in pipelines(isa, parallel=form.parallel, profile=form.profile):
            PassPipeline.parse(pipeline).run(module, disable=disable)
        return text(module.operation, elements=None)


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
