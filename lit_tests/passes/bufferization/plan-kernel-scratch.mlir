// RUN: pipeline-opt %s --split-input-file --plan-kernel-scratch | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --plan-kernel-scratch --remarks-filter=plan-kernel-scratch --verify-diagnostics

// What a kernel allocates lies behind the temporaries of its caller; the loop's rounds use the same memory.

// CHECK-LABEL: func.func private @rows_0
// CHECK-SAME: (%[[X:.*]]: memref<16xf32>, %[[S:.*]]: memref<?xi8>)
// CHECK-NOT: memref.alloc
// CHECK: %[[AT_A:.*]] = arith.constant 128 : index
// CHECK: %[[A:.*]] = memref.view %[[S]][%[[AT_A]]][] : memref<?xi8> to memref<16xf32>
// CHECK: scf.for
// CHECK: %[[AT_B:.*]] = arith.constant 0 : index
// CHECK: %[[B:.*]] = memref.view %[[S]][%[[AT_B]]][] : memref<?xi8> to memref<20xf32>
// CHECK: call @use(%[[A]], %[[B]])
// CHECK-NOT: memref.dealloc
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[Y:.*]]: memref<16xf32>, %[[W:.*]]: memref<?xi8> {pipeline.workspace})
// CHECK-SAME: attributes {pipeline.thread_bytes = 0 : i64, pipeline.workspace = 320 : i64}
// CHECK: %[[SIZE:.*]] = memref.dim %[[W]], %{{.*}}
// CHECK: %[[OWN:.*]] = arith.constant 128 : index
// CHECK: %[[REST:.*]] = arith.subi %[[SIZE]], %[[OWN]]
// CHECK: %[[START:.*]] = arith.constant 128 : index
// CHECK: %[[BEHIND:.*]] = memref.view %[[W]][%[[START]]][%[[REST]]] : memref<?xi8> to memref<?xi8>
// CHECK: call @rows_0(%[[Y]], %[[BEHIND]])
func.func private @use(memref<16xf32>, memref<20xf32>)

// expected-remark @below {{passed: 2 buffers lie in 192 bytes of the caller's workspace}}
func.func private @rows_0(%x: memref<16xf32>) attributes {pipeline.kernel = "softmax"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() {alignment = 64 : i64} : memref<16xf32>
  scf.for %i = %c0 to %c4 step %c1 {
    %b = memref.alloc() : memref<20xf32>
    func.call @use(%a, %b) : (memref<16xf32>, memref<20xf32>) -> ()
    memref.dealloc %b : memref<20xf32>
  }
  memref.dealloc %a : memref<16xf32>
  return
}

func.func @main(%y: memref<16xf32>, %w: memref<?xi8> {pipeline.workspace}) attributes {pipeline.workspace = 128 : i64} {
  func.call @rows_0(%y) : (memref<16xf32>) -> ()
  return
}

// -----

// Threads that share iterations have places of their own, as many as there is room for. What the kernel allocates
// is for all of them.

// CHECK-LABEL: func.func private @rows_0_chunk_0
// CHECK-SAME: (%{{.*}}: index, %{{.*}}: index, %[[A:.*]]: memref<16xf32>, %[[S:.*]]: memref<?xi8>, %{{.*}}: index, %[[THREAD:.*]]: index)
// CHECK-SAME: attributes {pipeline.chunk = 1 : i64, pipeline.numbered}
// CHECK: %[[EACH:.*]] = arith.constant 128 : index
// CHECK: %[[AHEAD:.*]] = arith.muli %[[THREAD]], %[[EACH]]
// CHECK: %[[SHARED:.*]] = arith.constant 64 : index
// CHECK: %[[START:.*]] = arith.addi %[[AHEAD]], %[[SHARED]]
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: %[[OFFSET:.*]] = arith.addi %[[START]], %[[ZERO]]
// CHECK: %[[B:.*]] = memref.view %[[S]][%[[OFFSET]]][] : memref<?xi8> to memref<20xf32>
// CHECK: call @use(%[[A]], %[[B]])
// CHECK-LABEL: func.func private @rows_0(
// CHECK-SAME: %[[S:.*]]: memref<?xi8>)
// CHECK: %[[A:.*]] = memref.view %[[S]]
// CHECK: %[[SIZE:.*]] = memref.dim %[[S]]
// CHECK: %[[SHARED:.*]] = arith.constant 64 : index
// CHECK: %[[REST:.*]] = arith.subi %[[SIZE]], %[[SHARED]]
// CHECK: %[[EACH:.*]] = arith.constant 128 : index
// CHECK: %[[THREADS:.*]] = arith.divui %[[REST]], %[[EACH]]
// CHECK: %[[FIRST:.*]] = arith.constant 0 : index
// CHECK: call @rows_0_chunk_0(%{{.*}}, %{{.*}}, %[[A]], %[[S]], %[[THREADS]], %[[FIRST]])
// CHECK-LABEL: func.func @main
// CHECK-SAME: attributes {pipeline.thread_bytes = 128 : i64, pipeline.workspace = 192 : i64}
func.func private @use(memref<16xf32>, memref<20xf32>)

func.func private @rows_0_chunk_0(%first: index, %last: index, %a: memref<16xf32>) attributes {pipeline.chunk = 1 : i64} {
  %c1 = arith.constant 1 : index
  scf.for %i = %first to %last step %c1 {
    %b = memref.alloc() : memref<20xf32>
    func.call @use(%a, %b) : (memref<16xf32>, memref<20xf32>) -> ()
    memref.dealloc %b : memref<20xf32>
  }
  return
}

// expected-remark @below {{passed: 2 buffers lie in 64 bytes of the caller's workspace and 128 for each thread}}
func.func private @rows_0() attributes {pipeline.kernel = "softmax"} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() : memref<16xf32>
  func.call @rows_0_chunk_0(%c0, %c4, %a) : (index, index, memref<16xf32>) -> ()
  memref.dealloc %a : memref<16xf32>
  return
}

func.func @main(%w: memref<?xi8> {pipeline.workspace}) attributes {pipeline.workspace = 0 : i64} {
  func.call @rows_0() : () -> ()
  return
}

// -----

// A caller without a workspace allocates for one thread.

// CHECK-LABEL: func.func @prepare
// CHECK: %[[MADE:.*]] = memref.alloc() {alignment = 64 : i64} : memref<64xi8>
// CHECK: %[[S:.*]] = memref.cast %[[MADE]] : memref<64xi8> to memref<?xi8>
// CHECK: call @copy_0(%{{.*}}, %[[S]])
// CHECK: memref.dealloc %[[MADE]]
func.func private @use(memref<16xf32>, memref<16xf32>)

// expected-remark @below {{passed: 1 buffers lie in 64 bytes of the caller's workspace}}
func.func private @copy_0(%x: memref<16xf32>) attributes {pipeline.kernel = "copy"} {
  %a = memref.alloc() : memref<16xf32>
  func.call @use(%x, %a) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %a : memref<16xf32>
  return
}

func.func @prepare(%x: memref<16xf32>) {
  func.call @copy_0(%x) : (memref<16xf32>) -> ()
  return
}

// -----

// What nothing reads or writes goes.

// CHECK-LABEL: func.func private @matmul_0
// CHECK-SAME: (%{{.*}}: memref<16xf32>)
// CHECK-NEXT: return
func.func private @matmul_0(%x: memref<16xf32>) attributes {pipeline.kernel = "matmul"} {
  %a = memref.alloc() : memref<16xf32>
  memref.dealloc %a : memref<16xf32>
  return
}

// -----

// Sizes that are not known, buffers that outlive their block, and functions that are no kernels stay as they are.

// CHECK-LABEL: func.func private @copy_0
// CHECK-SAME: (%{{.*}}: memref<?xf32>, %[[N:.*]]: index)
// CHECK: memref.alloc(%[[N]])
// CHECK-LABEL: func.func private @made_0
// CHECK-SAME: () -> memref<16xf32>
// CHECK: memref.alloc()
// CHECK-LABEL: func.func @other
// CHECK: memref.alloc()
func.func private @use(memref<?xf32>, memref<?xf32>)
func.func private @touch(memref<16xf32>)

func.func private @copy_0(%x: memref<?xf32>, %n: index) attributes {pipeline.kernel = "copy"} {
  %a = memref.alloc(%n) : memref<?xf32>
  func.call @use(%x, %a) : (memref<?xf32>, memref<?xf32>) -> ()
  memref.dealloc %a : memref<?xf32>
  return
}

func.func private @made_0() -> memref<16xf32> attributes {pipeline.kernel = "fill"} {
  %a = memref.alloc() : memref<16xf32>
  func.call @touch(%a) : (memref<16xf32>) -> ()
  return %a : memref<16xf32>
}

func.func @other() {
  %a = memref.alloc() : memref<16xf32>
  func.call @touch(%a) : (memref<16xf32>) -> ()
  memref.dealloc %a : memref<16xf32>
  return
}

// -----

// A kernel that is shared is told what it takes; of one whose code is elsewhere its declaration says so.

// CHECK-LABEL: func.func private @here
// CHECK-SAME: pipeline.scratch = array<i64: 64, 0>, pipeline.shared = "here.0"
// CHECK: func.func private @elsewhere(memref<16xf32>, memref<?xi8>) attributes {pipeline.scratch = array<i64: 128, 256>}
// CHECK: func.func private @takes_none(memref<16xf32>)
// CHECK-LABEL: func.func @main
// CHECK-SAME: attributes {pipeline.thread_bytes = 256 : i64, pipeline.workspace = 384 : i64}
// CHECK: call @here(%{{.*}}, %{{.*}}) : (memref<16xf32>, memref<?xi8>) -> ()
// CHECK: call @elsewhere(%{{.*}}, %{{.*}}) : (memref<16xf32>, memref<?xi8>) -> ()
// CHECK: call @takes_none(%{{.*}}) : (memref<16xf32>) -> ()
func.func private @use(memref<16xf32>)

// expected-remark @below {{passed: 1 buffers lie in 64 bytes of the caller's workspace}}
func.func private @here(%x: memref<16xf32>) attributes {pipeline.kernel = "softmax", pipeline.shared = "here.0"} {
  %a = memref.alloc() {alignment = 64 : i64} : memref<16xf32>
  func.call @use(%a) : (memref<16xf32>) -> ()
  memref.dealloc %a : memref<16xf32>
  return
}

func.func private @elsewhere(memref<16xf32>) attributes {pipeline.scratch = array<i64: 128, 256>}
func.func private @takes_none(memref<16xf32>)

func.func @main(%y: memref<16xf32>, %w: memref<?xi8> {pipeline.workspace}) attributes {pipeline.workspace = 0 : i64} {
  func.call @here(%y) : (memref<16xf32>) -> ()
  func.call @elsewhere(%y) : (memref<16xf32>) -> ()
  func.call @takes_none(%y) : (memref<16xf32>) -> ()
  return
}
