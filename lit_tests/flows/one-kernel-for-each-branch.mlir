// RUN: pipeline-opt %s --pass-pipeline="builtin.module(func.func(scalarize-unit-tensors,merge-equal-conditions,hoist-common-ops,hoist-loop-invariants,sink-into-branches,sink-consumers-into-branches,branches-to-selects),canonicalize,cse,func.func(fuse-elementwise,form-groups),outline-kernels)" | FileCheck %s

// The graph of a question in PyTorch's forum: a captured zeros(1), a condition on all elements, in-place ops on one way,
// with an outer value of another dtype, and an addition on the other. Each way is one kernel, the zeros are a number in
// it, and so is the condition but for one reduction.

#id = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0, d1) -> (0)>
#none = affine_map<(d0, d1) -> ()>

// CHECK: func.func private @[[REST:[a-z_]*]](%{{.*}}: tensor<512x512xf32>, %{{.*}}: tensor<512x512xf32>) ->
// CHECK-NEXT: %[[FOUR:.*]] = arith.constant 4.0
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1.0
// CHECK: %[[A:.*]] = arith.addf %{{.*}}, %[[FOUR]]
// CHECK-NEXT: %[[B:.*]] = arith.addf %[[A]], %[[ONE]]
// CHECK-NEXT: linalg.yield %[[B]]
// CHECK: func.func private @[[CHAIN:[a-z_]*]](%{{.*}}: tensor<512x512xf32>, %{{.*}}: tensor<512x512xf64>, %{{.*}}: tensor<512x512xf32>) ->
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0.0
// CHECK: linalg.generic
// CHECK: arith.addf %{{.*}}, %[[ZERO]]
// CHECK: arith.addf {{.*}} : f64
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: linalg.yield
// CHECK: func.func private @[[ALL:[a-z_]*]](%{{.*}}: tensor<512x512xf32>, %{{.*}}: tensor<i1>) ->
// CHECK: arith.cmpf oeq
// CHECK: arith.andi
// CHECK: func.func @main(%[[X:[a-z0-9]*]]: tensor<512x512xf32>, %[[Y:[a-z0-9]*]]: tensor<512x512xf64>)
// CHECK: call @[[ALL]](%[[X]],
// CHECK: scf.if
// CHECK: call @[[CHAIN]](%[[X]], %[[Y]],
// CHECK: } else {
// CHECK: call @[[REST]](%[[X]],
// CHECK-NOT: call
func.func @main(%x: tensor<512x512xf32>, %y: tensor<512x512xf64>) -> tensor<512x512xf32> {
  %zeros = arith.constant dense<0.0> : tensor<1xf32>
  %true = arith.constant true
  %c2 = arith.constant 2.0 : f32
  %c3 = arith.constant 3.0 : f32
  %c1 = arith.constant 1.0 : f32
  %c4 = arith.constant 4.0 : f32
  %e = tensor.empty() : tensor<512x512xf32>
  %f = tensor.empty() : tensor<512x512xi1>
  %equal = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<512x512xf32>) outs(%f : tensor<512x512xi1>) {
  ^bb0(%in: f32, %out: i1):
    %v = arith.cmpf oeq, %in, %c2 : f32
    linalg.yield %v : i1
  } -> tensor<512x512xi1>
  %b = tensor.empty() : tensor<i1>
  %start = linalg.fill ins(%true : i1) outs(%b : tensor<i1>) -> tensor<i1>
  %all = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction", "reduction"]}
      ins(%equal : tensor<512x512xi1>) outs(%start : tensor<i1>) {
  ^bb0(%in: i1, %out: i1):
    %v = arith.andi %in, %out : i1
    linalg.yield %v : i1
  } -> tensor<i1>
  %c = tensor.extract %all[] : tensor<i1>
  %shifted = linalg.generic {indexing_maps = [#id, #one, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %zeros : tensor<512x512xf32>, tensor<1xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%in: f32, %z: f32, %out: f32):
    %v = arith.addf %in, %z : f32
    linalg.yield %v : f32
  } -> tensor<512x512xf32>
  %r = scf.if %c -> tensor<512x512xf32> {
    %sum = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%shifted, %y : tensor<512x512xf32>, tensor<512x512xf64>) outs(%e : tensor<512x512xf32>) {
    ^bb0(%in: f32, %in2: f64, %out: f32):
      %wide = arith.extf %in : f32 to f64
      %v = arith.addf %wide, %in2 : f64
      %narrow = arith.truncf %v : f64 to f32
      linalg.yield %narrow : f32
    } -> tensor<512x512xf32>
    %product = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%sum : tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %v = arith.mulf %in, %c3 : f32
      linalg.yield %v : f32
    } -> tensor<512x512xf32>
    scf.yield %product : tensor<512x512xf32>
  } else {
    %sum = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %v = arith.addf %in, %c4 : f32
      linalg.yield %v : f32
    } -> tensor<512x512xf32>
    scf.yield %sum : tensor<512x512xf32>
  }
  %last = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%r : tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %c1 : f32
    linalg.yield %v : f32
  } -> tensor<512x512xf32>
  return %last : tensor<512x512xf32>
}
