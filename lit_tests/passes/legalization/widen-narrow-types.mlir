// RUN: pipeline-opt %s --widen-narrow-types | FileCheck %s

// Sums of i8 wrap: they are shifted to the top of the word and back.

// CHECK-LABEL: func.func private @bytes
// CHECK-SAME: (%[[X:.*]]: memref<?xi32>)
// CHECK: %[[V:.*]] = memref.load %[[X]]{{.*}} : memref<?xi32>
// CHECK: %[[SUM:.*]] = arith.addi %[[V]], %[[V]] : i32
// CHECK: %[[C:.*]] = arith.constant 24 : i32
// CHECK: %[[UP:.*]] = arith.shli %[[SUM]], %[[C]] : i32
// CHECK: %[[WRAPPED:.*]] = arith.shrsi %[[UP]], %[[C]] : i32
// CHECK: memref.store %[[WRAPPED]], %[[X]]
func.func private @bytes(%x: memref<?xi8>) attributes {pipeline.dispatch = "bytes"} {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<?xi8>
  %s = arith.addi %v, %v : i8
  memref.store %s, %x[%c0] : memref<?xi8>
  return
}

// An unsigned division sees the bits without the sign.

// CHECK-LABEL: func.func private @unsigned
// CHECK: %[[MASK:.*]] = arith.constant 65535 : i32
// CHECK: arith.andi %{{.*}}, %[[MASK]] : i32
// CHECK: arith.divui
func.func private @unsigned(%x: memref<?xi16>) attributes {pipeline.dispatch = "unsigned"} {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<?xi16>
  %s = arith.divui %v, %v : i16
  memref.store %s, %x[%c0] : memref<?xi16>
  return
}

// bf16 is f32 that is rounded after each op.

// CHECK-LABEL: func.func private @brain
// CHECK-SAME: (%[[X:.*]]: memref<?xf32>)
// CHECK: %[[V:.*]] = memref.load
// CHECK: %[[P:.*]] = arith.mulf %[[V]], %[[V]] : f32
// CHECK: %[[BITS:.*]] = arith.bitcast %[[P]] : f32 to i32
// CHECK-NOT: bf16
// CHECK: memref.store
func.func private @brain(%x: memref<?xbf16>) attributes {pipeline.dispatch = "brain"} {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<?xbf16>
  %s = arith.mulf %v, %v : bf16
  memref.store %s, %x[%c0] : memref<?xbf16>
  return
}

// A truth value is a word in memory alone.

// CHECK-LABEL: func.func private @truth
// CHECK-SAME: (%[[X:.*]]: memref<?xi32>)
// CHECK: %[[WORD:.*]] = memref.load %[[X]]
// CHECK: %[[V:.*]] = arith.cmpi ne, %[[WORD]]
// CHECK: %[[N:.*]] = arith.xori %[[V]], %{{.*}} : i1
// CHECK: %[[OUT:.*]] = arith.extui %[[N]] : i1 to i32
// CHECK: memref.store %[[OUT]], %[[X]]
func.func private @truth(%x: memref<?xi1>) attributes {pipeline.dispatch = "truth"} {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  %v = memref.load %x[%c0] : memref<?xi1>
  %n = arith.xori %v, %true : i1
  memref.store %n, %x[%c0] : memref<?xi1>
  return
}

// Must not fire: what has 32 bits or more.

// CHECK-LABEL: func.func private @wide
// CHECK-SAME: (%[[X:.*]]: memref<?xf32>, %[[Y:.*]]: memref<?xi64>)
// CHECK-NEXT: arith.constant
// CHECK-NEXT: memref.load
// CHECK-NEXT: memref.store
// CHECK-NEXT: memref.load
// CHECK-NEXT: arith.addi
// CHECK-NEXT: memref.store
func.func private @wide(%x: memref<?xf32>, %y: memref<?xi64>) attributes {pipeline.dispatch = "wide"} {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<?xf32>
  memref.store %v, %x[%c0] : memref<?xf32>
  %i = memref.load %y[%c0] : memref<?xi64>
  %j = arith.addi %i, %i : i64
  memref.store %j, %y[%c0] : memref<?xi64>
  return
}

// -----

// The bits of an f16: those of the f32 with a smaller exponent, steps of 2^-24 below 2^-14, all ones for infinity.

// CHECK-LABEL: func.func private @half_bits
// CHECK-SAME: memref<?xf32>
// CHECK: %[[NORMAL:.*]] = arith.subi %{{.*}}, %{{.*}} : i32
// CHECK: %[[TINY:.*]] = arith.fptosi %{{.*}} : f32 to i32
// CHECK: %[[FINITE:.*]] = arith.select %{{.*}}, %[[TINY]], %[[NORMAL]] : i32
// CHECK: arith.select %{{.*}}, %[[FINITE]], %{{.*}} : i32
// CHECK: %[[TINY:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK: arith.bitcast %[[TINY]] : f32 to i32
// CHECK-NOT: f16
func.func private @half_bits(%x: memref<?xf16>) attributes {pipeline.dispatch = "half_bits"} {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<?xf16>
  %b = arith.bitcast %v : f16 to i16
  %one = arith.constant 1 : i16
  %n = arith.addi %b, %one : i16
  %w = arith.bitcast %n : i16 to f16
  memref.store %w, %x[%c0] : memref<?xf16>
  return
}
