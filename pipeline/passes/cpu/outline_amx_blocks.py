"""outline-amx-blocks: what computes in AMX's tile registers becomes functions, one for each shape of block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.attributes import AMX_BLOCK
from pipeline.ir.rewriting import before
from pipeline.mlir import (
    captured_values,
    clone,
    defining_op,
    func,
    function_around,
    ir,
    symbol_name,
    walk,
)
from pipeline.passes.cpu.parallelize_kernels import CHUNK_OF
from pipeline.passmanager.base import Pass

_CONSTANT = "arith.constant"


@dataclass(frozen=True)
class OutlineAmxBlocks(Pass):
    """Make functions of regions that compute in AMX's tile registers.

    scf.execute_region { ... } {pipeline.amx_block}  ->  call @kernel_chunk_amx_0(...)

    LLVM gives each of the eight tile registers one shape in all of a function: blocks of several shapes, or with what
    is left of a sum, would need more registers than there are, and the code generator would end the process. Blocks of
    one kernel that do the same share a function. Constants are copied, all else is passed. Runs when threads have their
    parts of kernels, and scratch has its place.
    """

    name: ClassVar[str] = "outline-amx-blocks"

    def run(self, op: ir.Operation) -> None:
        """Makes functions of all such regions of a module."""
        for function in walk(op, "func.func"):
            known: dict[str, str] = {}
            for region in walk(function, "scf.execute_region"):
                if AMX_BLOCK in region.attributes:
                    _outline(region, known)


def _outline(region: ir.Operation, known: dict[str, str]) -> None:
    """Puts a call in the place of a region; `known` has the functions that there are, by their texts."""
    function = function_around(region)
    captured = captured_values(region)
    producers = {value: producer for value in captured if (producer := defining_op(value)) is not None}
    constants = {value: producer for value, producer in producers.items() if producer.name == _CONSTANT}
    passed = [value for value in captured if value not in constants]
    kinds = [value.type for value in passed]
    name = f"{symbol_name(function)}{CHUNK_OF}amx_{len(known)}"  # a part of the kernel, as remarks have it
    with region.location, ir.InsertionPoint(function):
        made = func.FuncOp(name, ir.FunctionType.get(kinds, []), visibility="private").operation
        block = ir.Block.create_at_start(made.regions[0], kinds)
    values = dict(zip(passed, block.arguments, strict=True))
    with region.location, ir.InsertionPoint(block):
        for value, constant in constants.items():
            values[value] = constant.clone().results[0]
        for inner in list(region.regions[0].blocks[0].operations)[:-1]:
            clone(inner.operation, values)
        func.ReturnOp([])
    key = str(made).replace(f"@{name}(", "@(", 1)
    if key in known:
        made.erase()
    with before(region):
        func.CallOp([], ir.FlatSymbolRefAttr.get(known.setdefault(key, name)), passed)
    region.erase()
