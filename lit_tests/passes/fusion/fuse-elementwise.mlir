// RUN: pipeline-opt %s --split-input-file --fuse-elementwise | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --fuse-elementwise --remarks-filter=fuse-elementwise --verify-diagnostics

// A chain becomes one op. `(a + b) * c` stays one add and one multiply: both round, as written.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[A:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<4x8xf32>, %[[C:.*]]: tensor<4x8xf32>)
// CHECK-NEXT: %[[EMPTY:.*]] = tensor.empty
// CHECK-NEXT: %[[R:.*]] = linalg.generic {indexing_maps = [#[[ID:.*]], #[[ID]], #[[ID]], #[[ID]]]
// CHECK-SAME: ins(%[[C]], %[[A]], %[[B]] : {{.*}}) outs(%[[EMPTY]] : tensor<4x8xf32>) attrs = {kept}
// CHECK-NEXT: ^bb0(%[[IN_C:.*]]: f32, %[[IN_A:.*]]: f32, %[[IN_B:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[IN_A]], %[[IN_B]] : f32
// CHECK-NEXT: %[[PRODUCT:.*]] = arith.mulf %[[SUM]], %[[IN_C]] : f32
// CHECK-NEXT: linalg.yield %[[PRODUCT]] : f32
// CHECK: return %[[R]]
func.func @chain(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %c: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %empty = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<4x8xf32>, tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %sum = arith.addf %x, %y : f32
    linalg.yield %sum : f32
  } -> tensor<4x8xf32>
  // expected-remark @below {{passed: computes its operand 0, linalg.generic, itself}}
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %c : tensor<4x8xf32>, tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) attrs = {kept} {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %product = arith.mulf %x, %y : f32
    linalg.yield %product : f32
  } -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// x + f(x): once f is fused, x has one user left and follows. It is computed once for both operands.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @diamond
// CHECK-SAME: (%[[X:.*]]: tensor<?xf32>, %[[INIT:.*]]: tensor<?xf32>)
// CHECK-NEXT: %[[R:.*]] = linalg.generic
// CHECK-SAME: ins(%[[X]] : tensor<?xf32>) outs(%[[INIT]] : tensor<?xf32>)
// CHECK-NEXT: ^bb0(%[[IN:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[EXP:.*]] = math.exp %[[IN]] : f32
// CHECK-NEXT: %[[ERF:.*]] = math.erf %[[EXP]] : f32
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[EXP]], %[[ERF]] : f32
// CHECK-NEXT: linalg.yield %[[SUM]] : f32
// CHECK: return %[[R]]
func.func @diamond(%x: tensor<?xf32>, %init: tensor<?xf32>) -> tensor<?xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %exp = math.exp %in : f32
    linalg.yield %exp : f32
  } -> tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%0 : tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %erf = math.erf %in : f32
    linalg.yield %erf : f32
  } -> tensor<?xf32>
  // expected-remark @below {{passed: computes its operand 1, linalg.generic, itself}}
  // expected-remark @below {{passed: computes its operand 0, linalg.generic, itself}}
  %2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%0, %1 : tensor<?xf32>, tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %sum = arith.addf %l, %r : f32
    linalg.yield %sum : f32
  } -> tensor<?xf32>
  return %2 : tensor<?xf32>
}

// -----

// Must not fire: x[i, j] * x[j, i] reads the producer in two ways, each element twice.

#id = affine_map<(d0, d1) -> (d0, d1)>
#tr = affine_map<(d0, d1) -> (d1, d0)>

// CHECK-LABEL: func.func @two_ways
// CHECK: math.exp
// CHECK: } -> tensor<4x4xf32>
// CHECK: linalg.generic
// CHECK: ^bb0(%[[L:.*]]: f32, %[[R:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: arith.mulf %[[L]], %[[R]] : f32
func.func @two_ways(%x: tensor<4x4xf32>, %init: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %exp = math.exp %in : f32
    linalg.yield %exp : f32
  } -> tensor<4x4xf32>
  // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: the consumer reads it in several ways}}
  %1 = linalg.generic {indexing_maps = [#id, #tr, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %0 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    linalg.yield %product : f32
  } -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// -----

// Must not fire: the producer is also what the consumer updates.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @also_the_init
// CHECK: %[[P:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[P]] : tensor<4xf32>) outs(%[[P]] : tensor<4xf32>)
func.func @also_the_init(%x: tensor<4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %exp = math.exp %in : f32
    linalg.yield %exp : f32
  } -> tensor<4xf32>
  // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: the consumer reads it in several ways}}
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%0 : tensor<4xf32>) outs(%0 : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// A consumer's own init, which it reads, stays where it is.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @consumer_updates
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[INIT:.*]]: tensor<4xf32>)
// CHECK-NEXT: linalg.generic
// CHECK-SAME: ins(%[[X]] : tensor<4xf32>) outs(%[[INIT]] : tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN:.*]]: f32, %[[OUT:.*]]: f32):
// CHECK-NEXT: %[[EXP:.*]] = math.exp %[[IN]]
// CHECK-NEXT: arith.subf %[[OUT]], %[[EXP]]
func.func @consumer_updates(%x: tensor<4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %exp = math.exp %in : f32
    linalg.yield %exp : f32
  } -> tensor<4xf32>
  // expected-remark @below {{passed}}
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%0 : tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.subf %out, %in : f32
    linalg.yield %sum : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Must not fire: the producer reads its init, so it is no function of its inputs alone.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @producer_updates
// CHECK-COUNT-2: linalg.generic
func.func @producer_updates(%x: tensor<4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  } -> tensor<4xf32>
  // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: it is not elementwise with one result}}
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%0 : tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %neg = arith.negf %in : f32
    linalg.yield %neg : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Must not fire: producers with two results, with a reduction, and with a result that is not written in whole.

#id = affine_map<(d0) -> (d0)>
#ids = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#in_row_1 = affine_map<(d0) -> (1, d0)>

// CHECK-LABEL: func.func @not_elementwise
// CHECK-COUNT-4: linalg.generic
func.func @not_elementwise(%x: tensor<4xf32>, %y: tensor<4x4xf32>) -> tensor<4xf32> {
  %two:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%x, %x : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%in: f32, %out0: f32, %out1: f32):
    %neg = arith.negf %in : f32
    linalg.yield %neg, %in : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  %sum = linalg.generic {indexing_maps = [#ids, #row], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<4x4xf32>) outs(%x : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %add = arith.addf %in, %out : f32
    linalg.yield %add : f32
  } -> tensor<4xf32>
  %part = linalg.generic {indexing_maps = [#id, #in_row_1], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%y : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %neg = arith.negf %in : f32
    linalg.yield %neg : f32
  } -> tensor<4x4xf32>
  // expected-remark @below {{operand 0, linalg.generic, itself: it is not elementwise with one result}}
  // expected-remark @below {{operand 1, linalg.generic, itself: it is not elementwise with one result}}
  // expected-remark @below {{operand 2, linalg.generic, itself: it is not elementwise with one result}}
  %r = linalg.generic {indexing_maps = [#id, #id, #in_row_1, #id], iterator_types = ["parallel"]}
      ins(%two#1, %sum, %part : tensor<4xf32>, tensor<4xf32>, tensor<4x4xf32>) outs(%x : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %ab = arith.addf %a, %b : f32
    %abc = arith.addf %ab, %c : f32
    linalg.yield %abc : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// A cheap producer is computed again for each column, a dear one is not.

#id1 = affine_map<(d0) -> (d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @broadcasts
// CHECK-SAME: (%[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>, %[[X:.*]]: tensor<4x8xf32>)
// CHECK: %[[DEAR:.*]] = linalg.generic
// CHECK: math.rsqrt
// CHECK: linalg.generic {indexing_maps = [#[[ID:.*]], #[[ROW:.*]], #[[ROW]], #[[ID]]]
// CHECK-SAME: ins(%[[X]], %[[A]], %[[DEAR]] : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: ^bb0(%[[IN_X:.*]]: f32, %[[IN_A:.*]]: f32, %[[IN_DEAR:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[CHEAP:.*]] = arith.negf %[[IN_A]]
// CHECK-NEXT: %[[XC:.*]] = arith.addf %[[IN_X]], %[[CHEAP]]
// CHECK-NEXT: arith.mulf %[[XC]], %[[IN_DEAR]]
func.func @broadcasts(%a: tensor<4xf32>, %b: tensor<4xf32>, %x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %cheap = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
      ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %neg = arith.negf %in : f32
    linalg.yield %neg : f32
  } -> tensor<4xf32>
  %dear = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
      ins(%b : tensor<4xf32>) outs(%a : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %rsqrt = math.rsqrt %in : f32
    linalg.yield %rsqrt : f32
  } -> tensor<4xf32>
  // expected-remark @below {{passed: computes its operand 1, linalg.generic, itself}}
  // expected-remark @below {{missed: does not compute its operand 2, linalg.generic, itself: it would be computed several times for each element}}
  %r = linalg.generic {indexing_maps = [#id, #row, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %cheap, %dear : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4x8xf32>) {
  ^bb0(%in: f32, %c: f32, %d: f32, %out: f32):
    %sum = arith.addf %in, %c : f32
    %product = arith.mulf %sum, %d : f32
    linalg.yield %product : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

// Must not fire at the end: each op is cheap, but together they are not, and they have become one op by then.

#id1 = affine_map<(d0) -> (d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @cheap_ones_add_up
// CHECK: %[[ROW:.*]] = linalg.generic
// CHECK: arith.addf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.negf
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[ROW]] : tensor<4xf32>)
func.func @cheap_ones_add_up(%a: tensor<4xf32>, %init: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
      ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %in : f32
    %product = arith.mulf %sum, %in : f32
    linalg.yield %product : f32
  } -> tensor<4xf32>
  // expected-remark @below {{passed}}
  %1 = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
      ins(%0 : tensor<4xf32>) outs(%a : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %neg = arith.negf %in : f32
    linalg.yield %neg : f32
  } -> tensor<4xf32>
  // expected-remark @below {{it would be computed several times for each element}}
  %2 = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<4xf32>) outs(%init : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----

// Named moves: a transpose and a broadcast become the way in which the consumer reads.

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[TRANSPOSED:.*]] = affine_map<(d0, d1, d2) -> (d1, d2, d0)>
// CHECK-DAG: #[[MIDDLE:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-LABEL: func.func @moves
// CHECK-SAME: (%[[X:.*]]: tensor<3x4x2xf32>, %[[Y:.*]]: tensor<2x4xf32>, %[[INIT:.*]]: tensor<2x3x4xf32>)
// CHECK-NEXT: linalg.generic {indexing_maps = [#[[TRANSPOSED]], #[[MIDDLE]], #[[ID]]]
// CHECK-SAME: ins(%[[X]], %[[Y]] :
// CHECK-NEXT: ^bb0(%[[L:.*]]: f32, %[[R:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: arith.subf %[[L]], %[[R]]
func.func @moves(%x: tensor<3x4x2xf32>, %y: tensor<2x4xf32>, %init: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %t = linalg.transpose ins(%x : tensor<3x4x2xf32>) outs(%init : tensor<2x3x4xf32>) permutation = [2, 0, 1]
  %b = linalg.broadcast ins(%y : tensor<2x4xf32>) outs(%init : tensor<2x3x4xf32>) dimensions = [1]
  // expected-remark @below {{passed: computes its operand 0, linalg.transpose, itself}}
  // expected-remark @below {{passed: computes its operand 1, linalg.broadcast, itself}}
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%t, %b : tensor<2x3x4xf32>, tensor<2x3x4xf32>) outs(%init : tensor<2x3x4xf32>) {
  ^bb0(%l: f32, %m: f32, %out: f32):
    %difference = arith.subf %l, %m : f32
    linalg.yield %difference : f32
  } -> tensor<2x3x4xf32>
  return %r : tensor<2x3x4xf32>
}

// -----

// What only converts moves into every user, through the order in which each reads.

#id = affine_map<(d0, d1) -> (d0, d1)>
#tr = affine_map<(d0, d1) -> (d1, d0)>

// CHECK-LABEL: func.func @casts
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf16>, %{{.*}}: tensor<4x8xf32>, %{{.*}}: tensor<8x4xf32>)
// CHECK-NEXT: linalg.generic
// CHECK-SAME: ins(%[[X]] : tensor<4x8xf16>)
// CHECK: %[[W0:.*]] = arith.extf
// CHECK-NEXT: math.exp %[[W0]]
// CHECK: linalg.generic {indexing_maps = [#[[TR:.*]], #[[ID:.*]]],
// CHECK-SAME: ins(%[[X]] : tensor<4x8xf16>)
// CHECK: %[[W1:.*]] = arith.extf
// CHECK-NEXT: math.tanh %[[W1]]
func.func @casts(%x: tensor<4x8xf16>, %init: tensor<4x8xf32>, %init_t: tensor<8x4xf32>)
    -> (tensor<4x8xf32>, tensor<8x4xf32>) {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf16>) outs(%init : tensor<4x8xf32>) {
  ^bb0(%in: f16, %out: f32):
    %wide = arith.extf %in : f16 to f32
    linalg.yield %wide : f32
  } -> tensor<4x8xf32>
  // expected-remark @below {{passed}}
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<4x8xf32>) outs(%init : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %exp = math.exp %in : f32
    linalg.yield %exp : f32
  } -> tensor<4x8xf32>
  // expected-remark @below {{passed}}
  %2 = linalg.generic {indexing_maps = [#tr, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<4x8xf32>) outs(%init_t : tensor<8x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %tanh = math.tanh %in : f32
    linalg.yield %tanh : f32
  } -> tensor<8x4xf32>
  return %1, %2 : tensor<4x8xf32>, tensor<8x4xf32>
}

// -----

// Must not fire: the producer has two users and costs something.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @several_users
// CHECK: %[[P:.*]] = linalg.generic
// CHECK: %[[C:.*]] = linalg.generic
// CHECK-SAME: ins(%[[P]] :
// CHECK: return %[[P]], %[[C]]
func.func @several_users(%x: tensor<4xf32>, %init: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %neg = arith.negf %in : f32
    linalg.yield %neg : f32
  } -> tensor<4xf32>
  // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: it has 2 users}}
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%0 : tensor<4xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %exp = math.exp %in : f32
    linalg.yield %exp : f32
  } -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A fill becomes a number that the consumer takes; a loop index follows the way in which it is read.

#id = affine_map<(d0, d1) -> (d0, d1)>
#tr = affine_map<(d0, d1) -> (d1, d0)>
#shifted = affine_map<(d0, d1) -> (d1 + 3, d0)>

// CHECK-DAG: #[[SHIFT:.*]] = affine_map<(d0, d1) -> (d1 + 3)>
// CHECK-DAG: #[[NUMBER:.*]] = affine_map<(d0, d1) -> ()>
// CHECK-LABEL: func.func @fill_and_index
// CHECK-SAME: (%[[X:.*]]: f32, %{{.*}}: tensor<8x4xf32>, %[[INIT:.*]]: tensor<4x8xi64>)
// CHECK: linalg.generic {indexing_maps = [#[[NUMBER]], #[[ID:.*]]]
// CHECK-SAME: ins(%[[X]] : f32) outs(%[[INIT]] : tensor<4x8xi64>)
// CHECK-NEXT: ^bb0(%[[IN:.*]]: f32, %{{.*}}: i64):
// CHECK-NEXT: %[[D0:.*]] = linalg.index 0 : index
// CHECK-NEXT: %[[D1:.*]] = linalg.index 1 : index
// CHECK-NEXT: %[[MOVED:.*]] = affine.apply #[[SHIFT]](%[[D0]], %[[D1]])
// CHECK-NEXT: %[[B:.*]] = arith.index_cast %[[MOVED]]
// CHECK-NEXT: %[[COLUMN:.*]] = linalg.index 1 : index
// CHECK-NEXT: %[[A:.*]] = arith.index_cast %[[COLUMN]]
// CHECK-NEXT: %[[F:.*]] = arith.fptosi %[[IN]]
// CHECK-NEXT: %[[SUM:.*]] = arith.addi %[[F]], %[[A]]
// CHECK-NEXT: arith.subi %[[SUM]], %[[B]]
func.func @fill_and_index(%x: f32, %f: tensor<8x4xf32>, %init: tensor<4x8xi64>) -> tensor<4x8xi64> {
  %empty = tensor.empty() : tensor<8x4xi64>
  %large = tensor.empty() : tensor<11x4xi64>
  %fill = linalg.fill ins(%x : f32) outs(%f : tensor<8x4xf32>) -> tensor<8x4xf32>
  %rows = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]}
      outs(%empty : tensor<8x4xi64>) {
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    %i64 = arith.index_cast %i : index to i64
    linalg.yield %i64 : i64
  } -> tensor<8x4xi64>
  %large_rows = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]}
      outs(%large : tensor<11x4xi64>) {
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    %i64 = arith.index_cast %i : index to i64
    linalg.yield %i64 : i64
  } -> tensor<11x4xi64>
  // expected-remark @below {{passed: computes its operand 0, linalg.fill, itself}}
  // expected-remark @below {{passed: computes its operand 1, linalg.generic, itself}}
  // expected-remark @below {{passed: computes its operand 1, linalg.generic, itself}}
  %r = linalg.generic {indexing_maps = [#tr, #tr, #shifted, #id], iterator_types = ["parallel", "parallel"]}
      ins(%fill, %rows, %large_rows : tensor<8x4xf32>, tensor<8x4xi64>, tensor<11x4xi64>)
      outs(%init : tensor<4x8xi64>) {
  ^bb0(%v: f32, %a: i64, %b: i64, %out: i64):
    %w = arith.fptosi %v : f32 to i64
    %sum = arith.addi %w, %a : i64
    %difference = arith.subi %sum, %b : i64
    linalg.yield %difference : i64
  } -> tensor<4x8xi64>
  return %r : tensor<4x8xi64>
}

// -----

// A reduction computes what it folds.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @reduction
// CHECK-SAME: (%[[X:.*]]: tensor<?x?xf32>, %{{.*}}: tensor<?x?xf32>, %[[ROWS:.*]]: tensor<?xf32>)
// CHECK-NEXT: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "reduction"]
// CHECK-SAME: ins(%[[X]] : tensor<?x?xf32>) outs(%[[ROWS]] : tensor<?xf32>)
// CHECK-NEXT: ^bb0(%[[IN:.*]]: f32, %[[OUT:.*]]: f32):
// CHECK-NEXT: %[[EXP:.*]] = math.exp %[[IN]]
// CHECK-NEXT: arith.addf %[[EXP]], %[[OUT]]
func.func @reduction(%x: tensor<?x?xf32>, %init: tensor<?x?xf32>, %rows: tensor<?xf32>) -> tensor<?xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x?xf32>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %exp = math.exp %in : f32
    linalg.yield %exp : f32
  } -> tensor<?x?xf32>
  // expected-remark @below {{passed}}
  %1 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%0 : tensor<?x?xf32>) outs(%rows : tensor<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  } -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

// Must not fire: only the broadcast's result says how often the reduction runs.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @the_bound
// CHECK: %[[WIDE:.*]] = linalg.broadcast
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[WIDE]] : tensor<4x8xf32>)
func.func @the_bound(%x: tensor<4xf32>, %wide: tensor<4x8xf32>) -> tensor<4xf32> {
  %0 = linalg.broadcast ins(%x : tensor<4xf32>) outs(%wide : tensor<4x8xf32>) dimensions = [1]
  // expected-remark @below {{missed: does not compute its operand 0, linalg.broadcast, itself: it alone says how often a loop runs}}
  %1 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%0 : tensor<4x8xf32>) outs(%x : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %out : f32
    linalg.yield %sum : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Must not fire: a contraction, a convolution and a pool read an element again and again, even if it is cheap.

#id1 = affine_map<(d0) -> (d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
#sum = affine_map<(d0, d1) -> (d0 + d1)>
#out = affine_map<(d0, d1) -> (d0)>
#window = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @read_again
// CHECK: arith.negf
// CHECK: arith.negf
// CHECK: linalg.generic
// CHECK-SAME: "parallel", "parallel", "reduction"
// CHECK-NOT: arith.negf
// CHECK: linalg.generic
// CHECK-NOT: arith.negf
// CHECK: linalg.generic
// CHECK-NOT: arith.negf
// CHECK: linalg.matmul
func.func @read_again(%m: tensor<4x4xf32>, %v: tensor<6xf32>, %w: tensor<3xf32>, %init: tensor<4xf32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %nm = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m : tensor<4x4xf32>) outs(%m : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %neg = arith.negf %in : f32
    linalg.yield %neg : f32
  } -> tensor<4x4xf32>
  %nv = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
      ins(%v : tensor<6xf32>) outs(%v : tensor<6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %neg = arith.negf %in : f32
    linalg.yield %neg : f32
  } -> tensor<6xf32>
  // expected-remark @below {{operand 0, linalg.generic, itself: the consumer reads its input again and again}}
  %contraction = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%nm, %m : tensor<4x4xf32>, tensor<4x4xf32>) outs(%m : tensor<4x4xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %total = arith.addf %out, %product : f32
    linalg.yield %total : f32
  } -> tensor<4x4xf32>
  // expected-remark @below {{operand 0, linalg.generic, itself: the consumer reads its input again and again}}
  %convolution = linalg.generic {indexing_maps = [#sum, #window, #out], iterator_types = ["parallel", "reduction"]}
      ins(%nv, %w : tensor<6xf32>, tensor<3xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %product = arith.mulf %l, %r : f32
    %total = arith.addf %out, %product : f32
    linalg.yield %total : f32
  } -> tensor<4xf32>
  // expected-remark @below {{operand 0, linalg.generic, itself: the consumer reads its input again and again}}
  %pool = linalg.generic {indexing_maps = [#sum, #window, #out], iterator_types = ["parallel", "reduction"]}
      ins(%nv, %w : tensor<6xf32>, tensor<3xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%in: f32, %size: f32, %out: f32):
    %max = arith.maximumf %in, %out : f32
    linalg.yield %max : f32
  } -> tensor<4xf32>
  %named = linalg.matmul ins(%nm, %m : tensor<4x4xf32>, tensor<4x4xf32>) outs(%m : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %contraction, %named, %convolution, %pool : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Must not fire: in a loop the producer would run again each time, in a branch it moves for no gain.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @other_blocks
// CHECK: math.exp
// CHECK: scf.for
// CHECK-NOT: math.exp
// CHECK: scf.if
// CHECK-NOT: math.exp
// CHECK: return
func.func @other_blocks(%x: tensor<4xf32>, %n: index, %c: i1) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %exp = math.exp %in : f32
    linalg.yield %exp : f32
  } -> tensor<4xf32>
  %loop = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> tensor<4xf32> {
    // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: it is in another block}}
    %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%0 : tensor<4xf32>) outs(%t : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %sum = arith.addf %in, %out : f32
      linalg.yield %sum : f32
    } -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  %if = scf.if %c -> tensor<4xf32> {
    // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: it is in another block}}
    %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%0 : tensor<4xf32>) outs(%x : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %neg = arith.negf %in : f32
      linalg.yield %neg : f32
    } -> tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %loop, %if : tensor<4xf32>, tensor<4xf32>
}

// -----

// Inside of one block of a loop it does fire, and what the body captures stays captured.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @same_block_of_a_loop
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %{{.*}}: index, %[[S:.*]]: f32)
// CHECK: scf.for
// CHECK-SAME: iter_args(%[[T:.*]] = %[[X]])
// CHECK-NEXT: linalg.generic
// CHECK-SAME: ins(%[[T]] :
// CHECK: %[[P:.*]] = arith.mulf %{{.*}}, %[[S]]
// CHECK-NEXT: math.exp %[[P]]
func.func @same_block_of_a_loop(%x: tensor<4xf32>, %n: index, %s: f32) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %loop = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> tensor<4xf32> {
    %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%t : tensor<4xf32>) outs(%x : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %scaled = arith.mulf %in, %s : f32
      linalg.yield %scaled : f32
    } -> tensor<4xf32>
    // expected-remark @below {{passed}}
    %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%0 : tensor<4xf32>) outs(%x : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %exp = math.exp %in : f32
      linalg.yield %exp : f32
    } -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %loop : tensor<4xf32>
}

// -----

// Must not fire: ops on buffers have no results to follow; they stay.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @buffers
// CHECK-COUNT-2: linalg.generic
func.func @buffers(%x: memref<4xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %neg = arith.negf %in : f32
    linalg.yield %neg : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%y : memref<4xf32>) outs(%x : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

// A broadcast with two users moves into both before the sum could move into it: the sum stays one for each row.

#id1 = affine_map<(d0) -> (d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @free_ones_first
// CHECK-SAME: (%[[A:.*]]: tensor<4xf32>, %[[INIT:.*]]: tensor<4x8xf32>)
// CHECK-NEXT: %[[SUM:.*]] = linalg.generic
// CHECK-SAME: ins(%[[A]] : tensor<4xf32>)
// CHECK: arith.addf
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[SUM]] : tensor<4xf32>)
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[SUM]] : tensor<4xf32>)
// CHECK: math.tanh
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @free_ones_first(%a: tensor<4xf32>, %init: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %sum = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
      ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %twice = arith.addf %in, %in : f32
    linalg.yield %twice : f32
  } -> tensor<4xf32>
  %wide = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<4xf32>) outs(%init : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x8xf32>
  // expected-remark @below {{passed: computes its operand 0, linalg.generic, itself}}
  // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: it has 2 users}}
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%wide : tensor<4x8xf32>) outs(%init : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %exp = math.exp %in : f32
    linalg.yield %exp : f32
  } -> tensor<4x8xf32>
  // expected-remark @below {{passed: computes its operand 0, linalg.generic, itself}}
  // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: it has 2 users}}
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%wide : tensor<4x8xf32>) outs(%init : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %tanh = math.tanh %in : f32
    linalg.yield %tanh : f32
  } -> tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// A vector times a transposed matrix sums along the lines of the matrix as it is.

#x = affine_map<(d0, d1, d2) -> (d0, d2)>
#w = affine_map<(d0, d1, d2) -> (d2, d1)>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>

// CHECK-DAG: #[[LINES:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[DOWN:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-LABEL: func.func @vector
// CHECK-SAME: (%[[X:.*]]: tensor<1x64xf32>, %[[W:.*]]: tensor<32x64xf32>
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[LINES]], #{{.*}}]
// CHECK-SAME: ins(%[[X]], %[[W]] :
// CHECK-NOT: linalg.generic
func.func @vector(%x: tensor<1x64xf32>, %w: tensor<32x64xf32>, %o: tensor<1x32xf32>, %e: tensor<64x32xf32>) -> tensor<1x32xf32> {
  %t = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<32x64xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<64x32xf32>
  // expected-remark @below {{passed: computes its operand 1, linalg.generic, itself}}
  %r = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %t : tensor<1x64xf32>, tensor<64x32xf32>) outs(%o : tensor<1x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x32xf32>
  return %r : tensor<1x32xf32>
}

// A column, on the right of a transposed matrix: the result lies along the lines of the matrix as it is.

// CHECK-LABEL: func.func @column
// CHECK-SAME: (%[[A:.*]]: tensor<64x32xf32>, %[[C:.*]]: tensor<64x1xf32>
// CHECK: linalg.generic {indexing_maps = [#[[DOWN]], #{{.*}}, #{{.*}}]
// CHECK-SAME: ins(%[[A]], %[[C]] :
// CHECK-NOT: linalg.generic
func.func @column(%a: tensor<64x32xf32>, %c: tensor<64x1xf32>, %o: tensor<32x1xf32>, %e: tensor<32x64xf32>) -> tensor<32x1xf32> {
  %t = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<64x32xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<32x64xf32>
  // expected-remark @below {{passed: computes its operand 0, linalg.generic, itself}}
  %r = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%t, %c : tensor<32x64xf32>, tensor<64x1xf32>) outs(%o : tensor<32x1xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %out, %m : f32
    linalg.yield %s : f32
  } -> tensor<32x1xf32>
  return %r : tensor<32x1xf32>
}

// A few vectors, whose products are sums along the same lines.

// CHECK-LABEL: func.func @few_vectors
// CHECK-SAME: (%[[X:.*]]: tensor<4x64xf32>, %[[W:.*]]: tensor<32x64xf32>
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[LINES]], #{{.*}}]
// CHECK-SAME: ins(%[[X]], %[[W]] :
// CHECK-NOT: linalg.generic
func.func @few_vectors(%x: tensor<4x64xf32>, %w: tensor<32x64xf32>, %o: tensor<4x32xf32>, %e: tensor<64x32xf32>) -> tensor<4x32xf32> {
  %t = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<32x64xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<64x32xf32>
  // expected-remark @below {{passed: computes its operand 1, linalg.generic, itself}}
  %r = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %t : tensor<4x64xf32>, tensor<64x32xf32>) outs(%o : tensor<4x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x32xf32>
  return %r : tensor<4x32xf32>
}

// Must not fire: three vectors of bf16, whose products are dot products of what is packed instead.

// CHECK-LABEL: func.func @few_narrow_vectors
// CHECK-COUNT-2: linalg.generic
func.func @few_narrow_vectors(%x: tensor<3x64xbf16>, %w: tensor<32x64xbf16>, %o: tensor<3x32xf32>, %e: tensor<64x32xbf16>) -> tensor<3x32xf32> {
  %t = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<32x64xbf16>) outs(%e : tensor<64x32xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> tensor<64x32xbf16>
  // expected-remark @below {{missed: does not compute its operand 1, linalg.generic, itself: the consumer reads its input again and again}}
  %r = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %t : tensor<3x64xbf16>, tensor<64x32xbf16>) outs(%o : tensor<3x32xf32>) {
  ^bb0(%a: bf16, %b: bf16, %out: f32):
    %c = arith.extf %a : bf16 to f32
    %d = arith.extf %b : bf16 to f32
    %p = arith.mulf %c, %d : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<3x32xf32>
  return %r : tensor<3x32xf32>
}

// Must not fire: five vectors read each element again and again; the vector itself lies across.

// CHECK-LABEL: func.func @vectors
// CHECK-COUNT-4: linalg.generic
func.func @vectors(%x: tensor<5x64xf32>, %w: tensor<32x64xf32>, %o: tensor<5x32xf32>, %e: tensor<64x32xf32>,
    %v: tensor<64x2xf32>, %q: tensor<1x32xf32>) -> (tensor<5x32xf32>, tensor<1x32xf32>) {
  %t = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<32x64xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<64x32xf32>
  // expected-remark @below {{missed: does not compute its operand 1, linalg.generic, itself: the consumer reads its input again and again}}
  %r = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %t : tensor<5x64xf32>, tensor<64x32xf32>) outs(%o : tensor<5x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<5x32xf32>
  %u = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<32x64xf32>) outs(%e : tensor<64x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<64x32xf32>
  // expected-remark @below {{missed: does not compute its operand 1, linalg.generic, itself: the consumer reads its input again and again}}
  %s = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, 0)>, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%v, %u : tensor<64x2xf32>, tensor<64x32xf32>) outs(%q : tensor<1x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x32xf32>
  return %r, %s : tensor<5x32xf32>, tensor<1x32xf32>
}

// -----

// A factor of a product of bytes stays the first input: the others are its weight, and the weight's scales.

#heads = affine_map<(d0, d1, d2) -> (d1, d0, d2)>
#rows = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#x = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
#w = affine_map<(d0, d1, d2, d3) -> (d2, d3, d1)>
#s = affine_map<(d0, d1, d2, d3) -> (d1)>
#y = affine_map<(d0, d1, d2, d3) -> (d0, d1)>

// CHECK-LABEL: func.func @factor
// CHECK-SAME: (%[[X:.*]]: tensor<4x6x8xf32>, %[[W:.*]]: tensor<4x8x32xi8>, %[[S:.*]]: tensor<32xf32>
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[X]], %[[W]], %[[S]] :
// CHECK-NOT: linalg.generic
func.func @factor(%x: tensor<4x6x8xf32>, %w: tensor<4x8x32xi8>, %s: tensor<32xf32>, %e: tensor<6x4x8xf32>,
    %o: tensor<6x32xf32>) -> tensor<6x32xf32> {
  %t = linalg.generic {indexing_maps = [#heads, #rows], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x6x8xf32>) outs(%e : tensor<6x4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<6x4x8xf32>
  // expected-remark @below {{passed: computes its operand 0, linalg.generic, itself}}
  %r = linalg.generic {indexing_maps = [#x, #w, #s, #y], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%t, %w, %s : tensor<6x4x8xf32>, tensor<4x8x32xi8>, tensor<32xf32>) outs(%o : tensor<6x32xf32>) {
  ^bb0(%a: f32, %q: i8, %scale: f32, %out: f32):
    %whole = arith.sitofp %q : i8 to f32
    %b = arith.mulf %whole, %scale : f32
    %p = arith.mulf %a, %b : f32
    %sum = arith.addf %out, %p : f32
    linalg.yield %sum : f32
  } -> tensor<6x32xf32>
  return %r : tensor<6x32xf32>
}

// -----

// What reads nothing as large as it is computed twice, where one of two users sums it up; not what reads a tensor, or is
// dear.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @summed
// CHECK-SAME: (%[[X:.*]]: tensor<4x32xf32>, %[[LABELS:.*]]: tensor<4xindex>
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "reduction"]
// CHECK-SAME: ins(%[[X]], %[[LABELS]]
// CHECK: arith.cmpi
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[X]], %[[LABELS]]
// CHECK: arith.cmpi
// CHECK-NOT: arith.cmpi
// CHECK: return
func.func @summed(%x: tensor<4x32xf32>, %labels: tensor<4xindex>, %e: tensor<4x32xf32>, %o: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %hot = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%labels : tensor<4xindex>) outs(%e : tensor<4x32xf32>) {
  ^bb0(%label: index, %out: f32):
    %j = linalg.index 1 : index
    %c = arith.cmpi eq, %j, %label : index
    %v = arith.select %c, %one, %zero : f32
    linalg.yield %v : f32
  } -> tensor<4x32xf32>
  // expected-remark @below {{passed: computes its operand 1, linalg.generic, itself}}
  %sum = linalg.generic {indexing_maps = [#id, #id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %hot : tensor<4x32xf32>, tensor<4x32xf32>) outs(%o : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.maximumf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  // expected-remark @below {{passed: computes its operand 1, linalg.generic, itself}}
  %d = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %hot : tensor<4x32xf32>, tensor<4x32xf32>) outs(%e : tensor<4x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x32xf32>
  return %sum, %d : tensor<4xf32>, tensor<4x32xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @as_large
// CHECK: arith.maximumf
// CHECK-NOT: arith.maximumf
// CHECK: return
func.func @as_large(%x: tensor<4x32xf32>, %e: tensor<4x32xf32>, %o: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x32xf32>) outs(%e : tensor<4x32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %v = arith.maximumf %a, %zero : f32
    linalg.yield %v : f32
  } -> tensor<4x32xf32>
  // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: it has 2 users}}
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<4x32xf32>) outs(%o : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.addf %out, %a : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: it has 2 users}}
  %d = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<4x32xf32>) outs(%e : tensor<4x32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %s = arith.negf %a : f32
    linalg.yield %s : f32
  } -> tensor<4x32xf32>
  return %sum, %d : tensor<4xf32>, tensor<4x32xf32>
}

// -----

// What a consumer reads at computed places for each row is not multiplied for each, but what it negates is: that takes
// no more loads.

#id1 = affine_map<(d0) -> (d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @gathers
// CHECK-SAME: (%[[A:[a-z0-9]*]]: tensor<4xf32>,
// CHECK: %[[WEIGHT:[0-9]*]] = linalg.generic
// CHECK: arith.mulf
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[WEIGHT]], %[[A]], %{{.*}} : tensor<4xf32>
// CHECK: arith.negf
// CHECK: tensor.extract
func.func @gathers(%a: tensor<4xf32>, %b: tensor<4xf32>, %i: tensor<4xindex>, %table: tensor<8x9xf32>, %e: tensor<4xf32>, %x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %factor = linalg.generic {indexing_maps = [#id1, #id1, #id1], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %other: f32, %out: f32):
    %product = arith.mulf %in, %other : f32
    linalg.yield %product : f32
  } -> tensor<4xf32>
  %negative = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
      ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %neg = arith.negf %in : f32
    linalg.yield %neg : f32
  } -> tensor<4xf32>
  // expected-remark @below {{passed: computes its operand 1, linalg.generic, itself}}
  // expected-remark @below {{missed: does not compute its operand 0, linalg.generic, itself: it would be computed several times for each element}}
  %r = linalg.generic {indexing_maps = [#column, #column, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%factor, %negative, %i : tensor<4xf32>, tensor<4xf32>, tensor<4xindex>) outs(%x : tensor<8x4xf32>) {
  ^bb0(%f: f32, %n: f32, %at: index, %out: f32):
    %row = linalg.index 0 : index
    %element = tensor.extract %table[%row, %at] : tensor<8x9xf32>
    %product = arith.mulf %element, %f : f32
    %sum = arith.addf %product, %n : f32
    linalg.yield %sum : f32
  } -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
