// RUN: pipeline-opt %s --inline-kernels | FileCheck %s
// RUN: pipeline-opt %s --inline-kernels --remarks-filter=inline-kernels --verify-diagnostics

// The step is in the place of its call, its scratch in front of the loop. What is called elsewhere stays.

// CHECK-NOT: @only_here
// CHECK: func.func private @shared
// CHECK: func.func private @loop(%[[X:.*]]: memref<8xf32>, %[[N:.*]]: index)
// CHECK-NEXT: %[[A:.*]] = memref.alloca() : memref<8xf32>
// CHECK: scf.for
// CHECK-NEXT: linalg.exp ins(%[[X]] : memref<8xf32>) outs(%[[A]] : memref<8xf32>)
// CHECK-NEXT: linalg.copy
// CHECK-SAME: ins(%[[A]] : memref<8xf32>) outs(%[[X]] : memref<8xf32>)
// CHECK: scf.for
// CHECK-NEXT: memref.store %{{.*}}, %[[X]]
// CHECK-NOT: call
// CHECK: func.func @main
// CHECK-NEXT: call @loop
// CHECK-NEXT: call @shared
func.func private @only_here(%x: memref<8xf32>, %out: memref<8xf32>) attributes {pipeline.kernel = "elementwise"} {
  %a = memref.alloca() : memref<8xf32>
  linalg.exp ins(%x : memref<8xf32>) outs(%a : memref<8xf32>)
  linalg.copy ins(%a : memref<8xf32>) outs(%out : memref<8xf32>)
  return
}
func.func private @shared(%x: memref<8xf32>) attributes {pipeline.kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %f0 = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %f0, %x[%i] : memref<8xf32>
  }
  return
}
func.func private @loop(%x: memref<8xf32>, %n: index) attributes {pipeline.kernel = "loop"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    // expected-remark @below {{passed: is a part of the loop's kernel}}
    func.call @only_here(%x, %x) : (memref<8xf32>, memref<8xf32>) -> ()
    // expected-remark @below {{passed: is a part of the loop's kernel}}
    func.call @shared(%x) : (memref<8xf32>) -> ()
  }
  return
}
func.func @main(%x: memref<8xf32>, %n: index) {
  call @loop(%x, %n) : (memref<8xf32>, index) -> ()
  call @shared(%x) : (memref<8xf32>) -> ()
  return
}

// Must not fire: scratch that is handed on, or of no known size; loops that threads share; what is no kernel.

// CHECK: func.func private @refused
// CHECK: call @handed
// CHECK: call @sized
// CHECK: call @shares
// CHECK: call @outside
func.func private @handed(%x: memref<8xf32>, %n: index) attributes {pipeline.kernel = "elementwise"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> memref<8xf32> {
    %a = memref.alloca() : memref<8xf32>
    linalg.exp ins(%h : memref<8xf32>) outs(%a : memref<8xf32>)
    scf.yield %a : memref<8xf32>
  }
  linalg.copy ins(%r : memref<8xf32>) outs(%x : memref<8xf32>)
  return
}
func.func private @sized(%x: memref<?xf32>, %n: index) attributes {pipeline.kernel = "elementwise"} {
  %a = memref.alloca(%n) : memref<?xf32>
  linalg.exp ins(%x : memref<?xf32>) outs(%a : memref<?xf32>)
  return
}
func.func private @outside(memref<8xf32>)
func.func private @shares(%x: memref<8xf32>) attributes {pipeline.kernel = "elementwise"} {
  call @outside(%x) : (memref<8xf32>) -> ()
  return
}
func.func private @refused(%x: memref<8xf32>, %y: memref<?xf32>, %n: index) attributes {pipeline.kernel = "loop"} {
  // expected-remark @below {{missed: stays a call: its scratch has no known size, or is handed on}}
  call @handed(%x, %n) : (memref<8xf32>, index) -> ()
  // expected-remark @below {{missed: stays a call: its scratch has no known size, or is handed on}}
  call @sized(%y, %n) : (memref<?xf32>, index) -> ()
  // expected-remark @below {{missed: stays a call: threads share its loops}}
  call @shares(%x) : (memref<8xf32>) -> ()
  call @outside(%x) : (memref<8xf32>) -> ()
  return
}
