// RUN: pipeline-opt %s --split-input-file --fuse-into="ops=exp,mul label=mine" | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --fuse-into="ops=exp,mul label=mine" --remarks-filter=fuse-into --verify-diagnostics
// RUN: pipeline-opt %s --split-input-file --fuse-into="ops=exp,mul label=mine function=f library=lib.so" | FileCheck %s --check-prefix=CALL
// RUN: pipeline-opt %s --split-input-file --fuse-into="label=mine steps=exp,mul|add function=f library=lib.so" | FileCheck %s --check-prefix=CHAIN
// RUN: not pipeline-opt %s --fuse-into="ops=exp function=f" 2>&1 | FileCheck %s --check-prefix=HALF
// RUN: not pipeline-opt %s --fuse-into="steps=exp" 2>&1 | FileCheck %s --check-prefix=STEPS
// RUN: not pipeline-opt %s --fuse-into="fusion=@7" 2>&1 | FileCheck %s --check-prefix=LENT

// HALF: fuse-into: function and library belong together
// STEPS: fuse-into: steps need a function and a library
// LENT: fuse-into: no fusion '@7' is lent

// A chain through a reshape, which a reader outside keeps too. A function that is called writes to tensors of its own:
// what the exp would update is copied first.

// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[X:.*]]: tensor<6xf32>, %[[Y:.*]]: tensor<2x3xf32>)
// CHECK: %[[G:.*]] = "fusion.group"(%[[X]], %[[Y]]) ({
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<6xf32>, %[[B:.*]]: tensor<2x3xf32>):
// CHECK-NEXT: %[[E:.*]] = linalg.exp ins(%[[A]] :
// CHECK-NEXT: %[[S:.*]] = tensor.expand_shape %[[E]]
// CHECK-NEXT: %[[M:.*]] = linalg.mul ins(%[[S]], %[[B]] :
// CHECK-NEXT: "fusion.yield"(%[[E]], %[[M]])
// CHECK-NEXT: }) {kind = "elementwise", label = "mine", pipeline.custom}
// CHECK: tensor.expand_shape
// CHECK: linalg.log

// CALL-LABEL: func.func @chain
// CALL: "fusion.group"
// CALL: linalg.copy
// CALL: linalg.exp
// CALL: linalg.copy
// CALL: linalg.mul
// CALL: pipeline.calls = ["f", "lib.so"]

// CHAIN-LABEL: func.func @chain
// CHAIN-NOT: fusion.group
func.func @chain(%x: tensor<6xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %e = linalg.exp ins(%x : tensor<6xf32>) outs(%x : tensor<6xf32>) -> tensor<6xf32>
  %s = tensor.expand_shape %e [[0, 1]] output_shape [2, 3] : tensor<6xf32> into tensor<2x3xf32>
  // expected-remark @below {{passed: 3 ops in a group mine}}
  %m = linalg.mul ins(%s, %y : tensor<2x3xf32>, tensor<2x3xf32>) outs(%y : tensor<2x3xf32>) -> tensor<2x3xf32>
  %l = linalg.log ins(%s : tensor<2x3xf32>) outs(%y : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %m, %l : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// In a loop: what it captures and what it carries are operands. The steps of a chain carry the numbers of their choices.

// CHECK-LABEL: func.func @loop
// CHECK-SAME: %[[Y:[^:]*]]: tensor<6xf32>, %[[N:[^:]*]]: index
// CHECK: scf.for {{.*}} iter_args(%[[T:.*]] = %{{.*}})
// CHECK-NEXT: "fusion.group"(%[[T]], %[[Y]])
// CHECK: label = "mine"

// CHAIN-LABEL: func.func @loop
// CHAIN: scf.for
// CHAIN: "fusion.group"
// CHAIN: pipeline.calls = ["f", "lib.so", 0, 0]
func.func @loop(%x: tensor<6xf32>, %y: tensor<6xf32>, %n: index) -> tensor<6xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %empty = tensor.empty() : tensor<6xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> tensor<6xf32> {
    %e = linalg.exp ins(%t : tensor<6xf32>) outs(%empty : tensor<6xf32>) -> tensor<6xf32>
    // expected-remark @below {{passed: 2 ops in a group mine}}
    %m = linalg.mul ins(%e, %y : tensor<6xf32>, tensor<6xf32>) outs(%empty : tensor<6xf32>) -> tensor<6xf32>
    scf.yield %m : tensor<6xf32>
  }
  return %r : tensor<6xf32>
}

// -----

// Must not fire: an op outside stands between the two, a barrier, a mark, another target; so each is a group by itself.

// CHECK-LABEL: func.func @apart
// CHECK-COUNT-7: label = "mine"
func.func @apart(%x: tensor<6xf32>, %o: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
  // expected-remark @below {{passed: 1 ops}}
  %e = linalg.exp ins(%x : tensor<6xf32>) outs(%o : tensor<6xf32>) -> tensor<6xf32>
  %t = linalg.tanh ins(%e : tensor<6xf32>) outs(%o : tensor<6xf32>) -> tensor<6xf32>
  // expected-remark @below {{passed: 1 ops}}
  // expected-remark @below {{missed: is not in a group with its producer, linalg.exp: an op outside of the group stands between them [fuse-into, linalg.mul, cycle; exp at}}
  %m = linalg.mul ins(%e, %t : tensor<6xf32>, tensor<6xf32>) outs(%o : tensor<6xf32>) -> tensor<6xf32>
  %b = "fusion.barrier"(%x) : (tensor<6xf32>) -> tensor<6xf32>
  // expected-remark @below {{passed: 1 ops}}
  %1 = linalg.exp {pipeline.stop_fusion} ins(%b : tensor<6xf32>) outs(%o : tensor<6xf32>) -> tensor<6xf32>
  // expected-remark @below {{passed: 1 ops}}
  // expected-remark @below {{missed: is not in a group with its producer, linalg.exp: fusion stops between the two [fuse-into, linalg.exp, barrier}}
  %2 = linalg.exp ins(%1 : tensor<6xf32>) outs(%o : tensor<6xf32>) -> tensor<6xf32>
  %c = "fusion.barrier"(%2) : (tensor<6xf32>) -> tensor<6xf32>
  // expected-remark @below {{passed: 1 ops}}
  %3 = linalg.exp ins(%c : tensor<6xf32>) outs(%o : tensor<6xf32>) -> tensor<6xf32>
  // expected-remark @below {{passed: 1 ops}}
  %4 = linalg.exp {pipeline.target = "npu"} ins(%x : tensor<6xf32>) outs(%o : tensor<6xf32>) -> tensor<6xf32>
  // expected-remark @below {{passed: 1 ops}}
  // expected-remark @below {{missed: is not in a group with its producer, linalg.exp: they are for different targets [fuse-into, linalg.exp, other-target}}
  %5 = linalg.exp ins(%4 : tensor<6xf32>) outs(%o : tensor<6xf32>) -> tensor<6xf32>
  return %m, %3, %2, %5 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}

// -----

// Must not fire: nothing is called exp or mul; what is in a group already stays there.

// CHECK-LABEL: func.func @nothing
// CHECK-NOT: label = "mine"
func.func @nothing(%x: tensor<6xf32>) -> tensor<6xf32> {
  %t = linalg.tanh ins(%x : tensor<6xf32>) outs(%x : tensor<6xf32>) -> tensor<6xf32>
  %g = "fusion.group"(%t) ({
  ^bb0(%b: tensor<6xf32>):
    %e = linalg.exp ins(%b : tensor<6xf32>) outs(%b : tensor<6xf32>) -> tensor<6xf32>
    "fusion.yield"(%e) : (tensor<6xf32>) -> ()
  }) {kind = "elementwise", label = "other"} : (tensor<6xf32>) -> tensor<6xf32>
  return %g : tensor<6xf32>
}
