// RUN: pipeline-opt %s --split-input-file --plan-memory | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --plan-memory --remarks-filter=plan-memory --verify-diagnostics

func.func private @use(memref<16xf32>, memref<16xf32>)

// %a and %b are needed at the same time; %c comes after %a and takes its place.

// CHECK-LABEL: func.func @share
// CHECK-SAME: (%[[X:.*]]: memref<16xf32>, %[[W:.*]]: memref<?xi8> {pipeline.workspace})
// CHECK-SAME: attributes {pipeline.workspace = 128 : i64}
// CHECK-NEXT: %[[AT_A:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[A:.*]] = memref.view %[[W]][%[[AT_A]]][] : memref<?xi8> to memref<16xf32>
// CHECK-NEXT: call @use(%[[X]], %[[A]])
// CHECK-NEXT: %[[AT_B:.*]] = arith.constant 64 : index
// CHECK-NEXT: %[[B:.*]] = memref.view %[[W]][%[[AT_B]]][] : memref<?xi8> to memref<16xf32>
// CHECK-NEXT: call @use(%[[A]], %[[B]])
// CHECK-NEXT: %[[AT_C:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[C:.*]] = memref.view %[[W]][%[[AT_C]]][] : memref<?xi8> to memref<16xf32>
// CHECK-NEXT: call @use(%[[B]], %[[C]])
// CHECK-NEXT: return
// expected-remark @below {{passed: 3 temporaries of 192 bytes share 128 bytes}}
func.func @share(%x: memref<16xf32>, %w: memref<?xi8> {pipeline.workspace}) {
  %a = memref.alloc() {alignment = 64 : i64} : memref<16xf32>
  func.call @use(%x, %a) : (memref<16xf32>, memref<16xf32>) -> ()
  %b = memref.alloc() : memref<16xf32>
  func.call @use(%a, %b) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %a : memref<16xf32>
  %c = memref.alloc() : memref<16xf32>
  func.call @use(%b, %c) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %b : memref<16xf32>
  memref.dealloc %c : memref<16xf32>
  return
}

// -----

// Buffers that are all needed at once get places of their own, at multiples of the alignment: i1 takes a byte.

func.func private @use(memref<3xi1>, memref<5xf64>, memref<2xcomplex<f32>>)

// CHECK-LABEL: func.func @overlap
// CHECK-SAME: attributes {pipeline.workspace = 192 : i64}
// CHECK: %[[AT_A:.*]] = arith.constant 0 : index
// CHECK: %[[A:.*]] = memref.view %{{.*}}[%[[AT_A]]][] : memref<?xi8> to memref<3xi1>
// CHECK: %[[AT_B:.*]] = arith.constant 64 : index
// CHECK: %[[B:.*]] = memref.view %{{.*}}[%[[AT_B]]][] : memref<?xi8> to memref<5xf64>
// CHECK: %[[AT_C:.*]] = arith.constant 128 : index
// CHECK: %[[C:.*]] = memref.view %{{.*}}[%[[AT_C]]][] : memref<?xi8> to memref<2xcomplex<f32>>
// CHECK: call @use(%[[A]], %[[B]], %[[C]])
// expected-remark @below {{passed: 3 temporaries of 192 bytes share 192 bytes}}
func.func @overlap(%w: memref<?xi8> {pipeline.workspace}) {
  %a = memref.alloc() : memref<3xi1>
  %b = memref.alloc() : memref<5xf64>
  %c = memref.alloc() : memref<2xcomplex<f32>>
  func.call @use(%a, %b, %c) : (memref<3xi1>, memref<5xf64>, memref<2xcomplex<f32>>) -> ()
  memref.dealloc %a : memref<3xi1>
  memref.dealloc %b : memref<5xf64>
  memref.dealloc %c : memref<2xcomplex<f32>>
  return
}

// -----

// A small buffer goes into the gap that a large one left, not behind the one that is still needed.

func.func private @use(memref<32xf32>, memref<16xf32>)

// CHECK-LABEL: func.func @gap
// CHECK-SAME: attributes {pipeline.workspace = 192 : i64}
// CHECK: arith.constant 0 : index
// CHECK: memref.view %{{.*}} to memref<32xf32>
// CHECK: arith.constant 128 : index
// CHECK: memref.view %{{.*}} to memref<16xf32>
// CHECK: arith.constant 0 : index
// CHECK: memref.view %{{.*}} to memref<16xf32>
// CHECK: arith.constant 64 : index
// CHECK: memref.view %{{.*}} to memref<16xf32>
// expected-remark @below {{passed: 4 temporaries of 320 bytes share 192 bytes}}
func.func @gap(%w: memref<?xi8> {pipeline.workspace}) {
  %large = memref.alloc() : memref<32xf32>
  %kept = memref.alloc() : memref<16xf32>
  func.call @use(%large, %kept) : (memref<32xf32>, memref<16xf32>) -> ()
  memref.dealloc %large : memref<32xf32>
  %c = memref.alloc() : memref<16xf32>
  %d = memref.alloc() : memref<16xf32>
  linalg.copy ins(%kept : memref<16xf32>) outs(%c : memref<16xf32>)
  linalg.copy ins(%c : memref<16xf32>) outs(%d : memref<16xf32>)
  memref.dealloc %kept : memref<16xf32>
  memref.dealloc %c : memref<16xf32>
  memref.dealloc %d : memref<16xf32>
  return
}

// -----

// A buffer of no elements takes no memory.

func.func private @use(memref<0x4xf32>)

// CHECK-LABEL: func.func @empty
// CHECK-SAME: attributes {pipeline.workspace = 0 : i64}
// CHECK: memref.view %{{.*}} : memref<?xi8> to memref<0x4xf32>
// expected-remark @below {{passed: 1 temporaries of 0 bytes share 0 bytes}}
func.func @empty(%w: memref<?xi8> {pipeline.workspace}) {
  %a = memref.alloc() : memref<0x4xf32>
  func.call @use(%a) : (memref<0x4xf32>) -> ()
  memref.dealloc %a : memref<0x4xf32>
  return
}

// -----

// Temporaries of loops and branches: %b has a place beside %a, which lives longer than the loop, and each round uses it;
// the branches share one, which %a left.

func.func private @use(memref<16xf32>, memref<16xf32>)

// CHECK-LABEL: func.func @regions
// CHECK-SAME: (%[[X:.*]]: memref<16xf32>, %{{.*}}: i1, %{{.*}}: index, %[[W:.*]]: memref<?xi8> {pipeline.workspace})
// CHECK-SAME: attributes {pipeline.workspace = 128 : i64}
// CHECK: arith.constant 1 : index
// CHECK-NEXT: %[[AT_A:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[A:.*]] = memref.view %[[W]][%[[AT_A]]][] : memref<?xi8> to memref<16xf32>
// CHECK: scf.for
// CHECK-NEXT: %[[AT_B:.*]] = arith.constant 64 : index
// CHECK-NEXT: %[[B:.*]] = memref.view %[[W]][%[[AT_B]]][] : memref<?xi8> to memref<16xf32>
// CHECK-NEXT: call @use(%[[A]], %[[B]])
// CHECK-NEXT: }
// CHECK: scf.if
// CHECK-NEXT: %[[AT_C:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[C:.*]] = memref.view %[[W]][%[[AT_C]]][] : memref<?xi8> to memref<16xf32>
// CHECK: } else {
// CHECK-NEXT: %[[AT_D:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[D:.*]] = memref.view %[[W]][%[[AT_D]]][] : memref<?xi8> to memref<16xf32>
// expected-remark @below {{passed: 4 temporaries of 256 bytes share 128 bytes}}
func.func @regions(%x: memref<16xf32>, %p: i1, %n: index, %w: memref<?xi8> {pipeline.workspace}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<16xf32>
  scf.for %i = %c0 to %n step %c1 {
    %b = memref.alloc() : memref<16xf32>
    func.call @use(%a, %b) : (memref<16xf32>, memref<16xf32>) -> ()
    memref.dealloc %b : memref<16xf32>
  }
  memref.dealloc %a : memref<16xf32>
  scf.if %p {
    %c = memref.alloc() : memref<16xf32>
    func.call @use(%x, %c) : (memref<16xf32>, memref<16xf32>) -> ()
    memref.dealloc %c : memref<16xf32>
  } else {
    %d = memref.alloc() : memref<16xf32>
    func.call @use(%d, %x) : (memref<16xf32>, memref<16xf32>) -> ()
    memref.dealloc %d : memref<16xf32>
  }
  return
}

// -----

// Must not fire: the size is known at run time only; in a loop whose rounds run side by side; freed in a branch; never
// freed; laid out or aligned as no place in the workspace is.

func.func private @use(memref<?xf32>)

// CHECK-LABEL: func.func @left_alone
// CHECK-SAME: attributes {pipeline.workspace = 0 : i64}
// CHECK-NOT: memref.view
// CHECK: memref.alloc(%{{.*}}) : memref<?xf32>
// CHECK: scf.parallel
// CHECK: memref.alloc() : memref<4xf32>
// CHECK: memref.dealloc
// CHECK: memref.alloc() : memref<8xf32>
// CHECK: scf.if
// CHECK-NEXT: memref.dealloc
// CHECK: memref.alloc() : memref<5xf32>
// CHECK: memref.alloc() : memref<6x2xf32, strided<[1, 6]>>
// CHECK: memref.alloc() {alignment = 128 : i64} : memref<7xf32>
// CHECK: memref.alloc() : memref<7xf32, 1>
// CHECK-NOT: memref.view
func.func @left_alone(%n: index, %c: i1, %w: memref<?xi8> {pipeline.workspace}) -> memref<5xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc(%n) : memref<?xf32>
  func.call @use(%a) : (memref<?xf32>) -> ()
  memref.dealloc %a : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %b = memref.alloc() : memref<4xf32>
    %cast = memref.cast %b : memref<4xf32> to memref<?xf32>
    func.call @use(%cast) : (memref<?xf32>) -> ()
    memref.dealloc %b : memref<4xf32>
  }
  %d = memref.alloc() : memref<8xf32>
  scf.if %c {
    memref.dealloc %d : memref<8xf32>
  }
  %result = memref.alloc() : memref<5xf32>
  %column_major = memref.alloc() : memref<6x2xf32, strided<[1, 6]>>
  memref.dealloc %column_major : memref<6x2xf32, strided<[1, 6]>>
  %aligned = memref.alloc() {alignment = 128 : i64} : memref<7xf32>
  memref.dealloc %aligned : memref<7xf32>
  %elsewhere = memref.alloc() : memref<7xf32, 1>
  memref.dealloc %elsewhere : memref<7xf32, 1>
  return %result : memref<5xf32>
}

// -----

// Must not fire: no argument is a workspace.

// CHECK-LABEL: func.func @no_workspace
// CHECK-NOT: pipeline.workspace
// CHECK: memref.alloc() : memref<16xf32>
// CHECK: memref.dealloc
func.func @no_workspace(%x: memref<?xi8> {pipeline.argument = 0 : i64}) {
  %a = memref.alloc() : memref<16xf32>
  memref.dealloc %a : memref<16xf32>
  return
}

// CHECK-LABEL: func.func @no_arguments
// CHECK: memref.alloc() : memref<16xf32>
func.func @no_arguments() {
  %a = memref.alloc() : memref<16xf32>
  memref.dealloc %a : memref<16xf32>
  return
}

// -----

// @prepare, which runs once, allocates one piece of memory for all of its temporaries.

func.func private @use(memref<16xf32>, memref<16xf32>)

// CHECK-LABEL: func.func @prepare
// CHECK-SAME: (%[[X:.*]]: memref<16xf32>) attributes {pipeline.workspace = 64 : i64}
// CHECK: %[[MADE:.*]] = memref.alloc() {alignment = 64 : i64} : memref<64xi8>
// CHECK: %[[W:.*]] = memref.cast %[[MADE]] : memref<64xi8> to memref<?xi8>
// CHECK: %[[A:.*]] = memref.view %[[W]]
// CHECK: call @use(%[[X]], %[[A]])
// CHECK: %[[B:.*]] = memref.view %[[W]]
// CHECK: call @use(%[[X]], %[[B]])
// CHECK: memref.dealloc %[[MADE]]
// expected-remark @below {{passed: 2 temporaries of 128 bytes share 64 bytes}}
func.func @prepare(%x: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32>
  func.call @use(%x, %a) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %a : memref<16xf32>
  %b = memref.alloc() : memref<16xf32>
  func.call @use(%x, %b) : (memref<16xf32>, memref<16xf32>) -> ()
  memref.dealloc %b : memref<16xf32>
  return
}

// -----

// A @prepare without temporaries allocates nothing.

// CHECK-LABEL: func.func @prepare
// CHECK-NEXT: return
func.func @prepare(%x: memref<16xf32>) {
  return
}
