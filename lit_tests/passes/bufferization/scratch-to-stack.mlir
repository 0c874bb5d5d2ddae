// RUN: pipeline-opt %s --scratch-to-stack=limit=1024 | FileCheck %s
// RUN: pipeline-opt %s --scratch-to-stack=limit=1024 --remarks-filter=scratch-to-stack --verify-diagnostics

// What a round keeps for itself is made once, in front of the loop.

// CHECK-LABEL: func.func private @loop
// CHECK-SAME: (%[[X:.*]]: memref<8xf32>, %[[N:.*]]: index)
// CHECK-NEXT: %[[A:.*]] = memref.alloca() {alignment = 64 : i64} : memref<8xf32>
// CHECK: scf.for
// CHECK-NEXT: %[[V:.*]] = memref.subview %[[A]][0] [4] [1]
// CHECK: linalg.exp ins(%{{.*}}) outs(%[[V]]
// CHECK-NEXT: func.call @step(%[[A]], %[[X]])
// CHECK-NOT: memref.alloc()
func.func private @step(memref<8xf32>, memref<8xf32>)
func.func private @loop(%x: memref<8xf32>, %n: index) attributes {pipeline.kernel = "loop"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %head = memref.subview %x[0] [4] [1] : memref<8xf32> to memref<4xf32>
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.alloc() {alignment = 64 : i64} : memref<8xf32>
    %v = memref.subview %a[0] [4] [1] : memref<8xf32> to memref<4xf32>
    linalg.exp ins(%head : memref<4xf32>) outs(%v : memref<4xf32>)
    func.call @step(%a, %x) : (memref<8xf32>, memref<8xf32>) -> ()
  }
  return
}

// Must not fire: a round hands the buffer to the next one, or chooses it.

// CHECK-LABEL: func.func private @handed
// CHECK-COUNT-3: memref.alloc()
// CHECK-NOT: memref.alloca
func.func private @handed(%x: memref<8xf32>, %n: index, %p: i1) attributes {pipeline.kernel = "loop"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-remark @below {{missed: is allocated: it is handed on}}
  %first = memref.alloc() : memref<8xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %first) -> memref<8xf32> {
    // expected-remark @below {{missed: is allocated: it is handed on}}
    %a = memref.alloc() : memref<8xf32>
    memref.copy %h, %a : memref<8xf32> to memref<8xf32>
    scf.yield %a : memref<8xf32>
  }
  // expected-remark @below {{missed: is allocated: it is handed on}}
  %b = memref.alloc() : memref<8xf32>
  %s = arith.select %p, %b, %x : memref<8xf32>
  memref.copy %r, %s : memref<8xf32> to memref<8xf32>
  return
}

// Must not fire: too large, alone or with the others; of unknown size.

// CHECK-LABEL: func.func private @large
// CHECK-NEXT: memref.alloca() : memref<200xf32>
// CHECK-COUNT-3: memref.alloc(
// CHECK-NOT: memref.alloca
func.func private @large(%x: memref<?xf32>, %n: index) attributes {pipeline.kernel = "loop"} {
  // expected-remark @below {{missed: 1028 bytes are too many}}
  %a = memref.alloc() : memref<257xf32>
  // expected-remark @below {{missed: is allocated: its size is not known}}
  %b = memref.alloc(%n) : memref<?xf32>
  %c = memref.alloc() : memref<200xf32>
  // expected-remark @below {{missed: 800 bytes are too many}}
  %d = memref.alloc() : memref<200xf32>
  memref.copy %x, %b : memref<?xf32> to memref<?xf32>
  memref.copy %c, %d : memref<200xf32> to memref<200xf32>
  memref.dealloc %a : memref<257xf32>
  return
}

// Must not fire: other kernels, and other functions.

// CHECK-LABEL: func.func private @other
// CHECK-NOT: memref.alloca
func.func private @other(%x: memref<8xf32>) attributes {pipeline.kernel = "matmul"} {
  %a = memref.alloc() : memref<8xf32>
  memref.copy %x, %a : memref<8xf32> to memref<8xf32>
  return
}
func.func @main(%x: memref<8xf32>) {
  %a = memref.alloc() : memref<8xf32>
  memref.copy %x, %a : memref<8xf32> to memref<8xf32>
  return
}
