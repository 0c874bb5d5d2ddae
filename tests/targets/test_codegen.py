"""What becomes of the functions of a module on the way to machine code."""

from __future__ import annotations

from pipeline.mlir import context, parse
from pipeline.runtime.interface.entry_point import EntryPoint, Value
from pipeline.targets.cpu.codegen import units
from pipeline.targets.cpu.isa import isa
from pipeline.targets.cpu.machine_code import Machine, compile_units

MODULE = """
llvm.func @small_kernel(%x: i64) -> i64 {
  %square = llvm.mul %x, %x : i64
  llvm.return %square : i64
}
llvm.func @nobody_calls() {
  llvm.return
}
llvm.func @main(%x: i64) -> i64 {
  %y = llvm.call @small_kernel(%x) : (i64) -> i64
  llvm.return %y : i64
}
"""


def test_a_kernel_keeps_its_symbol_however_small_and_unused_functions_go() -> None:
    host = isa("native")
    number = Value(None)
    entry = EntryPoint("pipeline_main", (number,), (number,), ())
    made = units(parse(MODULE, context()), [("main", entry)])
    (code,) = compile_units(made.all, Machine(host.cpu, host.features))
    assert b"small_kernel" in code
    assert b"pipeline_main" in code and b"pipeline_guarded" in code
    assert b"nobody_calls" not in code
