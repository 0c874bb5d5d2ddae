// RUN: pipeline-opt %s --split-input-file --pass-pipeline="builtin.module(func.func(vectorize-scans{vector-bytes=32}))" | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --pass-pipeline="builtin.module(func.func(vectorize-scans{vector-bytes=32}))" --remarks-filter=vectorize-scans 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Along a line: sums of four elements in two steps, and those before are added to all of them; three elements are left.

// REMARK: a scan along lines, by vectors of 4
// CHECK-LABEL: func.func @along_lines
// CHECK-SAME: (%[[X:.*]]: memref<6x11xf32>, %[[OUT:.*]]: memref<6x11xf32>)
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK: %[[EIGHT:.*]] = arith.constant 8 : index
// CHECK: %[[BEFORE:.*]] = scf.for %[[J:.*]] = %{{.*}} to %[[EIGHT]] step %{{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (vector<4xf64>) {
// CHECK: %[[E:.*]] = vector.load %[[X]][%[[I]], %[[J]]] : memref<6x11xf32>, vector<4xf32>
// CHECK: %[[W:.*]] = arith.extf %[[E]] : vector<4xf32> to vector<4xf64>
// CHECK: %[[NONE:.*]] = arith.constant dense<-0.000000e+00> : vector<4xf64>
// CHECK: %[[ONE:.*]] = vector.shuffle %[[NONE]], %[[W]] [0, 4, 5, 6]
// CHECK: %[[PAIRS:.*]] = arith.addf %[[ONE]], %[[W]]
// CHECK: %[[TWO:.*]] = vector.shuffle %[[NONE]], %[[PAIRS]] [0, 1, 4, 5]
// CHECK: %[[SUMS:.*]] = arith.addf %[[TWO]], %[[PAIRS]]
// CHECK: %[[ALL:.*]] = arith.addf %[[SUMS]], %[[S]]
// CHECK: %[[NARROW:.*]] = arith.truncf %[[ALL]] : vector<4xf64> to vector<4xf32>
// CHECK: vector.store %[[NARROW]], %[[OUT]][%[[I]], %[[J]]]
// CHECK: %[[LAST:.*]] = vector.shuffle %[[SUMS]], %[[SUMS]] [3, 3, 3, 3]
// CHECK: %[[NEXT:.*]] = arith.addf %[[LAST]], %[[S]]
// CHECK: scf.yield %[[NEXT]]
// CHECK: %[[FIRST:.*]] = vector.extract %[[BEFORE]][0]
// CHECK: scf.for %{{.*}} = %[[EIGHT]] to %{{.*}} step %{{.*}} iter_args(%{{.*}} = %[[FIRST]]) -> (f64)
// CHECK: } {pipeline.lines, pipeline.parallel = "places"}
func.func @along_lines(%x: memref<6x11xf32>, %out: memref<6x11xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c11 = arith.constant 11 : index
  %zero = arith.constant 0.0 : f64
  scf.for %i = %c0 to %c6 step %c1 {
    %r = scf.for %j = %c0 to %c11 step %c1 iter_args(%s = %zero) -> (f64) {
      %e = memref.load %x[%i, %j] : memref<6x11xf32>
      %w = arith.extf %e : f32 to f64
      %n = arith.addf %w, %s : f64
      %t = arith.truncf %n : f64 to f32
      memref.store %t, %out[%i, %j] : memref<6x11xf32>
      scf.yield %n : f64
    } {pipeline.scan}
  } {pipeline.lines}
  return
}

// -----

// Integers wrap around, so that products of them may be made in any order; nothing is left of a line of whole vectors,
// whose last value is read here.

// REMARK: a scan along lines, by vectors of 4
// CHECK-LABEL: func.func @integers
// CHECK: %[[R:.*]] = scf.for {{.*}} -> (vector<4xi64>) {
// CHECK: arith.muli
// CHECK: %[[LAST:.*]] = vector.extract %[[R]][0] : i64 from vector<4xi64>
// CHECK-NOT: scf.for
// CHECK: return %[[LAST]]
func.func @integers(%x: memref<8xi64>, %out: memref<8xi64>) -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1 : i64
  %r = scf.for %j = %c0 to %c8 step %c1 iter_args(%s = %one) -> (i64) {
    %e = memref.load %x[%j] : memref<8xi64>
    %n = arith.muli %e, %s : i64
    memref.store %n, %out[%j] : memref<8xi64>
    scf.yield %n : i64
  } {pipeline.scan}
  return %r : i64
}

// -----

// Across rows: parts of a row, four rows at a time, and the row that is left; what is less than a vector under a mask.
// Products are as good as sums: each line is gone through in its order.

// REMARK: a scan across rows, by vectors of 4
// CHECK-LABEL: func.func @across_rows
// CHECK-SAME: (%[[X:.*]]: memref<5x2001xf32>, %[[OUT:.*]]: memref<5x2001xf32>)
// CHECK: %[[RUNNING:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1024xf64>
// CHECK: scf.for %[[PART:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK: %[[REST:.*]] = arith.subi %{{.*}}, %[[PART]]
// CHECK: %[[SIZE:.*]] = arith.minsi %[[REST]], %{{.*}}
// CHECK: vector.store %{{.*}}, %[[RUNNING]]
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK: scf.for %[[J:.*]] = {{.*}} {
// CHECK: %[[S:.*]] = vector.load %[[RUNNING]][%[[J]]] : memref<1024xf64>, vector<4xf64>
// CHECK: %[[COLUMN:.*]] = arith.addi %[[PART]], %[[J]]
// CHECK: %[[E:.*]] = vector.load %[[X]][%[[I]], %[[COLUMN]]] : memref<5x2001xf32>, vector<4xf32>
// CHECK: %[[W:.*]] = arith.extf %[[E]]
// CHECK: %[[N:.*]] = arith.mulf %[[W]], %[[S]] : vector<4xf64>
// CHECK: %[[T:.*]] = arith.truncf %[[N]]
// CHECK: vector.store %[[T]], %[[OUT]][%[[I]], %[[COLUMN]]]
// CHECK-COUNT-3: arith.mulf
// CHECK: vector.store %{{.*}}, %[[RUNNING]][%[[J]]]
// CHECK: vector.create_mask
// CHECK: vector.maskedload %[[X]]
// CHECK: vector.maskedstore %[[OUT]]
// CHECK: } {pipeline.parallel = "tiles"}
func.func @across_rows(%x: memref<5x2001xf32>, %out: memref<5x2001xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c2001 = arith.constant 2001 : index
  %one = arith.constant 1.0 : f64
  scf.for %j = %c0 to %c2001 step %c1 {
    %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%s = %one) -> (f64) {
      %e = memref.load %x[%i, %j] : memref<5x2001xf32>
      %w = arith.extf %e : f32 to f64
      %n = arith.mulf %s, %w : f64
      %t = arith.truncf %n : f64 to f32
      memref.store %t, %out[%i, %j] : memref<5x2001xf32>
      scf.yield %n : f64
    } {pipeline.scan}
  } {pipeline.lines}
  return
}

// -----

// Whole vectors, known to be: one part, and no masks. Loops over more lines are around.

// REMARK: a scan across rows, by vectors of 4
// CHECK-LABEL: func.func @whole_vectors
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<12xf64>
// CHECK-NOT: vector.create_mask
// CHECK: } {pipeline.parallel = "tiles"}
// CHECK: } {pipeline.lines, pipeline.parallel = "tiles"}
func.func @whole_vectors(%x: memref<3x8x12xf64>, %out: memref<3x8x12xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %c12 = arith.constant 12 : index
  %zero = arith.constant 0.0 : f64
  scf.for %b = %c0 to %c3 step %c1 {
    scf.for %j = %c0 to %c12 step %c1 {
      %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %zero) -> (f64) {
        %e = memref.load %x[%b, %i, %j] : memref<3x8x12xf64>
        %n = arith.addf %e, %s : f64
        memref.store %n, %out[%b, %i, %j] : memref<3x8x12xf64>
        scf.yield %n : f64
      } {pipeline.scan}
    } {pipeline.lines}
  } {pipeline.lines}
  return
}

// -----

// Must not fire: sums of parts would round otherwise than sums one by one. Threads may share the lines all the same.

// REMARK: element by element: its elements are to be combined in their order
// CHECK-LABEL: func.func @sums_of_f64
// CHECK-NOT: vector
// CHECK: pipeline.parallel = "places"
func.func @sums_of_f64(%x: memref<6x32xf64>, %out: memref<6x32xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f64
  scf.for %i = %c0 to %c6 step %c1 {
    %r = scf.for %j = %c0 to %c32 step %c1 iter_args(%s = %zero) -> (f64) {
      %e = memref.load %x[%i, %j] : memref<6x32xf64>
      %n = arith.addf %e, %s : f64
      memref.store %n, %out[%i, %j] : memref<6x32xf64>
      scf.yield %n : f64
    } {pipeline.scan}
  } {pipeline.lines}
  return
}

// -----

// Must not fire: a product of some elements may overflow where one with those before does not.

// REMARK: element by element: its elements are to be combined in their order
// CHECK-LABEL: func.func @products
// CHECK-NOT: vector
// CHECK: return
func.func @products(%x: memref<32xf32>, %out: memref<32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %one = arith.constant 1.0 : f64
  %r = scf.for %j = %c0 to %c32 step %c1 iter_args(%s = %one) -> (f64) {
    %e = memref.load %x[%j] : memref<32xf32>
    %w = arith.extf %e : f32 to f64
    %n = arith.mulf %w, %s : f64
    %t = arith.truncf %n : f64 to f32
    memref.store %t, %out[%j] : memref<32xf32>
    scf.yield %n : f64
  } {pipeline.scan}
  return
}

// -----

// Must not fire: a line of less than a vector.

// REMARK: element by element: its line is shorter than a vector
// CHECK-LABEL: func.func @short
// CHECK-NOT: vector
// CHECK: return
func.func @short(%x: memref<3xi64>, %out: memref<3xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0 : i64
  %r = scf.for %j = %c0 to %c3 step %c1 iter_args(%s = %zero) -> (i64) {
    %e = memref.load %x[%j] : memref<3xi64>
    %n = arith.addi %e, %s : i64
    memref.store %n, %out[%j] : memref<3xi64>
    scf.yield %n : i64
  } {pipeline.scan}
  return
}

// -----

// Must not fire: neighbours lie apart.

// REMARK: element by element: its rows do not lie in one piece
// CHECK-LABEL: func.func @strided
// CHECK-NOT: vector
// CHECK: return
func.func @strided(%x: memref<32xi64, strided<[2]>>, %out: memref<32xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0 : i64
  %r = scf.for %j = %c0 to %c32 step %c1 iter_args(%s = %zero) -> (i64) {
    %e = memref.load %x[%j] : memref<32xi64, strided<[2]>>
    %n = arith.addi %e, %s : i64
    memref.store %n, %out[%j] : memref<32xi64>
    scf.yield %n : i64
  } {pipeline.scan}
  return
}

// -----

// Must not fire: the line lies across rows, which are not gone through right around it: those loops carry a number.

// REMARK: element by element: its line lies across rows
// CHECK-LABEL: func.func @lines_that_carry
// CHECK-NOT: vector
// CHECK: return
func.func @lines_that_carry(%x: memref<8x12xi64>, %out: memref<8x12xi64>) -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c12 = arith.constant 12 : index
  %zero = arith.constant 0 : i64
  %last = scf.for %j = %c0 to %c12 step %c1 iter_args(%l = %zero) -> (i64) {
    %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %l) -> (i64) {
      %e = memref.load %x[%i, %j] : memref<8x12xi64>
      %n = arith.addi %e, %s : i64
      memref.store %n, %out[%i, %j] : memref<8x12xi64>
      scf.yield %n : i64
    } {pipeline.scan}
    scf.yield %r : i64
  } {pipeline.lines}
  return %last : i64
}

// -----

// Must not fire: what is folded is computed first, and what is written is what was before.

// REMARK: element by element: it is no running sum or product of what it reads
// REMARK: element by element: it is no running sum or product of what it reads
// CHECK-LABEL: func.func @others
// CHECK-NOT: vector
// CHECK: return
func.func @others(%x: memref<32xi64>, %out: memref<32xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0 : i64
  %q = scf.for %j = %c0 to %c32 step %c1 iter_args(%s = %zero) -> (i64) {
    %e = memref.load %x[%j] : memref<32xi64>
    %d = arith.addi %e, %e : i64
    %n = arith.addi %d, %s : i64
    memref.store %n, %out[%j] : memref<32xi64>
    scf.yield %n : i64
  } {pipeline.scan}
  %r = scf.for %j = %c0 to %c32 step %c1 iter_args(%s = %zero) -> (i64) {
    %e = memref.load %x[%j] : memref<32xi64>
    %n = arith.addi %e, %s : i64
    memref.store %s, %out[%j] : memref<32xi64>
    scf.yield %n : i64
  } {pipeline.scan}
  return
}

// -----

// Must not fire: a loop that nothing says of that it is a scan; what it writes may be what it reads later.

// CHECK-LABEL: func.func @unmarked
// CHECK-NOT: vector
// CHECK: return
func.func @unmarked(%x: memref<33xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0 : i64
  %to = memref.subview %x[1] [32] [1] : memref<33xi64> to memref<32xi64, strided<[1], offset: 1>>
  %r = scf.for %j = %c0 to %c32 step %c1 iter_args(%s = %zero) -> (i64) {
    %e = memref.load %x[%j] : memref<33xi64>
    %n = arith.addi %e, %s : i64
    memref.store %n, %to[%j] : memref<32xi64, strided<[1], offset: 1>>
    scf.yield %n : i64
  }
  return
}
