// RUN: pipeline-opt %s --split-input-file --clamp-before-rounding --canonicalize | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --clamp-before-rounding --remarks-filter=clamp-before-rounding --verify-diagnostics

// Bounds of what is rounded are those of the integer without its zero point, which is added behind.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @quantized
// CHECK-DAG: %[[LOW:.*]] = arith.constant -3.000000e+00 : f32
// CHECK-DAG: %[[HIGH:.*]] = arith.constant 2.520000e+02 : f32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 3 : i32
// CHECK: ^bb0(%[[X:.*]]: f32, %{{.*}}: i8):
// CHECK-NEXT: %[[C:.*]] = arith.cmpf olt, %[[X]], %[[LOW]]
// CHECK-NEXT: %[[L:.*]] = arith.select %[[C]], %[[LOW]], %[[X]]
// CHECK-NEXT: %[[D:.*]] = arith.cmpf ogt, %[[L]], %[[HIGH]]
// CHECK-NEXT: %[[H:.*]] = arith.select %[[D]], %[[HIGH]], %[[L]]
// CHECK-NEXT: %[[R:.*]] = math.roundeven %[[H]]
// CHECK-NEXT: %[[I:.*]] = arith.fptosi %[[R]] : f32 to i32
// CHECK-NEXT: %[[S:.*]] = arith.addi %[[I]], %[[ZERO]]
// CHECK-NEXT: %[[Q:.*]] = arith.trunci %[[S]] : i32 to i8
// CHECK-NEXT: linalg.yield %[[Q]]
func.func @quantized(%x: tensor<16xf32>, %e: tensor<16xi8>) -> tensor<16xi8> {
  %low = arith.constant 0.0 : f32
  %high = arith.constant 255.0 : f32
  %zero = arith.constant 3.0 : f32
  // expected-remark @below {{passed: rounds floats between bounds as it converts them}}
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<16xf32>) outs(%e : tensor<16xi8>) {
  ^bb0(%in: f32, %out: i8):
    %whole = math.roundeven %in : f32
    %shifted = arith.addf %whole, %zero : f32
    %below = arith.cmpf olt, %shifted, %low : f32
    %lower = arith.select %below, %low, %shifted : f32
    %above = arith.cmpf ogt, %lower, %high : f32
    %upper = arith.select %above, %high, %lower : f32
    %q = arith.fptosi %upper : f32 to i8
    linalg.yield %q : i8
  } -> tensor<16xi8>
  return %r : tensor<16xi8>
}

// -----

// A relu goes, since 0 is the lower bound; so does the upper bound of a relu6 that rounds to 255, and one to less does not.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @relu
// CHECK: ^bb0(%[[X:.*]]: f32, %{{.*}}: i8):
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[X]], %{{.*}}
// CHECK-NEXT: arith.cmpf olt, %[[M]]
// CHECK: ^bb0(%[[Y:.*]]: f32, %{{.*}}: i8):
// CHECK-NEXT: %[[N:.*]] = arith.mulf %[[Y]], %{{.*}}
// CHECK-NEXT: arith.cmpf olt, %[[N]]
// CHECK: ^bb0(%[[Z:.*]]: f32, %{{.*}}: i8):
// CHECK-NEXT: arith.cmpf ogt, %[[Z]]
func.func @relu(%x: tensor<16xf32>, %e: tensor<16xi8>) -> (tensor<16xi8>, tensor<16xi8>, tensor<16xi8>) {
  %low = arith.constant 0.0 : f32
  %six = arith.constant 6.0 : f32
  %high = arith.constant 255.0 : f32
  %factor = arith.constant 42.5 : f32
  %small = arith.constant 30.0 : f32
  // expected-remark @below {{passed: rounds floats between bounds as it converts them}}
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<16xf32>) outs(%e : tensor<16xi8>) {
  ^bb0(%in: f32, %out: i8):
    %positive = arith.cmpf ugt, %in, %low : f32
    %relu = arith.select %positive, %in, %low : f32
    %scaled = arith.mulf %relu, %factor : f32
    %whole = math.roundeven %scaled : f32
    %below = arith.cmpf olt, %whole, %low : f32
    %lower = arith.select %below, %low, %whole : f32
    %above = arith.cmpf ogt, %lower, %high : f32
    %upper = arith.select %above, %high, %lower : f32
    %q = arith.fptosi %upper : f32 to i8
    linalg.yield %q : i8
  } -> tensor<16xi8>
  // expected-remark @below {{passed: rounds floats between bounds as it converts them}}
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<16xf32>) outs(%e : tensor<16xi8>) {
  ^bb0(%in: f32, %out: i8):
    %negative = arith.cmpf olt, %in, %low : f32
    %relu = arith.select %negative, %low, %in : f32
    %large = arith.cmpf ogt, %relu, %six : f32
    %relu6 = arith.select %large, %six, %relu : f32
    %scaled = arith.mulf %relu6, %factor : f32
    %whole = math.roundeven %scaled : f32
    %below = arith.cmpf olt, %whole, %low : f32
    %lower = arith.select %below, %low, %whole : f32
    %above = arith.cmpf ogt, %lower, %high : f32
    %upper = arith.select %above, %high, %lower : f32
    %q = arith.fptosi %upper : f32 to i8
    linalg.yield %q : i8
  } -> tensor<16xi8>
  // expected-remark @below {{passed: rounds floats between bounds as it converts them}}
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<16xf32>) outs(%e : tensor<16xi8>) {
  ^bb0(%in: f32, %out: i8):
    %large = arith.cmpf ogt, %in, %six : f32
    %most = arith.select %large, %six, %in : f32
    %scaled = arith.mulf %most, %small : f32
    %whole = math.roundeven %scaled : f32
    %below = arith.cmpf olt, %whole, %low : f32
    %lower = arith.select %below, %low, %whole : f32
    %above = arith.cmpf ogt, %lower, %high : f32
    %upper = arith.select %above, %high, %lower : f32
    %q = arith.fptosi %upper : f32 to i8
    linalg.yield %q : i8
  } -> tensor<16xi8>
  return %r, %s, %t : tensor<16xi8>, tensor<16xi8>, tensor<16xi8>
}

// -----

// Must not: a bound that is no integer; one bound alone; wide integers.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @left
// CHECK: math.roundeven
// CHECK-NEXT: arith.cmpf
// CHECK: math.roundeven
// CHECK-NEXT: arith.cmpf
// CHECK: math.roundeven
// CHECK-NEXT: arith.cmpf
func.func @left(%x: tensor<16xf32>, %e: tensor<16xi8>, %f: tensor<16xi32>) -> (tensor<16xi8>, tensor<16xi8>, tensor<16xi32>) {
  %low = arith.constant 0.0 : f32
  %part = arith.constant 0.5 : f32
  %high = arith.constant 255.0 : f32
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<16xf32>) outs(%e : tensor<16xi8>) {
  ^bb0(%in: f32, %out: i8):
    %whole = math.roundeven %in : f32
    %below = arith.cmpf olt, %whole, %part : f32
    %lower = arith.select %below, %part, %whole : f32
    %above = arith.cmpf ogt, %lower, %high : f32
    %upper = arith.select %above, %high, %lower : f32
    %q = arith.fptosi %upper : f32 to i8
    linalg.yield %q : i8
  } -> tensor<16xi8>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<16xf32>) outs(%e : tensor<16xi8>) {
  ^bb0(%in: f32, %out: i8):
    %whole = math.roundeven %in : f32
    %below = arith.cmpf olt, %whole, %low : f32
    %lower = arith.select %below, %low, %whole : f32
    %q = arith.fptosi %lower : f32 to i8
    linalg.yield %q : i8
  } -> tensor<16xi8>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<16xf32>) outs(%f : tensor<16xi32>) {
  ^bb0(%in: f32, %out: i32):
    %whole = math.roundeven %in : f32
    %below = arith.cmpf olt, %whole, %low : f32
    %lower = arith.select %below, %low, %whole : f32
    %above = arith.cmpf ogt, %lower, %high : f32
    %upper = arith.select %above, %high, %lower : f32
    %q = arith.fptosi %upper : f32 to i32
    linalg.yield %q : i32
  } -> tensor<16xi32>
  return %r, %s, %t : tensor<16xi8>, tensor<16xi8>, tensor<16xi32>
}
