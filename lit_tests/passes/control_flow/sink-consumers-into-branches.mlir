// RUN: pipeline-opt %s --sink-consumers-into-branches | FileCheck %s
// RUN: pipeline-opt %s --sink-consumers-into-branches --remarks-filter=sink-consumers-into-branches --verify-diagnostics

#id = affine_map<(d0) -> (d0)>
#sum = affine_map<(d0) -> ()>

func.func private @effect(tensor<4xf32>) -> tensor<4xf32>

// The addition is computed in both branches; in the first it fuses. What it reads besides goes in front of them.

// CHECK-LABEL: func.func @move
// CHECK-SAME: (%[[C:.*]]: i1, %[[X:.*]]: tensor<4xf32>)
// CHECK: %[[Y:.*]] = linalg.log ins(%[[X]]
// CHECK: %[[R:.*]] = scf.if %[[C]]
// CHECK: %[[A:.*]] = linalg.exp ins(%[[X]]
// CHECK-NEXT: %[[SA:.*]] = linalg.generic {{.*}} ins(%[[A]], %[[Y]] :
// CHECK: scf.yield %[[SA]]
// CHECK: } else {
// CHECK-NEXT: %[[SB:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[Y]] :
// CHECK: scf.yield %[[SB]]
// CHECK: return %[[R]]
func.func @move(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = scf.if %c -> tensor<4xf32> {
    %a = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  %y = linalg.log ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  // expected-remark @below {{passed: is computed in both branches}}
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%r, %y : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %in2: f32, %out: f32):
    %v = arith.addf %in, %in2 : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// Two consumers in a row, of one of two results; the other one stays a result.

// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[C:.*]]: i1, %[[X:.*]]: tensor<4xf32>)
// CHECK: %[[R:.*]]:2 = scf.if %[[C]] -> (tensor<4xf32>, tensor<4xf32>)
// CHECK: linalg.exp
// CHECK-NEXT: linalg.generic
// CHECK: arith.negf
// CHECK: linalg.generic
// CHECK: math.sqrt
// CHECK: scf.yield %[[X]], %{{.*}}
// CHECK: } else {
// CHECK: linalg.log
// CHECK: arith.negf
// CHECK: math.sqrt
// CHECK: return %[[R]]#1, %[[R]]#0
func.func @chain(%c: i1, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %r:2 = scf.if %c -> (tensor<4xf32>, tensor<4xf32>) {
    %a = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %a, %x : tensor<4xf32>, tensor<4xf32>
  } else {
    %a = linalg.log ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %a, %a : tensor<4xf32>, tensor<4xf32>
  }
  // expected-remark @below {{passed: is computed in both branches}}
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%r#0 : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.negf %in : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  // expected-remark @below {{passed: is computed in both branches}}
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%n : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = math.sqrt %in : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %s, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// Must not fire: behind a loop is where its consumers belong.

// CHECK-LABEL: func.func @loop
// CHECK: scf.for
// CHECK-NOT: arith.negf
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: linalg.generic
// CHECK: arith.negf
func.func @loop(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> tensor<4xf32> {
    %a = linalg.exp ins(%s : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  }
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%r : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.negf %in : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// Must not fire: the result is needed as it is; the consumer reduces; it fuses in no branch.

// CHECK-LABEL: func.func @left_alone
// CHECK: scf.if
// CHECK-NOT: linalg.generic
// CHECK: } else {
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: linalg.generic
// CHECK: linalg.generic
// CHECK: linalg.generic
func.func @left_alone(%c: i1, %x: tensor<4xf32>, %z: tensor<4xf32>, %start: tensor<f32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %r:3 = scf.if %c -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %a = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %b = linalg.log ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %a, %b, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  } else {
    scf.yield %x, %x, %z : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  // expected-remark @below {{missed: is not computed in the branches in front of it: the result that it reads has other users}}
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%r#0 : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.negf %in : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  // expected-remark @below {{missed: is not computed in the branches in front of it: it is not elementwise}}
  %s = linalg.generic {indexing_maps = [#id, #sum], iterator_types = ["reduction"]}
      ins(%r#1 : tensor<4xf32>) outs(%start : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %in, %out : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  // expected-remark @below {{missed: is not computed in the branches in front of it: it fuses in none of them}}
  %m = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%r#2 : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.negf %in : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %r#0, %n, %s, %m : tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<4xf32>
}

// Must not fire: what the consumer reads besides comes from an effect after the branches, or from the branches.

// CHECK-LABEL: func.func @order
// CHECK: scf.if
// CHECK: } else {
// CHECK: call @effect
// CHECK: linalg.generic
// CHECK: scf.if
// CHECK: } else {
// CHECK: linalg.log
// CHECK: linalg.generic
func.func @order(%c: i1, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %r = scf.if %c -> tensor<4xf32> {
    %a = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  %f = func.call @effect(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-remark @below {{missed: is not computed in the branches in front of it: what it reads has side effects}}
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%r, %f : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %in2: f32, %out: f32):
    %v = arith.addf %in, %in2 : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %q:2 = scf.if %c -> (tensor<4xf32>, tensor<4xf32>) {
    %a = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %a, %a : tensor<4xf32>, tensor<4xf32>
  } else {
    scf.yield %x, %s : tensor<4xf32>, tensor<4xf32>
  }
  %l = linalg.log ins(%q#1 : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  // expected-remark @below {{missed: is not computed in the branches in front of it: it also reads what is computed from another result of the branches}}
  %m = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%q#0, %l : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %in2: f32, %out: f32):
    %v = arith.mulf %in, %in2 : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %s, %m : tensor<4xf32>, tensor<4xf32>
}
