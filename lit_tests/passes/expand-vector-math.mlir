// RUN: pipeline-opt %s --expand-vector-math | FileCheck %s

// CHECK-LABEL: func.func @expanded
// CHECK-SAME: (%[[X:.*]]: vector<8xf32>, %{{.*}}: vector<2x4xf32>)
// CHECK-NOT: math.{{exp|tanh|erf}}
// CHECK: %[[NAN:.*]] = arith.cmpf uno, %[[X]], %[[X]]
// CHECK-NEXT: %[[EXP:.*]] = arith.select %[[NAN]], %[[X]], %{{.*}} : vector<8xi1>, vector<8xf32>
// CHECK-NOT: math.{{exp|tanh|erf}}
// CHECK: return %[[EXP]], %{{.*}}, %{{.*}} : vector<8xf32>, vector<8xf32>, vector<2x4xf32>
func.func @expanded(%x: vector<8xf32>, %y: vector<2x4xf32>) -> (vector<8xf32>, vector<8xf32>, vector<2x4xf32>) {
  %exp = math.exp %x : vector<8xf32>
  %tanh = math.tanh %x : vector<8xf32>
  %erf = math.erf %y : vector<2x4xf32>
  return %exp, %tanh, %erf : vector<8xf32>, vector<8xf32>, vector<2x4xf32>
}

// Must not fire: scalars, other element types, other functions.

// CHECK-LABEL: func.func @left_to_libm
// CHECK-SAME: (%[[X:.*]]: f32, %[[Y:.*]]: vector<4xf64>, %[[Z:.*]]: vector<4xf16>, %[[V:.*]]: vector<4xf32>)
// CHECK-NEXT: math.exp %[[X]] : f32
// CHECK-NEXT: math.tanh %[[Y]] : vector<4xf64>
// CHECK-NEXT: math.erf %[[Z]] : vector<4xf16>
// CHECK-NEXT: math.log %[[V]] : vector<4xf32>
// CHECK-NEXT: return
func.func @left_to_libm(%x: f32, %y: vector<4xf64>, %z: vector<4xf16>, %v: vector<4xf32>)
    -> (f32, vector<4xf64>, vector<4xf16>, vector<4xf32>) {
  %exp = math.exp %x : f32
  %tanh = math.tanh %y : vector<4xf64>
  %erf = math.erf %z : vector<4xf16>
  %log = math.log %v : vector<4xf32>
  return %exp, %tanh, %erf, %log : f32, vector<4xf64>, vector<4xf16>, vector<4xf32>
}
