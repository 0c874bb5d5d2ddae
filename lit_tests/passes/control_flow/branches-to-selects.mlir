// RUN: pipeline-opt %s --branches-to-selects | FileCheck %s
// RUN: pipeline-opt %s --branches-to-selects --remarks-filter=branches-to-selects --verify-diagnostics

#id = affine_map<(d0) -> (d0)>
#one = affine_map<(d0) -> ()>

func.func private @effect(f32)

// Both branches read the same tensor and compute little: one kernel reads it once and chooses.

// CHECK-LABEL: func.func @tensors
// CHECK-SAME: (%[[C:.*]]: i1, %[[X:.*]]: tensor<100000xf32>)
// CHECK-NOT: scf.if
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%[[X]] :
// CHECK: arith.mulf
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%[[X]] :
// CHECK: arith.addf
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[A]], %[[B]] :
// CHECK-NEXT: ^bb0(%[[P:.*]]: f32, %[[Q:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[V:.*]] = arith.select %[[C]], %[[P]], %[[Q]] : f32
// CHECK-NEXT: linalg.yield %[[V]]
// CHECK: return %[[R]]
func.func @tensors(%c: i1, %x: tensor<100000xf32>) -> tensor<100000xf32> {
  // expected-remark @below {{passed: both branches are computed, and one result chosen}}
  %r = scf.if %c -> tensor<100000xf32> {
    %e = tensor.empty() : tensor<100000xf32>
    %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<100000xf32>) outs(%e : tensor<100000xf32>) {
    ^bb0(%in: f32, %out: f32):
      %v = arith.mulf %in, %in : f32
      linalg.yield %v : f32
    } -> tensor<100000xf32>
    scf.yield %a : tensor<100000xf32>
  } else {
    %e = tensor.empty() : tensor<100000xf32>
    %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<100000xf32>) outs(%e : tensor<100000xf32>) {
    ^bb0(%in: f32, %out: f32):
      %v = arith.addf %in, %in : f32
      linalg.yield %v : f32
    } -> tensor<100000xf32>
    scf.yield %a : tensor<100000xf32>
  }
  return %r : tensor<100000xf32>
}

// A condition of each element, and one in another: the body has no branch left. The result of a square root or a
// logarithm that the condition guards is thrown away where it does not hold.

// CHECK-LABEL: func.func @elements
// CHECK: linalg.generic
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[C:.*]] = arith.cmpf ogt, %[[X]]
// CHECK-NEXT: %[[S:.*]] = math.sqrt %[[X]]
// CHECK-NEXT: %[[D:.*]] = arith.cmpf ogt, %[[S]]
// CHECK-NEXT: %[[L:.*]] = math.log %[[S]]
// CHECK-NEXT: %[[T:.*]] = arith.select %[[D]], %[[L]], %[[S]]
// CHECK-NEXT: %[[R:.*]] = arith.select %[[C]], %[[T]], %[[X]]
// CHECK-NEXT: linalg.yield %[[R]]
func.func @elements(%x: tensor<100000xf32>) -> tensor<100000xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<100000xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<100000xf32>) outs(%e : tensor<100000xf32>) {
  ^bb0(%in: f32, %out: f32):
    %c = arith.cmpf ogt, %in, %zero : f32
    // expected-remark @below {{passed: both branches are computed}}
    %v = scf.if %c -> f32 {
      %s = math.sqrt %in : f32
      %d = arith.cmpf ogt, %s, %zero : f32
      // expected-remark @below {{passed: both branches are computed}}
      %t = scf.if %d -> f32 {
        %l = math.log %s : f32
        scf.yield %l : f32
      } else {
        scf.yield %s : f32
      }
      scf.yield %t : f32
    } else {
      scf.yield %in : f32
    }
    linalg.yield %v : f32
  } -> tensor<100000xf32>
  return %r : tensor<100000xf32>
}

// Small tensors: even a dear op costs less in vain than a call. What both branches hand on needs no select.

// CHECK-LABEL: func.func @small
// CHECK-SAME: (%[[C:.*]]: i1, %[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>)
// CHECK-NOT: scf.if
// CHECK: math.exp
// CHECK: arith.select
// CHECK-NOT: arith.select
// CHECK: return %{{.*}}, %[[Y]]
func.func @small(%c: i1, %x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-remark @below {{passed: both branches are computed}}
  %r:2 = scf.if %c -> (tensor<4xf32>, tensor<4xf32>) {
    %e = tensor.empty() : tensor<4xf32>
    %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %v = math.exp %in : f32
      linalg.yield %v : f32
    } -> tensor<4xf32>
    scf.yield %a, %y : tensor<4xf32>, tensor<4xf32>
  } else {
    scf.yield %x, %y : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// A divisor that is known not to be zero, an index that is known to be in range.

// CHECK-LABEL: func.func @known
// CHECK-NOT: scf.if
// CHECK: arith.divui
// CHECK: tensor.extract
// CHECK: arith.select
func.func @known(%c: i1, %x: i32, %y: i32, %t: tensor<4xi32>, %at: index) -> i32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %nonzero = arith.cmpi ne, %y, %zero : i32
  %safe = arith.select %nonzero, %y, %one : i32
  %inside = arith.cmpi ult, %at, %c4 : index
  %place = arith.select %inside, %at, %c0 : index
  // expected-remark @below {{passed: both branches are computed}}
  %r = scf.if %c -> i32 {
    %q = arith.divui %x, %safe : i32
    scf.yield %q : i32
  } else {
    %q = tensor.extract %t[%place] : tensor<4xi32>
    scf.yield %q : i32
  }
  return %r : i32
}

// Must not fire: a division of integers by zero traps, and so may the least integer by -1.

// CHECK-LABEL: func.func @division
// CHECK: linalg.generic
// CHECK: scf.if
// CHECK-NEXT: arith.divsi
// CHECK: scf.if
// CHECK-NEXT: arith.remui
func.func @division(%x: tensor<4xi32>, %c: i1, %a: i32, %b: i32) -> (tensor<4xi32>, i32) {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<4xi32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xi32>) outs(%e : tensor<4xi32>) {
  ^bb0(%in: i32, %out: i32):
    %p = arith.cmpi ne, %in, %zero : i32
    // expected-remark @below {{missed: the branches stay: arith.divsi may divide by zero}}
    %v = scf.if %p -> i32 {
      %q = arith.divsi %a, %in : i32
      scf.yield %q : i32
    } else {
      scf.yield %in : i32
    }
    linalg.yield %v : i32
  } -> tensor<4xi32>
  // expected-remark @below {{missed: the branches stay: arith.remui may divide by zero}}
  %s = scf.if %c -> i32 {
    %q = arith.remui %a, %b : i32
    scf.yield %q : i32
  } else {
    scf.yield %b : i32
  }
  return %r, %s : tensor<4xi32>, i32
}

// Must not fire: effects, an assert, an index that may be out of range, an inner loop that may not end.

// CHECK-LABEL: func.func @effects
// CHECK: scf.if
// CHECK-NEXT: call @effect
// CHECK: scf.if
// CHECK: cf.assert
// CHECK: scf.if
// CHECK-NEXT: tensor.extract
// CHECK: scf.if
// CHECK-NEXT: scf.while
// CHECK: scf.if
// CHECK-NEXT: memref.store
func.func @effects(%c: i1, %x: f32, %t: tensor<4xf32>, %at: index, %m: memref<1xf32>) -> (f32, f32, f32, f32) {
  %c0 = arith.constant 0 : index
  // expected-remark @below {{missed: the branches stay: func.call has side effects}}
  %r = scf.if %c -> f32 {
    func.call @effect(%x) : (f32) -> ()
    scf.yield %x : f32
  } else {
    %n = arith.negf %x : f32
    scf.yield %n : f32
  }
  // expected-remark @below {{missed: the branches stay: cf.assert has side effects}}
  %s = scf.if %c -> f32 {
    %n = arith.negf %x : f32
    scf.yield %n : f32
  } else {
    cf.assert %c, "never"
    scf.yield %x : f32
  }
  // expected-remark @below {{missed: the branches stay: tensor.extract may be out of range}}
  %u = scf.if %c -> f32 {
    %n = tensor.extract %t[%at] : tensor<4xf32>
    scf.yield %n : f32
  } else {
    scf.yield %x : f32
  }
  // expected-remark @below {{missed: the branches stay: scf.while may not end}}
  %v = scf.if %c -> f32 {
    %n = scf.while (%a = %x) : (f32) -> f32 {
      scf.condition(%c) %a : f32
    } do {
    ^bb0(%b: f32):
      scf.yield %b : f32
    }
    scf.yield %n : f32
  } else {
    scf.yield %x : f32
  }
  scf.if %c {
    memref.store %x, %m[%c0] : memref<1xf32>
  }
  return %r, %s, %u, %v : f32, f32, f32, f32
}

// Must not fire, by cost: another tensor to read; a branch that only hands on what there is; many ops in vain; a
// product; sizes that are known at run time only.

// CHECK-LABEL: func.func @cost
// CHECK-COUNT-5: scf.if
func.func @cost(%c: i1, %x: tensor<100000xf32>, %y: tensor<100000xf32>, %m: tensor<4x4xf32>, %d: tensor<?xf32>)
    -> (tensor<100000xf32>, tensor<100000xf32>, tensor<100000xf32>, tensor<4x4xf32>, tensor<?xf32>) {
  %e = tensor.empty() : tensor<100000xf32>
  // expected-remark @below {{missed: the branches stay: it would move 1200000 bytes, a branch 800000}}
  %r = scf.if %c -> tensor<100000xf32> {
    %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<100000xf32>) outs(%e : tensor<100000xf32>) {
    ^bb0(%in: f32, %out: f32):
      %v = arith.negf %in : f32
      linalg.yield %v : f32
    } -> tensor<100000xf32>
    scf.yield %a : tensor<100000xf32>
  } else {
    %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%y : tensor<100000xf32>) outs(%e : tensor<100000xf32>) {
    ^bb0(%in: f32, %out: f32):
      %v = arith.negf %in : f32
      linalg.yield %v : f32
    } -> tensor<100000xf32>
    scf.yield %a : tensor<100000xf32>
  }
  // expected-remark @below {{missed: the branches stay: it would move 800000 bytes, a branch 400000}}
  %s = scf.if %c -> tensor<100000xf32> {
    %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<100000xf32>) outs(%e : tensor<100000xf32>) {
    ^bb0(%in: f32, %out: f32):
      %v = arith.negf %in : f32
      linalg.yield %v : f32
    } -> tensor<100000xf32>
    scf.yield %a : tensor<100000xf32>
  } else {
    scf.yield %x : tensor<100000xf32>
  }
  // expected-remark @below {{missed: the branches stay: 1000000 ops would be in vain}}
  %t = scf.if %c -> tensor<100000xf32> {
    %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<100000xf32>) outs(%e : tensor<100000xf32>) {
    ^bb0(%in: f32, %out: f32):
      %v = math.tanh %in : f32
      linalg.yield %v : f32
    } -> tensor<100000xf32>
    scf.yield %a : tensor<100000xf32>
  } else {
    %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<100000xf32>) outs(%e : tensor<100000xf32>) {
    ^bb0(%in: f32, %out: f32):
      %v = arith.negf %in : f32
      linalg.yield %v : f32
    } -> tensor<100000xf32>
    scf.yield %a : tensor<100000xf32>
  }
  // expected-remark @below {{missed: the branches stay: linalg.matmul is not elementwise}}
  %u = scf.if %c -> tensor<4x4xf32> {
    %a = linalg.matmul ins(%m, %m : tensor<4x4xf32>, tensor<4x4xf32>) outs(%m : tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.yield %a : tensor<4x4xf32>
  } else {
    scf.yield %m : tensor<4x4xf32>
  }
  // expected-remark @below {{missed: the branches stay: linalg.generic has sizes that are known at run time only}}
  %v = scf.if %c -> tensor<?xf32> {
    %a = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%d : tensor<?xf32>) {
    ^bb0(%out: f32):
      %w = arith.negf %out : f32
      linalg.yield %w : f32
    } -> tensor<?xf32>
    scf.yield %a : tensor<?xf32>
  } else {
    scf.yield %d : tensor<?xf32>
  }
  return %r, %s, %t, %u, %v
    : tensor<100000xf32>, tensor<100000xf32>, tensor<100000xf32>, tensor<4x4xf32>, tensor<?xf32>
}
