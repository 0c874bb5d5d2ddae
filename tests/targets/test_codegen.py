"""What becomes of the functions of a module on the way to machine code."""

from __future__ import annotations

from pipeline.mlir import context, parse
from pipeline.runtime.entry_point import EntryPoint
from pipeline.targets.cpu.codegen import emit_object
from pipeline.targets.cpu.isa import isa

MODULE = """
llvm.func @small_kernel(%x: !llvm.ptr) {
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.store %one, %x : i64, !llvm.ptr
  llvm.return
}
llvm.func @nobody_calls() {
  llvm.return
}
llvm.func @main() {
  %null = llvm.mlir.zero : !llvm.ptr
  llvm.call @small_kernel(%null) : (!llvm.ptr) -> ()
  llvm.return
}
"""


def test_a_kernel_keeps_its_symbol_however_small_and_unused_functions_go() -> None:
    host = isa("native")
    entry = EntryPoint("pipeline_main", (), (), ())
    code = emit_object(parse(MODULE, context()), [("main", entry)], host.cpu, host.features)
    assert b"small_kernel" in code
    assert b"pipeline_main" in code
    assert b"nobody_calls" not in code
