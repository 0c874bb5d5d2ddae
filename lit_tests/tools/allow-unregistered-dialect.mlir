// RUN: pipeline-opt %s --allow-unregistered-dialect | FileCheck %s
// RUN: not pipeline-opt %s 2>&1 | FileCheck %s --check-prefix=REFUSED
// CHECK: %[[X:.*]] = "nobody.op"() : () -> i32
// CHECK: return %[[X]]
// REFUSED: pipeline-opt: error: {{.*}}dialect.mlir:7:8: unknown operation 'nobody.op'
func.func @f() -> i32 {
  %x = "nobody.op"() : () -> i32
  return %x : i32
}
