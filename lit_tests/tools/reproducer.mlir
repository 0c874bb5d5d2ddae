// A reproducer replays passes of MLIR and of plugins, and fails in the same way.

// RUN: not pipeline-opt %s --load-plugin=%S/Inputs/marks.py --cse --test-fail --mlir-pass-pipeline-crash-reproducer=%t.crash.mlir 2>&1 | FileCheck %s --check-prefix=FAIL
// RUN: FileCheck %s --check-prefix=FILE --input-file %t.crash.mlir
// RUN: not pipeline-opt --run-reproducer %t.crash.mlir 2>&1 | FileCheck %s --check-prefix=FAIL

// RUN: pipeline-opt %s --load-plugin=%S/Inputs/marks.py --test-mark="label='a b'" --mlir-generate-reproducer=%t.mlir -o %t.out
// RUN: pipeline-opt --run-reproducer %t.mlir | FileCheck %s --check-prefix=REPLAY

// RUN: not pipeline-opt --run-reproducer %s 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not pipeline-opt --run-reproducer %t.mlir --cse 2>&1 | FileCheck %s --check-prefix=BOTH

// FAIL: pipeline-opt: error: {{.*}}.mlir:27:8: pass 'test-fail' failed on builtin.module: cannot multiply

// FILE: mlir_reproducer: {
// FILE-NEXT: pipeline: "builtin.module(cse,test-fail)",
// FILE-NEXT: disable_threading: true,
// FILE-NEXT: verify_each: true,
// FILE-NEXT: plugins: "{{.*}}marks.py"

// REPLAY: attributes {"a b"}

// NONE: pipeline-opt: error: {{.*}}: not a reproducer, it has no 'mlir_reproducer' resource
// BOTH: pipeline-opt: error: '--cse' cannot be used together with '--run-reproducer'

func.func @f(%a: i32) -> i32 {
  %x = arith.muli %a, %a : i32
  return %x : i32
}
