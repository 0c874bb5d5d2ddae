"""The CPU target: kernels → object files."""

from __future__ import annotations

import platform
from collections import Counter

from pipeline import timing
from pipeline.analysis.origins import ORIGINS, pairs_of
from pipeline.analysis.work import operations
from pipeline.errors import PipelineError
from pipeline.mlir import function, ir, walk
from pipeline.passes.become import CALLS, OUTPUTS
from pipeline.passes.pipeline_text import PassPipeline
from pipeline.passes.plan_memory import WORKSPACE
from pipeline.passes.profile_kernels import PROFILE, SITES
from pipeline.program import tensor_type
from pipeline.runtime.code import Code, External, Kernel, Place, Site
from pipeline.runtime.entry_point import DYNAMIC, EntryPoint, Value
from pipeline.runtime.memory import byte_size
from pipeline.runtime.signature import Signature, Source, TensorType
from pipeline.targets.cpu.codegen import units
from pipeline.targets.cpu.isa import isa
from pipeline.targets.cpu.lower import (
    add_memory,
    bufferize,
    place_results,
    results_to_arguments,
    to_llvm,
    vectorize,
    workspace_bytes,
)
from pipeline.targets.cpu.machine_code import Machine, assembly, compile_units
from pipeline.targets.target import PLAIN, Dump, Form, Target


class CpuTarget(Target):
    """x86-64 CPUs, by name, or `native` for this machine's."""

    def __init__(self, cpu: str = "native", disable: frozenset[str] = frozenset(), form: Form = PLAIN):
        self.isa = isa(cpu)
        self.disable = disable
        self.form = form

    def fingerprint(self) -> list[str]:
        """See `Target.fingerprint`."""
        return [platform.machine(), repr(self.isa), repr(self.form)]

    def compile(self, module: ir.Module, signature: Signature, dump: Dump) -> Code:
        """See `Target.compile`."""
        kernels = _kernels(module)
        checks = _checks(module)
        place_results(module, self.disable)
        add_memory(module, WORKSPACE, 8)
        if self.form.profile:
            add_memory(module, PROFILE, 64)
        sources, entries = {}, {}
        prepared: tuple[TensorType, ...] = ()
        for name in _entries(module):
            sources[name] = _sources(function(module, name))
            if name == "prepare":
                prepared = _result_types(function(module, name))
            entries[name] = _entry(module, name)
        with timing.stage("bufferize"):
            bufferize(module, self.disable)
        workspace = workspace_bytes(module)
        externals = _externals(module)
        PassPipeline.parse("profile-kernels").run(module, disable=self.disable)
        sites = _sites(module)
        with timing.stage("vectorize"):
            vectorize(module, self.isa, self.disable, parallel=self.form.parallel)
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
            checks=checks,
            machine=platform.machine(),
            cpu=self.isa.cpu,
            required=self.isa.required,
            kernels=kernels,
            sites=sites,
            externals=externals,
        )


def _entries(module: ir.Module) -> list[str]:
    names = [ir.StringAttr(op.attributes["sym_name"]).value for op in walk(module, "func.func")]
    return [name for name in ("main", "prepare") if name in names]


def _checks(module: ir.Module) -> tuple[str, ...]:
    attributes = module.operation.attributes
    if "pipeline.checks" not in attributes:
        return ()
    return tuple(ir.StringAttr(message).value for message in ir.ArrayAttr(attributes["pipeline.checks"]))


def _kernels(module: ir.Module) -> tuple[Kernel, ...]:
    """The kernels in the order in which main, then prepare, first call them."""
    calls = Counter(ir.FlatSymbolRefAttr(op.attributes["callee"]).value for op in walk(module, "func.call"))
    places: dict[str, list[Place]] = {}
    for name in _entries(module):
        for call in walk(function(module, name), "func.call"):
            known = pairs_of(call.attributes[ORIGINS]) if ORIGINS in call.attributes else []
            places.setdefault(ir.FlatSymbolRefAttr(call.attributes["callee"]).value, []).append(Place(tuple(known)))
    kernels = []
    for name in places:
        kernel = function(module, name)
        ops, words = (
            tuple(ir.StringAttr(one).value for one in ir.ArrayAttr(kernel.attributes[key]))
            for key in ("pipeline.ops", "pipeline.words")
        )
        kind = ir.StringAttr(kernel.attributes["pipeline.kernel"]).value
        work = operations(kernel), _traffic(kernel)
        kernels.append(Kernel(name, kind, ops, calls[name], words, tuple(places[name]), *work))
    return tuple(kernels)


def _traffic(kernel: ir.Operation) -> int | None:
    """The bytes of what the kernel is given, each once; None where a size is known at the call only."""
    kinds = [ir.RankedTensorType(one) for one in _inputs(kernel) if isinstance(one, ir.RankedTensorType)]
    if not all(kind.has_static_shape for kind in kinds):
        return None
    return sum(byte_size(tensor_type(kind)) for kind in kinds)


def _inputs(entry: ir.Operation) -> list[ir.Type]:
    return list(ir.FunctionType(ir.TypeAttr(entry.attributes["function_type"]).value).inputs)


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


def _sources(entry: ir.Operation) -> tuple[Source, ...]:
    """Where each argument comes from, by the marks on it; an unmarked one is the caller's, by position."""
    count = len(entry.regions[0].blocks[0].arguments)
    marks = list(entry.attributes["arg_attrs"]) if "arg_attrs" in entry.attributes else [{}] * count
    sources = []
    for number, mark in enumerate(marks):
        if "pipeline.weight" in mark:
            sources.append(Source("weight", name=ir.StringAttr(mark["pipeline.weight"]).value))
        elif "pipeline.prepared" in mark:
            sources.append(Source("prepared", ir.IntegerAttr(mark["pipeline.prepared"]).value))
        elif "pipeline.status" in mark:
            sources.append(Source("status"))
        elif WORKSPACE in mark:
            sources.append(Source("workspace"))
        elif PROFILE in mark:
            sources.append(Source("profile"))
        elif "pipeline.argument" in mark:
            sources.append(Source("argument", ir.IntegerAttr(mark["pipeline.argument"]).value))
        else:
            sources.append(Source("argument", number))
    return tuple(sources)


def _entry(module: ir.Module, name: str) -> EntryPoint:
    """Gives the results of known size places among the arguments; describes the function's slots."""
    moved = results_to_arguments(module, name)
    kind = ir.FunctionType(ir.TypeAttr(function(module, name).attributes["function_type"]).value)
    return EntryPoint(
        symbol=f"pipeline_{name}",
        parameters=tuple(map(_value, kind.inputs)),
        results=tuple(map(_value, kind.results)),
        moved=tuple(moved),
    )


def _value(kind: ir.Type) -> Value:
    if isinstance(kind, (ir.RankedTensorType, ir.MemRefType)):
        return Value(tuple(DYNAMIC if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim) for dim in range(kind.rank)))
    if str(kind) not in ("i64", "index"):
        raise PipelineError(f"@main takes or returns a {kind}; expected tensors and 64-bit integers")
    return Value(None)


def _result_types(entry: ir.Operation) -> tuple[TensorType, ...]:
    kind = ir.FunctionType(ir.TypeAttr(entry.attributes["function_type"]).value)
    return tuple(tensor_type(result) for result in kind.results)
