"""The CPU target: kernels → object files."""

from __future__ import annotations

import platform

from pipeline import timing
from pipeline.errors import PipelineError
from pipeline.mlir import function, ir, walk
from pipeline.passes.become import CALLS, OUTPUTS
from pipeline.passes.pipeline_text import PassPipeline
from pipeline.passes.plan_memory import WORKSPACE
from pipeline.passes.profile_kernels import PROFILE, SITES
from pipeline.runtime.code import Code, External, Site
from pipeline.runtime.entry_point import DYNAMIC, EntryPoint, Value
from pipeline.runtime.native import host_features
from pipeline.runtime.signature import Signature, TensorType
from pipeline.targets.cpu.codegen import units
from pipeline.targets.cpu.isa import isa
from pipeline.targets.cpu.lower import (
    LEAST_MASKED,
    add_memory,
    bufferize,
    place_results,
    results_to_arguments,
    to_llvm,
    vectorize,
    workspace_bytes,
)
from pipeline.targets.cpu.machine_code import Machine, assembly, compile_units
from pipeline.targets.entries import check_messages, entry_names, kernels_of, result_types, sources_of
from pipeline.targets.target import PLAIN, Dump, Form, Target
from pipeline.targets.updates import mark_updates, report_copies


class CpuTarget(Target):
    """x86-64 CPUs, by name, or `native` for this machine's."""

    def __init__(self, cpu: str = "native", disable: frozenset[str] = frozenset(), form: Form = PLAIN):
        self.isa = isa(cpu)
        self.disable = disable
        self.form = form
        self.runs_here = set(self.isa.required) <= host_features()
        rounds, supported = _word(form.rounds), _word(self.isa.bf16_dots)
        self.contractions = f"contract-in-bf16{{round={rounds} supported={supported}}}"

    @property
    def layouts(self) -> str:
        """No zeros between elements are multiplied, channels are last where that pays; then weights for Winograd's."""
        results = self.form.winograd
        passes = "canonicalize, cse, split-transposed-convs, canonicalize, cse, propagate-layouts"
        return passes + (f", winograd{{results={results}}}" if results else "")

    def kernel_passes(self) -> str:
        """Kernels pad what they read, products read weights in panels of @prepare's, small loops become kernels."""
        pads = "absorb-pads, " if self.isa.vector_bytes >= LEAST_MASKED else ""
        columns, pairs = 2 * self.isa.vector_bytes // 4, _word(self.isa.bf16_dots)
        return f"{pads}pack-weights{{columns={columns} pairs={pairs}}}, outline-loops"

    def fingerprint(self) -> list[str]:
        """See `Target.fingerprint`."""
        return [platform.machine(), repr(self.isa), repr(self.form)]

    def compile(self, module: ir.Module, signature: Signature, dump: Dump) -> Code:
        """See `Target.compile`."""
        checks = check_messages(module)
        mark_updates(module, signature)
        place_results(module, self.disable)
        kernels = kernels_of(module)
        add_memory(module, WORKSPACE, 8)
        if self.form.profile:
            add_memory(module, PROFILE, 64)
        sources, entries = {}, {}
        prepared: tuple[TensorType, ...] = ()
        for name in entry_names(module):
            sources[name] = sources_of(function(module, name))
            if name == "prepare":
                prepared = result_types(function(module, name))
            entries[name] = _entry(module, name)
        with timing.stage("bufferize"):
            bufferize(module, self.disable)
        report_copies(module)
        externals = _externals(module)
        PassPipeline.parse("profile-kernels").run(module, disable=self.disable)
        sites = _sites(module)
        with timing.stage("vectorize"):
            vectorize(module, self.isa, self.disable, parallel=self.form.parallel)
        workspace, thread_bytes = workspace_bytes(module)
        with timing.stage("to LLVM dialect"):
            to_llvm(module)
        dump("llvm", module)
        machine = Machine(self.isa.cpu, self.isa.features, self.form.linked)
        made = units(module, list(entries.items()), whole=self.form.assembly or self.form.linked, sites=len(sites))
        if self.form.assembly:
            dump("asm", assembly(made[0], machine))
        with timing.stage("machine code"):
            objects = compile_units(made, machine)
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
            machine=platform.machine(),
            cpu=self.isa.cpu,
            required=self.isa.required,
            kernels=kernels,
            sites=sites,
            externals=externals,
        )


def _word(flag: bool) -> str:
    return str(flag).lower()


def _sites(module: ir.Module) -> tuple[Site, ...]:
    attributes = module.operation.attributes
    listed = ir.ArrayAttr(attributes[SITES]) if SITES in attributes else ()
    return tuple(Site(*(ir.StringAttr(part).value for part in ir.ArrayAttr(site))) for site in listed)


def _externals(module: ir.Module) -> tuple[External, ...]:
    """The functions from outside that kernels call, once kernels take buffers."""
    found = []
    for declared in walk(module, "func.func"):
        if CALLS not in declared.attributes or len(declared.regions[0].blocks):
            continue
        function, library, *numbers = ir.ArrayAttr(declared.attributes[CALLS])
        kind = ir.FunctionType(ir.TypeAttr(declared.attributes["function_type"]).value)
        own = list(kind.inputs)[: len(kind.inputs) - len(numbers)]
        found.append(
            External(
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


def _entry(module: ir.Module, name: str) -> EntryPoint:
    """Gives the results of known size places among the arguments; describes the function's slots."""
    where = results_to_arguments(module, name)
    kind = ir.FunctionType(ir.TypeAttr(function(module, name).attributes["function_type"]).value)
    return EntryPoint(
        symbol=f"pipeline_{name}",
        parameters=tuple(map(_value, kind.inputs)),
        results=tuple(map(_value, kind.results)),
        where=tuple(where),
    )


def _value(kind: ir.Type) -> Value:
    if isinstance(kind, (ir.RankedTensorType, ir.MemRefType)):
        return Value(tuple(DYNAMIC if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim) for dim in range(kind.rank)))
    if str(kind) not in ("i64", "index"):
        raise PipelineError(f"@main takes or returns a {kind}; expected tensors and 64-bit integers")
    return Value(None)
