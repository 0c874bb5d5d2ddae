"""lower-chunks-to-libgomp: calls of functions that run a chunk of a loop become calls by several threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.ir.attributes import CHUNK, NUMBERED, TEAM_SIZE
from pipeline.mlir import callee, ir, symbol_name, walk
from pipeline.passmanager.base import Pass
from pipeline.runtime.interface.team import MAX_THREADS, NUM_THREADS, PARALLEL, THREAD_NUM

#: Which iterations are a thread's: from where, to where, and its number.
_PART, _OF_THREAD = "pipeline_part", "!llvm.struct<(i64, i64, i64)>"

_DECLARATIONS = f"""
llvm.mlir.global external @{TEAM_SIZE}() {{addr_space = 0 : i32}} : i32
llvm.func @{PARALLEL}(!llvm.ptr, !llvm.ptr, i32, i32)
llvm.func @{THREAD_NUM}() -> i32
llvm.func @{NUM_THREADS}() -> i32
llvm.func @{_PART}(%first: i64, %last: i64, %step: i64) -> {_OF_THREAD} {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %number = llvm.call @{THREAD_NUM}() : () -> i32
  %threads = llvm.call @{NUM_THREADS}() : () -> i32
  %id = llvm.sext %number : i32 to i64
  %count = llvm.sext %threads : i32 to i64
  %length = llvm.sub %last, %first : i64
  %round = llvm.sub %step, %one : i64
  %rounded = llvm.add %length, %round : i64
  %some = llvm.sdiv %rounded, %step : i64
  %trips = llvm.intr.smax(%some, %zero) : (i64, i64) -> i64
  %done = llvm.mul %trips, %id : i64
  %skip = llvm.sdiv %done, %count : i64
  %after = llvm.add %id, %one : i64
  %through = llvm.mul %trips, %after : i64
  %stop = llvm.sdiv %through, %count : i64
  %ahead = llvm.mul %skip, %step : i64
  %behind = llvm.mul %stop, %step : i64
  %from = llvm.add %first, %ahead : i64
  %end = llvm.add %first, %behind : i64
  %to = llvm.intr.smin(%end, %last) : (i64, i64) -> i64
  %none = llvm.mlir.poison : {_OF_THREAD}
  %begun = llvm.insertvalue %from, %none[0] : {_OF_THREAD}
  %ended = llvm.insertvalue %to, %begun[1] : {_OF_THREAD}
  %part = llvm.insertvalue %id, %ended[2] : {_OF_THREAD}
  llvm.return %part : {_OF_THREAD}
}}
"""

_DECLARE_MOST = f"llvm.func @{MAX_THREADS}() -> i32"

#: At most so many threads as there is scratch for.
_LIMIT = """
  %most = llvm.call @{most}() : () -> i32
  %is_open = llvm.icmp "eq" %wanted, %none : i32
  %chosen = llvm.select %is_open, %most, %wanted : i1, i32
  %limit = llvm.trunc %v{limit} : i64 to i32
  %threads = llvm.intr.umin(%chosen, %limit) : (i32, i32) -> i32
"""

_SPAWN = """
llvm.func @{name}({types})
llvm.func @{name}_spawn({parameters}) {{
  %one = llvm.mlir.constant(1 : i32) : i32
  %none = llvm.mlir.constant(0 : i32) : i32
  %data = llvm.alloca %one x {struct} : (i32) -> !llvm.ptr
  {stores}
  %share = llvm.mlir.addressof @{name}_share : !llvm.ptr
  %place = llvm.mlir.addressof @{threads} : !llvm.ptr
  %wanted = llvm.load %place : !llvm.ptr -> i32
  {limit}
  llvm.call @{parallel}(%share, %data, {count}, %none) : (!llvm.ptr, !llvm.ptr, i32, i32) -> ()
  llvm.return
}}
llvm.func @{name}_share(%data: !llvm.ptr) {{
  {loads}
  %step = llvm.mlir.constant({step} : i64) : i64
  %part = llvm.call @{part}(%v0, %v1, %step) : (i64, i64, i64) -> {of_thread}
  %from = llvm.extractvalue %part[0] : {of_thread}
  %to = llvm.extractvalue %part[1] : {of_thread}
  %id = llvm.extractvalue %part[2] : {of_thread}
  llvm.call @{name}({passed}) : ({types}) -> ()
  llvm.return
}}
"""


@dataclass(frozen=True)
class LowerChunksToLibgomp(Pass):
    """Have threads share the iterations of functions marked `pipeline.chunk`, in LLVM dialect.

    Each thread of a team of libgomp's runs iterations that lie side by side; `pipeline_parallel` and its like are
    libgomp's functions where whoever loads the code has given them to it, else one thread's. The number of threads is
    the global `pipeline_threads`, or OpenMP's where that is 0, and at most as many as there is scratch for (see
    plan-kernel-scratch); inside of other threads of OpenMP's it is one.
    """

    name: ClassVar[str] = "lower-chunks-to-libgomp"

    def run(self, op: ir.Operation) -> None:
        """Turns every call of such a function into a spawn."""
        chunks = {}
        for function in walk(op, "llvm.func"):
            if CHUNK in function.attributes:
                chunks[symbol_name(function)] = function
        if not chunks:
            return
        calls = [call for call in walk(op, "llvm.call") if _callee(call) in chunks]
        text = _DECLARATIONS
        if any(NUMBERED in function.attributes for function in chunks.values()):
            text += _DECLARE_MOST
        for name, function in chunks.items():
            first = next(call for call in calls if _callee(call) == name)
            types = [str(operand.type) for operand in first.operands]
            text += _functions(
                name, types, ir.IntegerAttr(function.attributes[CHUNK]).value, NUMBERED in function.attributes
            )
            self.passed(function, "its iterations are shared by threads")
        made = ir.Module.parse(text, op.context)
        block = op.regions[0].blocks[0]
        for made_op in [op_view.operation for op_view in made.body.operations]:
            if symbol_name(made_op) not in chunks:
                made_op.detach_from_parent()
                block.append(made_op)
        for call in calls:
            call.attributes["callee"] = ir.FlatSymbolRefAttr.get(f"{_callee(call)}_spawn", op.context)


def _callee(call: ir.Operation) -> str:
    return callee(call) if "callee" in call.attributes else ""


def _functions(name: str, types: Sequence[str], step: int, is_numbered: bool) -> str:
    struct = f"!llvm.struct<({', '.join(types)})>"
    stores, loads = [], []
    for number, kind in enumerate(types):
        place = f"%p{number} = llvm.getelementptr %data[0, {number}] : (!llvm.ptr) -> !llvm.ptr, {struct}"
        stores += [place, f"llvm.store %v{number}, %p{number} : {kind}, !llvm.ptr"]
        loads += [place, f"%v{number} = llvm.load %p{number} : !llvm.ptr -> {kind}"]
    passed = ["%from", "%to", *(f"%v{number}" for number in range(2, len(types)))]
    if is_numbered:
        passed[-1] = "%id"
    return _SPAWN.format(
        name=name,
        threads=TEAM_SIZE,
        struct=struct,
        parameters=", ".join(f"%v{number}: {kind}" for number, kind in enumerate(types)),
        stores="\n  ".join(stores),
        loads="\n  ".join(loads),
        step=step,
        part=_PART,
        of_thread=_OF_THREAD,
        passed=", ".join(passed),
        parallel=PARALLEL,
        limit=_LIMIT.format(limit=len(types) - 2, most=MAX_THREADS) if is_numbered else "",
        count="%threads" if is_numbered else "%wanted",
        types=", ".join(types),
    )
