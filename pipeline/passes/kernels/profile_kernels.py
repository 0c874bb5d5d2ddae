"""profile-kernels: stamps a clock around every kernel call and copy, for profiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.attributes import PROFILE, SITES
from pipeline.ir.locations import module_path
from pipeline.ir.rewriting import before
from pipeline.mlir import arith, callee, func, ir, memref, symbol_name, terminator, walk
from pipeline.passmanager.base import Pass
from pipeline.remarks import source_line

#: What the code calls with the record's address and the site: to begin, which gives the time in nanoseconds; to record,
#: with that time.
BEGIN, RECORD_FUNCTION = "pipeline_begin", "pipeline_record"


@dataclass(frozen=True)
class ProfileKernels(Pass):
    """Stamp a clock around every kernel call and every copy of a function that takes a record of a profile.

    The record is an argument marked `pipeline.profile`. Site 0 is the function itself; the module's attribute
    `pipeline.sites` says what each site is. Functions without such an argument stay as they are.
    """

    name: ClassVar[str] = "profile-kernels"

    def run(self, op: ir.Operation) -> None:
        """Instruments the functions of a module."""
        for function in walk(op, "func.func"):
            record = _record(function)
            if record is not None:
                sites = _instrument(function, record)
                _declare(op)
                op.attributes[SITES] = ir.ArrayAttr.get(sites, op.context)
                self.passed(function, f"{len(sites) - 1} kernel calls and copies are timed")


def _record(function: ir.Operation) -> ir.Value | None:
    if "arg_attrs" not in function.attributes:
        return None
    for number, marks in enumerate(function.attributes["arg_attrs"]):
        if PROFILE in marks:
            return function.regions[0].blocks[0].arguments[number]
    return None


def _instrument(function: ir.Operation, record: ir.Value) -> list[ir.Attribute]:
    """Times every call and copy of the function, and it as a whole; returns what each site is."""
    block = function.regions[0].blocks[0]
    timed = walk(function, "func.call", "memref.copy")
    sites = [_site(symbol_name(function), function.location)]
    with function.location, ir.InsertionPoint.at_block_begin(block):
        address = memref.ExtractAlignedPointerAsIndexOp(record).result
        place = arith.IndexCastOp(_i64(), address).result
        start = _call_begin(place, 0)
    for op in timed:
        with before(op):
            began = _call_begin(place, len(sites))
        _after(op, place, len(sites), began)
        sites.append(_site(_name(op), op.location))
    with before(terminator(block)):
        _call_record(place, 0, start)
    return sites


def _after(op: ir.Operation, place: ir.Value, site: int, began: ir.Value) -> None:
    following = list(op.block.operations)
    here = next(number for number, sibling in enumerate(following) if sibling.operation == op)
    with before(following[here + 1].operation):
        _call_record(place, site, began)


def _call_begin(place: ir.Value, site: int) -> ir.Value:
    number = arith.ConstantOp(_i64(), site).result
    return func.CallOp([_i64()], ir.FlatSymbolRefAttr.get(BEGIN), [place, number]).result


def _call_record(place: ir.Value, site: int, began: ir.Value) -> None:
    number = arith.ConstantOp(_i64(), site).result
    func.CallOp([], ir.FlatSymbolRefAttr.get(RECORD_FUNCTION), [place, number, began])


def _declare(module: ir.Operation) -> None:
    with ir.Location.unknown(), ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        func.FuncOp(BEGIN, ir.FunctionType.get([_i64()] * 2, [_i64()]), visibility="private")
        func.FuncOp(RECORD_FUNCTION, ir.FunctionType.get([_i64()] * 3, []), visibility="private")


def _name(op: ir.Operation) -> str:
    return "copy" if op.name == "memref.copy" else callee(op)


def _site(name: str, location: ir.Location) -> ir.Attribute:
    """A name, the source line and the module of the model, or what of these is known."""
    parts = (name, source_line(location) or "", module_path(location) or "")
    return ir.ArrayAttr.get([ir.StringAttr.get(part, location.context) for part in parts], location.context)


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)
