// RUN: pipeline-opt %s --sink-slices-into-groups | FileCheck %s
// RUN: pipeline-opt %s --sink-slices-into-groups --remarks-filter=sink-slices-into-groups --verify-diagnostics

// Two slices of one tensor, one at a place that is known at run time only: the group reads the tensor.

// CHECK-LABEL: func.func @slices
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>, %[[I:.*]]: index)
// CHECK-NEXT: "fusion.group"(%[[X]], %[[I]])
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4x8xf32>, %[[J:.*]]: index):
// CHECK-NEXT: %[[P:.*]] = tensor.extract_slice %[[A]][0, 2] [4, 3] [1, 1]
// CHECK-NEXT: %[[Q:.*]] = tensor.extract_slice %[[A]][0, %[[J]]] [4, 3] [1, 1]
// CHECK: linalg.add ins(%[[P]], %[[Q]]
func.func @slices(%x: tensor<4x8xf32>, %i: index) -> tensor<4x3xf32> {
  %p = tensor.extract_slice %x[0, 2] [4, 3] [1, 1] : tensor<4x8xf32> to tensor<4x3xf32>
  %q = tensor.extract_slice %x[0, %i] [4, 3] [1, 1] : tensor<4x8xf32> to tensor<4x3xf32>
  // expected-remark @below {{passed: reads 2 slices where they lie}}
  %r = "fusion.group"(%p, %q) ({
  ^bb0(%a: tensor<4x3xf32>, %b: tensor<4x3xf32>):
    %e = tensor.empty() : tensor<4x3xf32>
    %s = linalg.add ins(%a, %b : tensor<4x3xf32>, tensor<4x3xf32>) outs(%e : tensor<4x3xf32>) -> tensor<4x3xf32>
    "fusion.yield"(%s) : (tensor<4x3xf32>) -> ()
  }) {kind = "elementwise", label = "add"} : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// A slice that something else needs, too, stays for that; a captured one goes into the branch.

// CHECK-LABEL: func.func @captured
// CHECK: %[[S:.*]] = tensor.extract_slice
// CHECK: scf.if
// CHECK-NEXT: "fusion.group"(%{{.*}})
// CHECK: tensor.extract_slice
// CHECK: linalg.exp
// CHECK: scf.yield %[[S]]
func.func @captured(%x: tensor<8xf32>, %c: i1) -> tensor<3xf32> {
  %s = tensor.extract_slice %x[2] [3] [1] : tensor<8xf32> to tensor<3xf32>
  %r = scf.if %c -> tensor<3xf32> {
    // expected-remark @below {{passed: reads 1 slices where they lie}}
    %g = "fusion.group"(%s) ({
    ^bb0(%a: tensor<3xf32>):
      %e = tensor.empty() : tensor<3xf32>
      %y = linalg.exp ins(%a : tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
      "fusion.yield"(%y) : (tensor<3xf32>) -> ()
    }) {kind = "elementwise", label = "exp"} : (tensor<3xf32>) -> tensor<3xf32>
    scf.yield %g : tensor<3xf32>
  } else {
    scf.yield %s : tensor<3xf32>
  }
  return %r : tensor<3xf32>
}

// Two halves of one tensor, one of them with its dim split: the group takes the whole tensor.

// CHECK-LABEL: func.func @halves
// CHECK-SAME: (%[[X:.*]]: tensor<4x12xf32>)
// CHECK-NEXT: %[[R:.*]] = "fusion.group"(%[[X]]) ({
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4x12xf32>):
// CHECK-NEXT: %[[FIRST:.*]] = tensor.extract_slice %[[A]][0, 0] [4, 6] [1, 1]
// CHECK-NEXT: %[[SECOND:.*]] = tensor.extract_slice %[[A]][0, 6] [4, 6] [1, 1]
// CHECK-NEXT: %[[SPLIT:.*]] = tensor.expand_shape %[[SECOND]] {{.*}} : tensor<4x6xf32> into tensor<4x2x3xf32>
// CHECK: linalg.generic {{.*}} ins(%[[FIRST]], %[[SPLIT]] :
// CHECK: return %[[R]]
func.func @halves(%x: tensor<4x12xf32>) -> tensor<4x6xf32> {
  %a = tensor.extract_slice %x[0, 0] [4, 6] [1, 1] : tensor<4x12xf32> to tensor<4x6xf32>
  %b = tensor.extract_slice %x[0, 6] [4, 6] [1, 1] : tensor<4x12xf32> to tensor<4x6xf32>
  %c = tensor.expand_shape %b [[0], [1, 2]] output_shape [4, 2, 3] : tensor<4x6xf32> into tensor<4x2x3xf32>
  // expected-remark @below {{passed: reads 2 slices where they lie}}
  %r = "fusion.group"(%a, %c) ({
  ^bb0(%l: tensor<4x6xf32>, %r: tensor<4x2x3xf32>):
    %e = tensor.empty() : tensor<4x6xf32>
    %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0, 0)>,
        affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
        ins(%l, %r : tensor<4x6xf32>, tensor<4x2x3xf32>) outs(%e : tensor<4x6xf32>) {
    ^bb0(%u: f32, %v: f32, %out: f32):
      %sum = arith.addf %u, %v : f32
      linalg.yield %sum : f32
    } -> tensor<4x6xf32>
    "fusion.yield"(%y) : (tensor<4x6xf32>) -> ()
  }) {kind = "elementwise", label = "add"} : (tensor<4x6xf32>, tensor<4x2x3xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// A slice of a size that is known at run time only, with a dim split: its size comes along.

// CHECK-LABEL: func.func @split_slice
// CHECK-SAME: (%[[X:.*]]: tensor<4x9xf32>, %[[N:.*]]: index)
// CHECK-NEXT: %[[R:.*]] = "fusion.group"(%[[X]], %[[N]]) ({
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4x9xf32>, %[[M:.*]]: index):
// CHECK-NEXT: %[[S:.*]] = tensor.extract_slice %[[A]][0, 0] [4, %[[M]]] [1, 1]
// CHECK-NEXT: %[[SPLIT:.*]] = tensor.expand_shape %[[S]] {{.*}} output_shape [2, 2, %[[M]]]
// CHECK: linalg.exp ins(%[[SPLIT]] :
// CHECK: return %[[R]]
func.func @split_slice(%x: tensor<4x9xf32>, %n: index) -> tensor<2x2x?xf32> {
  %a = tensor.extract_slice %x[0, 0] [4, %n] [1, 1] : tensor<4x9xf32> to tensor<4x?xf32>
  %b = tensor.expand_shape %a [[0, 1], [2]] output_shape [2, 2, %n] : tensor<4x?xf32> into tensor<2x2x?xf32>
  // expected-remark @below {{passed: reads 1 slices where they lie}}
  %r = "fusion.group"(%b, %n) ({
  ^bb0(%v: tensor<2x2x?xf32>, %m: index):
    %e = tensor.empty(%m) : tensor<2x2x?xf32>
    %s = linalg.exp ins(%v : tensor<2x2x?xf32>) outs(%e : tensor<2x2x?xf32>) -> tensor<2x2x?xf32>
    "fusion.yield"(%s) : (tensor<2x2x?xf32>) -> ()
  }) {kind = "elementwise", label = "exp"} : (tensor<2x2x?xf32>, index) -> tensor<2x2x?xf32>
  return %r : tensor<2x2x?xf32>
}

// Must not fire: a reshape of a whole tensor.

// CHECK-LABEL: func.func @a_reshape_alone
// CHECK: %[[B:.*]] = tensor.expand_shape
// CHECK: "fusion.group"(%[[B]])
func.func @a_reshape_alone(%y: tensor<24xf32>) -> tensor<4x6xf32> {
  %b = tensor.expand_shape %y [[0, 1]] output_shape [4, 6] : tensor<24xf32> into tensor<4x6xf32>
  %r = "fusion.group"(%b) ({
  ^bb0(%v: tensor<4x6xf32>):
    %e = tensor.empty() : tensor<4x6xf32>
    %s = linalg.exp ins(%v : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
    "fusion.yield"(%s) : (tensor<4x6xf32>) -> ()
  }) {kind = "elementwise", label = "exp"} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// Must not fire: elements that do not lie side by side; a group that calls something outside.

// CHECK-LABEL: func.func @left_alone
// CHECK: %[[P:.*]] = tensor.extract_slice %{{.*}}[0] [3] [2]
// CHECK: %[[Q:.*]] = tensor.extract_slice %{{.*}}[0] [3] [1]
// CHECK: "fusion.group"(%[[P]])
// CHECK: "fusion.group"(%[[Q]])
func.func @left_alone(%x: tensor<8xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %p = tensor.extract_slice %x[0] [3] [2] : tensor<8xf32> to tensor<3xf32>
  %q = tensor.extract_slice %x[0] [3] [1] : tensor<8xf32> to tensor<3xf32>
  %r = "fusion.group"(%p) ({
  ^bb0(%a: tensor<3xf32>):
    %e = tensor.empty() : tensor<3xf32>
    %s = linalg.exp ins(%a : tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
    "fusion.yield"(%s) : (tensor<3xf32>) -> ()
  }) {kind = "elementwise", label = "exp"} : (tensor<3xf32>) -> tensor<3xf32>
  // expected-remark @below {{missed: takes slices as copies: what it calls reads tensors that lie row by row}}
  %s = "fusion.group"(%q) ({
  ^bb0(%a: tensor<3xf32>):
    %e = tensor.empty() : tensor<3xf32>
    %s = linalg.exp ins(%a : tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
    "fusion.yield"(%s) : (tensor<3xf32>) -> ()
  }) {kind = "elementwise", label = "exp", pipeline.calls = ["f", "lib"]} : (tensor<3xf32>) -> tensor<3xf32>
  return %r, %s : tensor<3xf32>, tensor<3xf32>
}

// Must not fire: the group writes to the slice; taking it in, it would be given a copy of the whole tensor.

// CHECK-LABEL: func.func @written
// CHECK: %[[P:.*]] = tensor.extract_slice %{{.*}}[1, 0] [1, 6] [1, 1]
// CHECK: "fusion.group"(%[[P]], %{{.*}})
func.func @written(%x: tensor<4x6xf32>, %y: tensor<6xf32>) -> tensor<4x6xf32> {
  %p = tensor.extract_slice %x[1, 0] [1, 6] [1, 1] : tensor<4x6xf32> to tensor<6xf32>
  %r = "fusion.group"(%p, %y) ({
  ^bb0(%a: tensor<6xf32>, %b: tensor<6xf32>):
    %s = linalg.exp ins(%b : tensor<6xf32>) outs(%a : tensor<6xf32>) -> tensor<6xf32>
    "fusion.yield"(%s) : (tensor<6xf32>) -> ()
  }) {kind = "elementwise", label = "exp"} : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %z = tensor.insert_slice %r into %x[1, 0] [1, 6] [1, 1] : tensor<6xf32> into tensor<4x6xf32>
  return %z : tensor<4x6xf32>
}
