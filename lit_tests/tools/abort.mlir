// A pass that takes the process down is one error and a reproducer, which takes it down again.

// RUN: not pipeline-opt %s --inline=default-pipeline=sparsifier --mlir-pass-pipeline-crash-reproducer=%t.mlir 2>&1 | FileCheck %s
// RUN: not pipeline-opt --run-reproducer %t.mlir --mlir-pass-pipeline-crash-reproducer=%t.again.mlir 2>&1 | FileCheck %s
// CHECK: {{^}}pipeline-opt: error: MLIR died of SIGABRT at pass 'inline' on builtin.module: Can't add pass 'SparsificationAndBufferization' restricted to 'builtin.module' {{.*}}; see {{.*}}.mlir{{$}}
// CHECK-NOT: {{.}}

// RUN: not pipeline-opt %s --load-plugin=%S/Inputs/marks.py --test-abort --mlir-print-ir-before-all --mlir-pass-pipeline-crash-reproducer=%t.mlir 2>&1 | FileCheck %s --check-prefix=DUMP
// DUMP: IR Dump Before test-abort
// DUMP: pipeline-opt: error: MLIR died of SIGABRT at pass 'test-abort'
func.func @f() { return }
func.func @g() {
  call @f() : () -> ()
  return
}
