// RUN: pipeline-opt %s --keep-dispatches | FileCheck %s

// What the host does, and what the module says of it, goes.

// CHECK: module {
// CHECK-NEXT: func.func private @conv_dispatch_0(%{{.*}}: memref<4xf32>) attributes {pipeline.dispatch = "conv"} {
// CHECK-NOT: func.func
// CHECK-NOT: memref.global
module attributes {pipeline.checks = ["index out of range"]} {
  memref.global "private" constant @zeros : memref<4xf32> = dense<0.0>
  func.func @main(%x: memref<4xf32>) {
    call @conv_dispatch_0(%x) : (memref<4xf32>) -> ()
    return
  }
  func.func private @conv_dispatch_0(%x: memref<4xf32>) attributes {pipeline.dispatch = "conv"} {
    return
  }
}
