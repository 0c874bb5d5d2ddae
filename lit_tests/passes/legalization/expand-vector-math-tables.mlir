// RUN: pipeline-opt %s --expand-vector-math="tables=true" | FileCheck %s
// RUN: pipeline-opt %s --expand-vector-math="tables=true scalef=true" | FileCheck %s --check-prefix=BOTH
// RUN: pipeline-opt %s --expand-vector-math | FileCheck %s --check-prefix=WITHOUT

// With AVX-512 the coefficients of erf are looked up: the centre of the interval, five of the polynomial, erf of the centre.

// CHECK-LABEL: func.func @whole_registers
// CHECK: %[[SHIFTED:.*]] = arith.addf
// CHECK: %[[BITS:.*]] = arith.bitcast %[[SHIFTED]] : vector<16xf32> to vector<16xi32>
// CHECK: %[[PLACES:.*]] = arith.shrui %[[BITS]]
// CHECK-COUNT-7: llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"(%{{.*}}, %[[PLACES]])
// CHECK-NOT: llvm.call_intrinsic
// CHECK: math.copysign
// CHECK: return
// WITHOUT-LABEL: func.func @whole_registers
// WITHOUT-NOT: llvm.call_intrinsic
// WITHOUT: math.copysign
func.func @whole_registers(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.erf %x : vector<16xf32>
  return %0 : vector<16xf32>
}

// Must not fire: other vectors, and functions that have no tables.

// CHECK-LABEL: func.func @others
// CHECK-NOT: llvm.call_intrinsic
// CHECK: return
func.func @others(%x: vector<8xf32>, %y: vector<16xf32>) -> (vector<8xf32>, vector<16xf32>) {
  %0 = math.erf %x : vector<8xf32>
  %1 = math.tanh %y : vector<16xf32>
  return %0, %1 : vector<8xf32>, vector<16xf32>
}

// With both instructions, exp looks sixteenths of an exponent up, and what they were rounded by. What vanishes is set to
// zero by the mask of the last instruction. Of powers of two alone it would be a long polynomial.

// BOTH-LABEL: func.func @exponentials
// BOTH-SAME: (%[[X:.*]]: vector<16xf32>)
// BOTH: %[[COUNTS:.*]] = arith.cmpf uge, %[[X]]
// BOTH-COUNT-2: llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"
// BOTH: %[[E:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
// BOTH: %[[R:.*]] = arith.select %[[COUNTS]], %[[E]], %{{.*}}
// BOTH-NEXT: return %[[R]]
// CHECK-LABEL: func.func @exponentials
// CHECK-NOT: llvm.call_intrinsic
// CHECK: return
func.func @exponentials(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.exp %x : vector<16xf32>
  return %0 : vector<16xf32>
}

// Must not fire: other vectors.

// BOTH-LABEL: func.func @other_exponentials
// BOTH-NOT: llvm.x86.avx512.permvar
// BOTH: return
func.func @other_exponentials(%x: vector<8xf32>, %y: vector<8xf64>) -> (vector<8xf32>, vector<8xf64>) {
  %0 = math.exp %x : vector<8xf32>
  %1 = math.exp %y : vector<8xf64>
  return %0, %1 : vector<8xf32>, vector<8xf64>
}
