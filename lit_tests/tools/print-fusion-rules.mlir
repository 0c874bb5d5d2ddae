// RUN: pipeline-opt --print-fusion-rules=cpu | FileCheck %s
// RUN: pipeline-opt --print-fusion-rules=cpu -o %t.yaml
// RUN: pipeline-opt --print-fusion-rules=%t.yaml | FileCheck %s
// RUN: not pipeline-opt --print-fusion-rules=cpuu 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not pipeline-opt %s --fuse-elementwise=rules=none.yaml 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: pipeline-opt %s --form-groups=rules=%t.yaml --fuse-elementwise=rules=%t.yaml -o %t

// CHECK: target: cpu
// CHECK-NEXT: kinds:
// CHECK-NEXT:   matmul:
// CHECK-NEXT: prologue: []
// CHECK-NEXT: epilogue: [elementwise]
// CHECK-NEXT: dtypes: [any]
// CHECK: elementwise:
// CHECK: limits:
// CHECK: scratch_bytes: {{[0-9]+}}

// UNKNOWN: pipeline-opt: error: fusion rules 'cpuu': no file, and no target; there are cpu
// MISSING: fusion rules 'none.yaml': no file, and no target; there are cpu
func.func @f() { return }
