// RUN: pipeline-opt %s --split-input-file --expand-vector-math | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --expand-vector-math=fma=false --canonicalize | FileCheck %s --check-prefix=PLAIN
// RUN: pipeline-opt %s --split-input-file --expand-vector-math --remarks-filter=expand-vector-math --verify-diagnostics

// CHECK-LABEL: func.func @expanded
// CHECK-SAME: (%[[X:.*]]: vector<8xf32>, %{{.*}}: vector<2x4xf32>, %{{.*}}: vector<4xf64>)
// CHECK-NOT: math.{{exp|tanh|erf|log}}
// CHECK: math.fma
// CHECK-NOT: math.{{exp|tanh|erf|log}}
// CHECK: return %{{.*}} : vector<8xf32>, vector<8xf32>, vector<2x4xf32>, vector<4xf64>, vector<4xf64>

// Must not fire: a processor without fused multiply-add.

// PLAIN-LABEL: func.func @expanded
// PLAIN-NOT: math.{{exp|tanh|erf|log|fma}}
// PLAIN: return
func.func @expanded(%x: vector<8xf32>, %y: vector<2x4xf32>, %d: vector<4xf64>)
    -> (vector<8xf32>, vector<8xf32>, vector<2x4xf32>, vector<4xf64>, vector<4xf64>) {
  %exp = math.exp %x : vector<8xf32>
  %tanh = math.tanh %exp : vector<8xf32>
  %erf = math.erf %y : vector<2x4xf32>
  %log = math.log %d : vector<4xf64>
  %exp64 = math.exp %d : vector<4xf64>
  return %exp, %tanh, %erf, %log, %exp64
    : vector<8xf32>, vector<8xf32>, vector<2x4xf32>, vector<4xf64>, vector<4xf64>
}

// -----

// A sine is computed in f64; if one angle is large, a call gives those that are.

// CHECK-LABEL: func.func @sine
// CHECK-SAME: (%[[X:.*]]: vector<2x4xf32>)
// CHECK: arith.extf %[[X]] : vector<2x4xf32> to vector<2x4xf64>
// CHECK: %[[VALUE:.*]] = arith.truncf %{{.*}} : vector<2x4xf64> to vector<2x4xf32>
// CHECK: %[[LARGE:.*]] = arith.cmpf ogt, %{{.*}}, %{{.*}} : vector<2x4xf32>
// CHECK: %[[ANY:.*]] = vector.reduction <or>, %{{.*}} : vector<8xi1> into i1
// CHECK: scf.if %[[ANY]] -> (vector<2x4xf32>)
// CHECK-NEXT: %[[CALLED:.*]] = math.sin %[[X]]
// CHECK-NEXT: arith.select %[[LARGE]], %[[CALLED]], %[[VALUE]]
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[VALUE]]
func.func @sine(%x: vector<2x4xf32>) -> vector<2x4xf32> {
  %sin = math.sin %x : vector<2x4xf32>
  return %sin : vector<2x4xf32>
}

// -----

// A sine of f64 is computed on the angle as a sum of two numbers.

// CHECK-LABEL: func.func @sine_of_doubles
// CHECK-SAME: (%[[X:.*]]: vector<4xf64>)
// CHECK: scf.if %{{.*}} -> (vector<4xf64>)
// CHECK-NEXT: math.sin %[[X]]
// CHECK-NOT: math.sin
// CHECK: %[[VALUE:.*]] = arith.select %{{.*}}, %[[X]], %{{.*}} : vector<4xi1>, vector<4xf64>
// CHECK: return %[[VALUE]]
func.func @sine_of_doubles(%x: vector<4xf64>) -> vector<4xf64> {
  %sin = math.sin %x : vector<4xf64>
  return %sin : vector<4xf64>
}

// -----

// 2 ** y needs no logarithm; x ** y does, which is where it divides.

// CHECK-LABEL: func.func @powers
// CHECK-SAME: (%[[X:.*]]: vector<4xf32>, %[[Y:.*]]: vector<4xf32>)
// CHECK-NOT: math.powf
// CHECK-NOT: arith.divf
// CHECK: arith.extf %[[X]]
// CHECK: arith.divf
// CHECK-NOT: math.powf
// CHECK: return
func.func @powers(%x: vector<4xf32>, %y: vector<4xf32>) -> (vector<4xf32>, vector<4xf32>, vector<4xf32>) {
  %two = arith.constant 2.0 : f32
  %twos = vector.broadcast %two : f32 to vector<4xf32>
  %dense = arith.constant dense<2.0> : vector<4xf32>
  %a = math.powf %twos, %y : vector<4xf32>
  %b = math.powf %dense, %y : vector<4xf32>
  %c = math.powf %x, %y : vector<4xf32>
  return %a, %b, %c : vector<4xf32>, vector<4xf32>, vector<4xf32>
}

// -----

// All of f64 but powers, of which those of two are arithmetic, too.

// CHECK-LABEL: func.func @doubles
// CHECK-NOT: math.{{exp|tanh|erf|log|a?sinh|a?cosh|atan|asin|acos|pow}}
// CHECK: return
func.func @doubles(%x: vector<4xf64>, %y: vector<4xf64>) -> vector<4xf64> {
  %two = arith.constant dense<2.0> : vector<4xf64>
  %0 = math.tanh %x : vector<4xf64>
  %1 = math.erf %0 : vector<4xf64>
  %2 = math.atan2 %1, %y : vector<4xf64>
  %3 = math.asinh %2 : vector<4xf64>
  %4 = math.log10 %3 : vector<4xf64>
  %5 = math.expm1 %4 : vector<4xf64>
  %6 = math.acos %5 : vector<4xf64>
  %7 = math.powf %two, %6 : vector<4xf64>
  return %7 : vector<4xf64>
}

// -----

// Must not fire: scalars, other element types, what has an instruction, other functions. A remark says what of vectors
// becomes calls.

// CHECK-LABEL: func.func @left_to_libm
// CHECK-SAME: (%[[X:.*]]: f32, %[[Y:.*]]: vector<4xf64>, %[[Z:.*]]: vector<4xf16>, %[[V:.*]]: vector<4xf32>)
// CHECK-NEXT: math.exp %[[X]] : f32
// CHECK-NEXT: math.powf %[[Y]], %[[Y]] : vector<4xf64>
// CHECK-NEXT: math.erf %[[Z]] : vector<4xf16>
// CHECK-NEXT: math.sqrt %[[V]] : vector<4xf32>
// CHECK-NEXT: math.rsqrt %[[V]] : vector<4xf32>
// CHECK-NEXT: math.cbrt %[[V]] : vector<4xf32>
// CHECK-NEXT: return
func.func @left_to_libm(%x: f32, %y: vector<4xf64>, %z: vector<4xf16>, %v: vector<4xf32>)
    -> (f32, vector<4xf64>, vector<4xf16>, vector<4xf32>, vector<4xf32>, vector<4xf32>) {
  %exp = math.exp %x : f32
  // expected-remark @below {{missed: math.powf on vector<4xf64> is a call for each element}}
  %pow = math.powf %y, %y : vector<4xf64>
  // expected-remark @below {{missed: math.erf on vector<4xf16> is a call for each element}}
  %erf = math.erf %z : vector<4xf16>
  %sqrt = math.sqrt %v : vector<4xf32>
  %rsqrt = math.rsqrt %v : vector<4xf32>
  // expected-remark @below {{missed: math.cbrt on vector<4xf32> is a call for each element}}
  %cbrt = math.cbrt %v : vector<4xf32>
  return %exp, %pow, %erf, %sqrt, %rsqrt, %cbrt
    : f32, vector<4xf64>, vector<4xf16>, vector<4xf32>, vector<4xf32>, vector<4xf32>
}
