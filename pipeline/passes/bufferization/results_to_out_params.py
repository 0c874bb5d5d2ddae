"""results-to-out-params: the caller says where results of known size go."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from pipeline.ir.attributes import IN_PLACE, PLACES_OF_RESULTS
from pipeline.mlir import bufferization, func, ir, memref, symbol_name, terminator
from pipeline.passes.bufferization.destinations import begin_in, place_of, put, shape_of, start_of
from pipeline.passes.bufferization.updated_arguments import updates_of
from pipeline.passmanager.patterns import PatternPass, pattern
from pipeline.runtime.interface.entry_point import Where

_ENTRIES = ("main", "prepare")


@dataclass(frozen=True)
class ResultsToOutParams(PatternPass):
    """Have the caller of @main and @prepare say where results of known size go.

    New values of arguments that are `pipeline.in_place` are written to these; the other tensors among the arguments
    are never written to from here on.
    """

    name: ClassVar[str] = "results-to-out-params"
    mandatory: ClassVar[bool] = True

    @pattern("func.func", outermost=True)
    def add_parameters(self, entry: ir.Operation) -> bool:
        """@main() -> tensor<4xf32>   ->   @main(%out: memref<4xf32>) {pipeline.places_of_results = ["parameter"]}"""
        if symbol_name(entry) not in _ENTRIES:
            return False
        where = _results_to_arguments(entry)
        entry.attributes[PLACES_OF_RESULTS] = ir.ArrayAttr.get([ir.StringAttr.get(place) for place in where])
        return True


def places_of_results(entry: ir.Operation) -> tuple[Where, ...]:
    """Where each result of an entry goes, once the pass has run."""
    places: dict[str, Where] = {"parameter": "parameter", "result": "result", "argument": "argument"}
    return tuple(places[ir.StringAttr(place).value] for place in ir.ArrayAttr(entry.attributes[PLACES_OF_RESULTS]))


def _results_to_arguments(entry: ir.Operation) -> list[Where]:
    """Rewrites one entry; for each result where it goes."""
    block = entry.regions[0].blocks[0]
    end = terminator(block)
    own = {update.number: _as_memory(update.argument, block) for update in updates_of(entry, IN_PLACE)}
    values, inputs = list(end.operands), [argument.type for argument in block.arguments]
    kept: list[ir.Value] = []
    where: list[Where] = []
    with entry.location, ir.InsertionPoint(end):
        for number, value in enumerate(values):
            if number in own:
                where.append("argument")
            elif not isinstance(value.type, ir.RankedTensorType) or not value.type.has_static_shape:
                kept.append(value)
                where.append("result")
            else:
                inputs.append(ir.MemRefType.get(value.type.shape, value.type.element_type))
                destination = block.add_argument(inputs[-1], entry.location)
                _compute_into(value, destination, block)
                bufferization.MaterializeInDestinationOp(None, value, destination, restrict=True, writable=True)
                where.append("parameter")
        for number, memory in own.items():  # last, since the results above may still read what was there
            bufferization.MaterializeInDestinationOp(None, values[number], memory, restrict=True, writable=True)
        func.ReturnOp(kept)
    end.erase()
    entry.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, [value.type for value in kept]))
    _mark_read_only(entry, block)
    return where


def _as_memory(argument: ir.BlockArgument, block: ir.Block) -> ir.Value:
    """Makes an argument memory that is read and written: a tensor over it takes its place."""
    kind = ir.RankedTensorType(argument.type)
    with block.owner.location, ir.InsertionPoint.at_block_begin(block):
        argument.set_type(ir.MemRefType.get(kind.shape, kind.element_type))
        tensor = bufferization.ToTensorOp(kind, argument, restrict=True, writable=True)
    argument.replace_all_uses_except(tensor.result, tensor.operation)
    return argument


def _compute_into(value: ir.Value, destination: ir.Value, block: ir.Block) -> None:
    """Has the kernel that computes `value` write it to `destination` right away, so that the copy there goes.

    Where kernels write parts of an argument of the caller's, that is copied to `destination` first.
    """
    place, shape = place_of(value), list(ir.MemRefType(destination.type).shape)
    wanted = None if place is None else shape_of(place)
    if place is not None and wanted is not None and (wanted == shape or (wanted and shape)):
        put(place, _reshaped(destination, wanted, block))
    start = start_of(value, block)
    if start is not None and list(ir.RankedTensorType(start[0].operands[start[1]].type).shape) == shape:
        begin_in(start, destination)


def _reshaped(memory: ir.Value, shape: list[int], block: ir.Block) -> ir.Value:
    """An argument of `block` that is memory, seen in another shape of as many elements; neither has no dims."""
    kind = ir.MemRefType(memory.type)
    if list(kind.shape) == shape:
        return memory
    with block.owner.location, ir.InsertionPoint.at_block_begin(block):
        flat = ir.MemRefType.get([prod(shape)], kind.element_type)
        if kind.rank > 1:
            memory = memref.CollapseShapeOp(flat, memory, [list(range(kind.rank))]).result
        if len(shape) == 1:
            return memory
        seen = ir.MemRefType.get(shape, kind.element_type)
        return memref.ExpandShapeOp(seen, memory, [list(range(len(shape)))], [], shape).result


def _mark_read_only(entry: ir.Operation, block: ir.Block) -> None:
    """The caller's other tensors and the weights are never written in place."""
    read_only = {"bufferization.writable": ir.BoolAttr.get(False, entry.context)}
    marks = [ir.DictAttr(mark) for mark in entry.attributes["arg_attrs"]] if "arg_attrs" in entry.attributes else []
    marks += [ir.DictAttr.get({}, entry.context)] * (len(block.arguments) - len(marks))
    for number, argument in enumerate(block.arguments):
        if isinstance(argument.type, ir.RankedTensorType):
            marks[number] = ir.DictAttr.get(read_only, entry.context)
    entry.attributes["arg_attrs"] = ir.ArrayAttr.get(marks, entry.context)
