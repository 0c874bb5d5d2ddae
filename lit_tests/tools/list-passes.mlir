// RUN: pipeline-opt --list-passes --load-plugin=%S/Inputs/marks.py | FileCheck %s
// CHECK: Passes of pipeline and its plugins:
// CHECK: --inline-constant-regions {{.*}} on func.func: Replace scf.if, scf.for and scf.while
// CHECK: --remove-unused-results {{.*}} on func.func: Drop unused results of a linalg.generic
// CHECK: --test-mark {{.*}} on func.func: Give each function a unit attribute.
// CHECK-NEXT: label=str {{.*}} name of the attribute (default: marked)
// CHECK-NEXT: only=str,... {{.*}} names of the functions, all if empty (default: {})
// CHECK: Passes of MLIR:
// CHECK: --canonicalize {{.*}} on any
// CHECK: --linalg-fuse-elementwise-ops {{.*}} on any
