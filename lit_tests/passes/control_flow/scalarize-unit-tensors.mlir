// RUN: pipeline-opt %s --scalarize-unit-tensors | FileCheck %s
// RUN: pipeline-opt %s --scalarize-unit-tensors --remarks-filter=scalarize-unit-tensors --verify-diagnostics

#scalar = affine_map<() -> ()>
#id = affine_map<(d0) -> (d0)>
#zero = affine_map<(d0) -> (0)>
#none = affine_map<(d0) -> ()>

// A condition is computed by the bodies of two linalg ops, through a reshape.

// CHECK-LABEL: func.func @condition
// CHECK-SAME: (%[[X:.*]]: tensor<1xf32>)
// CHECK-NOT: linalg.generic
// CHECK: %[[E:.*]] = tensor.extract %[[X]][%c0{{.*}}] : tensor<1xf32>
// CHECK: %[[D:.*]] = arith.addf %[[E]], %[[E]] : f32
// CHECK: %[[C:.*]] = arith.cmpf ogt, %[[D]],
// CHECK-NEXT: return %[[C]]
func.func @condition(%x: tensor<1xf32>) -> i1 {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %d = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<1xf32>) outs(%e : tensor<1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %in : f32
    linalg.yield %s : f32
  } -> tensor<1xf32>
  %flat = tensor.collapse_shape %d [] : tensor<1xf32> into tensor<f32>
  %f = tensor.empty() : tensor<i1>
  %c = linalg.generic {indexing_maps = [#scalar, #scalar], iterator_types = []}
      ins(%flat : tensor<f32>) outs(%f : tensor<i1>) {
  ^bb0(%in: f32, %out: i1):
    %p = arith.cmpf ogt, %in, %zero : f32
    linalg.yield %p : i1
  } -> tensor<i1>
  // expected-remark @below {{passed: computes the number that it takes from linalg.generic}}
  // expected-remark @below {{passed: computes the number that it takes from linalg.generic}}
  %r = tensor.extract %c[] : tensor<i1>
  return %r : i1
}

// A loop counts in a number. The op that reads the count reads a number, and the rest of its body stays.

// CHECK-LABEL: func.func @count
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[T:.*]]: tensor<8xf32>)
// CHECK: %[[R:.*]]:2 = scf.while (%[[I:.*]] = %c0_i64, %[[S:.*]] = %[[X]]) : (i64, tensor<4xf32>) -> (i64, tensor<4xf32>)
// CHECK: %[[C:.*]] = arith.cmpi slt, %[[I]], %c5_i64 : i64
// CHECK: scf.condition(%[[C]]) %[[I]], %[[S]] : i64, tensor<4xf32>
// CHECK: ^bb0(%[[J:.*]]: i64, %[[H:.*]]: tensor<4xf32>):
// CHECK: %[[AT:.*]] = arith.index_cast %[[J]] : i64 to index
// CHECK-NEXT: %[[IN:.*]] = arith.cmpi ult, %[[AT]], %c8
// CHECK-NEXT: %[[SAFE:.*]] = arith.select %[[IN]], %[[AT]], %c0
// CHECK-NEXT: %[[V:.*]] = tensor.extract %[[T]][%[[SAFE]]]
// CHECK-NEXT: linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}], iterator_types = ["parallel"]} ins(%[[H]] : tensor<4xf32>)
// CHECK: arith.addf %{{.*}}, %[[V]] : f32
// CHECK: %[[N:.*]] = arith.addi %[[J]], %c1_i64 : i64
// CHECK: scf.yield %[[N]], %{{.*}} : i64, tensor<4xf32>
func.func @count(%x: tensor<4xf32>, %t: tensor<8xf32>) -> (tensor<1xi64>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %start = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %five = arith.constant 5 : i64
  %zero = tensor.from_elements %start : tensor<1xi64>
  // expected-remark @below {{passed: carries integers of one element as numbers}}
  %r:2 = scf.while (%i = %zero, %s = %x) : (tensor<1xi64>, tensor<4xf32>) -> (tensor<1xi64>, tensor<4xf32>) {
    %n = tensor.extract %i[%c0] : tensor<1xi64>
    %c = arith.cmpi slt, %n, %five : i64
    scf.condition(%c) %i, %s : tensor<1xi64>, tensor<4xf32>
  } do {
  ^bb0(%j: tensor<1xi64>, %h: tensor<4xf32>):
    %e = tensor.empty() : tensor<4xf32>
    // expected-remark @below {{passed: reads a number, not a tensor}}
    %g = linalg.generic {indexing_maps = [#zero, #id, #id], iterator_types = ["parallel"]}
        ins(%j, %h : tensor<1xi64>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%n: i64, %in: f32, %out: f32):
      %at = arith.index_cast %n : i64 to index
      %inside = arith.cmpi ult, %at, %c8 : index
      %safe = arith.select %inside, %at, %c0 : index
      %v = tensor.extract %t[%safe] : tensor<8xf32>
      %sum = arith.addf %in, %v : f32
      linalg.yield %sum : f32
    } -> tensor<4xf32>
    %f = tensor.empty() : tensor<1xi64>
    %next = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%j : tensor<1xi64>) outs(%f : tensor<1xi64>) {
    ^bb0(%n: i64, %out: i64):
      %m = arith.addi %n, %one : i64
      linalg.yield %m : i64
    } -> tensor<1xi64>
    // expected-remark @below {{passed: computes the number that it takes from linalg.generic}}
    scf.yield %next, %g : tensor<1xi64>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<1xi64>, tensor<4xf32>
}

// CHECK-LABEL: func.func @for_flag
// CHECK: scf.for %{{.*}} iter_args(%[[F:.*]] = %{{.*}}) -> (i1)
// CHECK-NEXT: %[[N:.*]] = arith.xori %[[F]], %true
// CHECK-NEXT: scf.yield %[[N]] : i1
func.func @for_flag(%n: index, %flag: tensor<i1>) -> i1 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  // expected-remark @below {{passed: carries integers of one element as numbers}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%f = %flag) -> tensor<i1> {
    %v = tensor.extract %f[] : tensor<i1>
    %not = arith.xori %v, %true : i1
    %next = tensor.from_elements %not : tensor<i1>
    scf.yield %next : tensor<i1>
  }
  %v = tensor.extract %r[] : tensor<i1>
  return %v : i1
}

// An op that fetches one element, at a place that another one computes: both bodies in a row.

// CHECK-LABEL: func.func @fetch
// CHECK-SAME: (%[[T:.*]]: tensor<4xf32>, %[[I:.*]]: tensor<i64>)
// CHECK-NOT: linalg.generic
// CHECK: %[[N:.*]] = tensor.extract %[[I]][] : tensor<i64>
// CHECK: arith.index_cast %[[N]]
// CHECK: %[[V:.*]] = tensor.extract %[[T]][%{{.*}}] : tensor<4xf32>
// CHECK: return %[[V]]
func.func @fetch(%t: tensor<4xf32>, %i: tensor<i64>) -> f32 {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<f32>
  %r = linalg.generic {indexing_maps = [#scalar, #scalar], iterator_types = []}
      ins(%i : tensor<i64>) outs(%e : tensor<f32>) {
  ^bb0(%n: i64, %out: f32):
    %at = arith.index_cast %n : i64 to index
    %inside = arith.cmpi ult, %at, %c4 : index
    %safe = arith.select %inside, %at, %c0 : index
    %v = tensor.extract %t[%safe] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<f32>
  // expected-remark @below {{passed: computes the number that it takes from linalg.generic}}
  %v = tensor.extract %r[] : tensor<f32>
  return %v : f32
}

// Constants of equal elements are numbers, and no operands.

// CHECK-LABEL: func.func @constants
// CHECK-SAME: (%[[X:.*]]: tensor<4xf16>)
// CHECK-DAG: %[[A:.*]] = arith.constant 2.500000e-01 : f16
// CHECK-DAG: %[[B:.*]] = arith.constant true
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}], {{.*}}} ins(%[[X]] : tensor<4xf16>)
// CHECK: arith.addf %{{.*}}, %[[A]]
// CHECK: arith.select %[[B]]
func.func @constants(%x: tensor<4xf16>) -> tensor<4xf16> {
  %quarter = arith.constant dense<0.25> : tensor<4xf16>
  %yes = arith.constant dense<true> : tensor<i1>
  %e = tensor.empty() : tensor<4xf16>
  // expected-remark @below {{passed: reads a number, not a tensor}}
  // expected-remark @below {{passed: reads a number, not a tensor}}
  %r = linalg.generic {indexing_maps = [#id, #id, #none, #id], iterator_types = ["parallel"]}
      ins(%x, %quarter, %yes : tensor<4xf16>, tensor<4xf16>, tensor<i1>) outs(%e : tensor<4xf16>) {
  ^bb0(%in: f16, %q: f16, %c: i1, %out: f16):
    %s = arith.addf %in, %q : f16
    %t = arith.select %c, %s, %in : f16
    linalg.yield %t : f16
  } -> tensor<4xf16>
  return %r : tensor<4xf16>
}

// Must not fire: several iterations; constants of different elements, and a constant that alone bounds a loop; floats and several elements as carries; a body that may trap: the op runs, even
// if its result is not extracted.

// CHECK-LABEL: func.func @left_alone
// CHECK: linalg.generic
// CHECK: tensor.extract
// CHECK: scf.for {{.*}} -> (tensor<f32>, tensor<2xi64>)
// CHECK: linalg.generic
// CHECK: arith.divsi
// CHECK: tensor.extract
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<4xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<4xf32>)
func.func @left_alone(%x: tensor<4xf32>, %n: index, %a: tensor<f32>, %b: tensor<2xi64>, %d: tensor<i64>)
    -> (f32, tensor<f32>, tensor<2xi64>, i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %sum = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]}
      ins(%x : tensor<4xf32>) outs(%a : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %v = tensor.extract %sum[] : tensor<f32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%f = %a, %g = %b) -> (tensor<f32>, tensor<2xi64>) {
    %e = tensor.empty() : tensor<f32>
    %next = linalg.generic {indexing_maps = [#scalar, #scalar], iterator_types = []}
        ins(%f : tensor<f32>) outs(%e : tensor<f32>) {
    ^bb0(%in: f32, %out: f32):
      %s = arith.addf %in, %in : f32
      linalg.yield %s : f32
    } -> tensor<f32>
    scf.yield %next, %g : tensor<f32>, tensor<2xi64>
  }
  %q = linalg.generic {indexing_maps = [#scalar, #scalar], iterator_types = []}
      ins(%d : tensor<i64>) outs(%d : tensor<i64>) {
  ^bb0(%in: i64, %out: i64):
    %s = arith.divsi %in, %out : i64
    linalg.yield %s : i64
  } -> tensor<i64>
  %w = tensor.extract %q[] : tensor<i64>
  %steps = arith.constant dense<[0.5, 1.5, 2.5, 3.5]> : tensor<4xf32>
  %sum2 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]}
      ins(%steps : tensor<4xf32>) outs(%sum : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %ones = arith.constant dense<1.0> : tensor<4xf32>
  // expected-remark @below {{passed: reads a number, not a tensor}}
  %sum3 = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]}
      ins(%ones : tensor<4xf32>) outs(%sum2 : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %v, %sum3, %r#1, %w : f32, tensor<f32>, tensor<2xi64>, i64
}
