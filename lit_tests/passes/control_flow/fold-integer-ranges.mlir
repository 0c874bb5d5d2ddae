// RUN: pipeline-opt %s --fold-integer-ranges --canonicalize | FileCheck %s
// RUN: pipeline-opt %s --fold-integer-ranges --remarks-filter=fold-integer-ranges --verify-diagnostics

#id = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>

// Positions of a table with enough rows: neither wrapped nor checked.

// CHECK-LABEL: func.func @positions
// CHECK: linalg.generic
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[I:.*]] = linalg.index 0
// CHECK-NEXT: %[[V:.*]] = tensor.extract %{{.*}}[%[[I]]]
// CHECK-NEXT: linalg.yield %[[V]]
func.func @positions(%table: tensor<20xf32>) -> tensor<16xf32> {
  %c0 = arith.constant 0 : i64
  %c20 = arith.constant 20 : i64
  %n = arith.constant 20 : index
  %z = arith.constant 0 : index
  %e = tensor.empty() : tensor<16xf32>
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<16xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %p = arith.index_cast %i : index to i64
    // expected-remark @below {{passed: is always false}}
    %negative = arith.cmpi slt, %p, %c0 : i64
    %q = arith.addi %p, %c20 : i64
    %w = arith.select %negative, %q, %p : i64
    %x = arith.index_cast %w : i64 to index
    // expected-remark @below {{passed: is always true}}
    %inside = arith.cmpi ult, %x, %n : index
    %safe = arith.select %inside, %x, %z : index
    %v = tensor.extract %table[%safe] : tensor<20xf32>
    linalg.yield %v : f32
  } -> tensor<16xf32>
  return %r : tensor<16xf32>
}

// Through a tensor of positions, a slice and a reshape of it; the reduction of the checks is what it starts from.

// CHECK-LABEL: func.func @check
// CHECK-NEXT: %[[TRUE:.*]] = arith.constant true
// CHECK-NEXT: return %[[TRUE]]
func.func @check() -> i1 {
  %c16 = arith.constant 16 : i64
  %true = arith.constant true
  %e = tensor.empty() : tensor<16xi64>
  %positions = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<16xi64>) {
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    %p = arith.index_cast %i : index to i64
    linalg.yield %p : i64
  } -> tensor<16xi64>
  %some = tensor.extract_slice %positions[4] [12] [1] : tensor<16xi64> to tensor<12xi64>
  %rows = tensor.expand_shape %some [[0, 1]] output_shape [3, 4] : tensor<12xi64> into tensor<3x4xi64>
  %again = tensor.collapse_shape %rows [[0, 1]] : tensor<3x4xi64> into tensor<12xi64>
  %b = tensor.empty() : tensor<i1>
  %f = linalg.fill ins(%true : i1) outs(%b : tensor<i1>) -> tensor<i1>
  // expected-remark @below {{passed: keeps what it starts from}}
  %all = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]}
      ins(%again : tensor<12xi64>) outs(%f : tensor<i1>) {
  ^bb0(%in: i64, %out: i1):
    // expected-remark @below {{passed: is always true}}
    %below = arith.cmpi ult, %in, %c16 : i64
    %and = arith.andi %out, %below : i1
    linalg.yield %and : i1
  } -> tensor<i1>
  %one = tensor.extract %all[] : tensor<i1>
  return %one : i1
}

// The last position is not in the table: checked. Neither is what may overflow, or what data decides, known.

// CHECK-LABEL: func.func @not_known
// CHECK-COUNT-4: arith.cmpi
func.func @not_known(%data: tensor<16xi64>) -> (tensor<16xi1>, tensor<16xi1>, tensor<16xi1>, tensor<16xi1>) {
  %c15 = arith.constant 15 : i64
  %c0 = arith.constant 0 : i64
  %small = arith.constant 9 : i8
  %large = arith.constant 120 : i8
  %e = tensor.empty() : tensor<16xi1>
  %r:4 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%data : tensor<16xi64>) outs(%e, %e, %e, %e : tensor<16xi1>, tensor<16xi1>, tensor<16xi1>, tensor<16xi1>) {
  ^bb0(%in: i64, %o0: i1, %o1: i1, %o2: i1, %o3: i1):
    %i = linalg.index 0 : index
    %p = arith.index_cast %i : index to i64
    %a = arith.cmpi slt, %p, %c15 : i64
    %b = arith.cmpi slt, %in, %c0 : i64
    %narrow = arith.trunci %p : i64 to i8
    %sum = arith.addi %narrow, %large : i8
    %c = arith.cmpi slt, %small, %sum : i8
    %less = arith.subi %p, %c15 : i64
    %d = arith.cmpi ult, %less, %c15 : i64
    linalg.yield %a, %b, %c, %d : i1, i1, i1, i1
  } -> (tensor<16xi1>, tensor<16xi1>, tensor<16xi1>, tensor<16xi1>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<16xi1>, tensor<16xi1>, tensor<16xi1>, tensor<16xi1>
}

// Of a size that is not known, and a reduction that starts from data but may change it.

// CHECK-LABEL: func.func @dynamic
// CHECK: arith.cmpi
// CHECK: arith.andi
func.func @dynamic(%x: tensor<?xi1>, %start: tensor<i1>) -> tensor<i1> {
  %c9 = arith.constant 9 : index
  %r = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]}
      ins(%x : tensor<?xi1>) outs(%start : tensor<i1>) {
  ^bb0(%in: i1, %out: i1):
    %i = linalg.index 0 : index
    %a = arith.cmpi ult, %i, %c9 : index
    %and = arith.andi %out, %a : i1
    linalg.yield %and : i1
  } -> tensor<i1>
  return %r : tensor<i1>
}

// The counter of a loop.

// CHECK-LABEL: func.func @rounds
// CHECK-SAME: (%[[TABLE:.*]]: tensor<20xf32>)
// CHECK: scf.for %[[I:[a-z0-9]*]] = %
// CHECK-NEXT: tensor.extract %[[TABLE]][%[[I]]]
func.func @rounds(%table: tensor<20xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  %r = scf.for %i = %c0 to %c20 step %c1 iter_args(%h = %zero) -> f32 {
    // expected-remark @below {{passed: is always true}}
    %inside = arith.cmpi ult, %i, %c20 : index
    %safe = arith.select %inside, %i, %c0 : index
    %v = tensor.extract %table[%safe] : tensor<20xf32>
    %s = arith.addf %h, %v : f32
    scf.yield %s : f32
  }
  return %r : f32
}

// Must not fire: a loop that goes further, one of unknown length, and what a loop carries.

// CHECK-LABEL: func.func @too_many_rounds
// CHECK-COUNT-3: arith.cmpi ult
func.func @too_many_rounds(%table: tensor<20xf32>, %n: index) -> (index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c20 = arith.constant 20 : index
  %c21 = arith.constant 21 : index
  %a = scf.for %i = %c0 to %c21 step %c2 iter_args(%h = %c0) -> index {
    %inside = arith.cmpi ult, %i, %c20 : index
    %s = arith.select %inside, %i, %h : index
    scf.yield %s : index
  }
  %b = scf.for %i = %c0 to %n step %c1 iter_args(%h = %c0) -> index {
    %inside = arith.cmpi ult, %i, %c20 : index
    %s = arith.select %inside, %i, %h : index
    scf.yield %s : index
  }
  %c = scf.for %i = %c0 to %c20 step %c1 iter_args(%h = %c0) -> index {
    %inside = arith.cmpi ult, %h, %c20 : index
    %t = arith.addi %h, %c2 : index
    %s = arith.select %inside, %i, %t : index
    scf.yield %s : index
  }
  return %a, %b, %c : index, index, index
}

// Places from floats that comparisons limit, some of them in other ops: 0 for what is not a number.

// CHECK-LABEL: func.func @limited
// CHECK-NOT: arith.cmpi
// CHECK: return
func.func @limited(%x: tensor<16xf32>) -> (tensor<16xi1>, tensor<16xi1>) {
  %zero = arith.constant 0.0 : f32
  %last = arith.constant 8.7 : f32
  %c4 = arith.constant 4 : i32
  %c33 = arith.constant 33 : i32
  %c36 = arith.constant 36 : i32
  %e = tensor.empty() : tensor<16xi1>
  %f = tensor.empty() : tensor<16xf32>
  %positive = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<16xf32>) outs(%e : tensor<16xi1>) {
  ^bb0(%in: f32, %out: i1):
    %p = arith.cmpf ogt, %in, %zero : f32
    linalg.yield %p : i1
  } -> tensor<16xi1>
  %above = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%positive, %x : tensor<16xi1>, tensor<16xf32>) outs(%f : tensor<16xf32>) {
  ^bb0(%p: i1, %in: f32, %out: f32):
    %v = arith.select %p, %in, %zero : f32
    linalg.yield %v : f32
  } -> tensor<16xf32>
  %r:2 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%above, %x : tensor<16xf32>, tensor<16xf32>) outs(%e, %e : tensor<16xi1>, tensor<16xi1>) {
  ^bb0(%in: f32, %raw: f32, %out: i1, %out2: i1):
    %below = arith.cmpf ogt, %last, %in : f32
    %v = arith.select %below, %in, %last : f32
    %up = math.ceil %v : f32
    %i = arith.fptosi %up : f32 to i32
    %place = arith.muli %i, %c4 : i32
    // expected-remark @below {{passed: is always true}}
    %b = arith.cmpi sle, %place, %c36 : i32
    %least = arith.cmpf oge, %raw, %zero : f32
    %most = arith.cmpf olt, %raw, %last : f32
    %both = arith.andi %least, %most : i1
    %w = arith.select %both, %raw, %zero : f32
    %j = arith.fptosi %w : f32 to i32
    // expected-remark @below {{passed: is always true}}
    %c = arith.cmpi ult, %j, %c33 : i32
    linalg.yield %b, %c : i1, i1
  } -> (tensor<16xi1>, tensor<16xi1>)
  return %r#0, %r#1 : tensor<16xi1>, tensor<16xi1>
}

// Must not fire: for comparisons that hold for what is not a number, for one of another element, for a clamp that
// hands such on, and for a limit on one side.

// CHECK-LABEL: func.func @may_be_no_numbers
// CHECK-COUNT-4: arith.cmpi
func.func @may_be_no_numbers(%x: tensor<16xf32>, %y: tensor<16xf32>) -> (tensor<16xi1>, tensor<16xi1>, tensor<16xi1>, tensor<16xi1>) {
  %zero = arith.constant 0.0 : f32
  %last = arith.constant 9.0 : f32
  %c10 = arith.constant 10 : i32
  %e = tensor.empty() : tensor<16xi1>
  %r:4 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id, #id], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<16xf32>, tensor<16xf32>) outs(%e, %e, %e, %e : tensor<16xi1>, tensor<16xi1>, tensor<16xi1>, tensor<16xi1>) {
  ^bb0(%in: f32, %other: f32, %o0: i1, %o1: i1, %o2: i1, %o3: i1):
    %least = arith.cmpf oge, %in, %zero : f32
    %most = arith.cmpf olt, %in, %last : f32
    %both = arith.andi %least, %most : i1
    %not_less = arith.cmpf uge, %in, %zero : f32
    %not_more = arith.cmpf ult, %in, %last : f32
    %unordered = arith.andi %not_less, %not_more : i1
    %low = arith.select %least, %in, %zero : f32
    %maybe = arith.select %unordered, %in, %zero : f32
    %i = arith.fptosi %maybe : f32 to i32
    %a = arith.cmpi slt, %i, %c10 : i32
    %elsewhere = arith.select %both, %other, %zero : f32
    %j = arith.fptosi %elsewhere : f32 to i32
    %b = arith.cmpi slt, %j, %c10 : i32
    %clamp = arith.maximumf %in, %zero : f32
    %clamped = arith.minimumf %clamp, %last : f32
    %k = arith.fptosi %clamped : f32 to i32
    %c = arith.cmpi slt, %k, %c10 : i32
    %l = arith.fptosi %low : f32 to i32
    %d = arith.cmpi slt, %l, %c10 : i32
    linalg.yield %a, %b, %c, %d : i1, i1, i1, i1
  } -> (tensor<16xi1>, tensor<16xi1>, tensor<16xi1>, tensor<16xi1>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<16xi1>, tensor<16xi1>, tensor<16xi1>, tensor<16xi1>
}
