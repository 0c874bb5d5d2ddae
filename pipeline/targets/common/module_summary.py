"""What targets read of a module before they lower it: its entries, their arguments, its kernels and checks."""

from __future__ import annotations

from collections import Counter

from pipeline.analysis.flop_count import operations
from pipeline.ir.attributes import (
    ARGUMENT,
    CHECKS,
    KERNEL,
    OPS,
    ORIGINS,
    PREPARED,
    PROFILE,
    SEED,
    STATUS,
    WEIGHT,
    WORDS,
    WORKSPACE,
)
from pipeline.ir.locations import origins_of
from pipeline.ir.tensor_types import tensor_type
from pipeline.mlir import callee, function, ir, symbol_name, walk
from pipeline.runtime.interface.aligned_memory import byte_size
from pipeline.runtime.interface.code import CallSite, Kernel
from pipeline.runtime.interface.signature import ParameterSource, TensorType


def entry_names(module: ir.Module) -> list[str]:
    """`main`, and `prepare` where the module has it."""
    names = [symbol_name(op) for op in walk(module, "func.func")]
    return [name for name in ("main", "prepare") if name in names]


def check_messages(module: ir.Module) -> tuple[str, ...]:
    """The messages of the checks that guard-traps made."""
    attributes = module.operation.attributes
    if CHECKS not in attributes:
        return ()
    return tuple(ir.StringAttr(message).value for message in ir.ArrayAttr(attributes[CHECKS]))


def kernels_of(module: ir.Module) -> tuple[Kernel, ...]:
    """The kernels in the order in which main, then prepare, first call them."""
    calls = Counter(callee(op) for op in walk(module, "func.call"))
    places: dict[str, list[CallSite]] = {}
    entries: dict[str, str] = {}
    for name in entry_names(module):
        for call in walk(function(module, name), "func.call"):
            entries.setdefault(callee(call), name)
            known = origins_of(call.attributes[ORIGINS]) if ORIGINS in call.attributes else []
            places.setdefault(callee(call), []).append(CallSite(tuple(known)))
    kernels = []
    for name in places:
        kernel = function(module, name)
        ops, words = (
            tuple(ir.StringAttr(attribute).value for attribute in ir.ArrayAttr(kernel.attributes[key]))
            for key in (OPS, WORDS)
        )
        kind = ir.StringAttr(kernel.attributes[KERNEL]).value
        work = operations(kernel), _traffic(kernel)
        kernels.append(Kernel(name, kind, ops, calls[name], words, tuple(places[name]), *work, entries[name]))
    return tuple(kernels)


def _traffic(kernel: ir.Operation) -> int | None:
    """The bytes of what the kernel is given, each once; None where a size is known at the call only."""
    kinds = [ir.RankedTensorType(kind) for kind in _inputs(kernel) if isinstance(kind, ir.RankedTensorType)]
    if not all(kind.has_static_shape for kind in kinds):
        return None
    return sum(byte_size(tensor_type(kind)) for kind in kinds)


def sources_of(entry: ir.Operation) -> tuple[ParameterSource, ...]:
    """Where each argument comes from, by the marks on it; an unmarked one is the caller's, by position."""
    count = len(entry.regions[0].blocks[0].arguments)
    marks = list(entry.attributes["arg_attrs"]) if "arg_attrs" in entry.attributes else [{}] * count
    sources = []
    for number, mark in enumerate(marks):
        if WEIGHT in mark:
            sources.append(ParameterSource("weight", name=ir.StringAttr(mark[WEIGHT]).value))
        elif PREPARED in mark:
            sources.append(ParameterSource("prepared", ir.IntegerAttr(mark[PREPARED]).value))
        elif STATUS in mark:
            sources.append(ParameterSource("status"))
        elif SEED in mark:
            sources.append(ParameterSource("seed"))
        elif WORKSPACE in mark:
            sources.append(ParameterSource("workspace"))
        elif PROFILE in mark:
            sources.append(ParameterSource("profile"))
        elif ARGUMENT in mark:
            sources.append(ParameterSource("argument", ir.IntegerAttr(mark[ARGUMENT]).value))
        else:
            sources.append(ParameterSource("argument", number))
    return tuple(sources)


def result_types(entry: ir.Operation) -> tuple[TensorType, ...]:
    """The types of the results of an entry."""
    kind = ir.FunctionType(ir.TypeAttr(entry.attributes["function_type"]).value)
    return tuple(tensor_type(result) for result in kind.results)


def _inputs(entry: ir.Operation) -> list[ir.Type]:
    return list(ir.FunctionType(ir.TypeAttr(entry.attributes["function_type"]).value).inputs)
