// RUN: pipeline-opt %s --expand-vector-math="scalef=true" | FileCheck %s
// RUN: pipeline-opt %s --expand-vector-math | FileCheck %s --check-prefix=WITHOUT

// With AVX-512 the power of two is multiplied by one instruction, in whole registers of f32 and f64.

// CHECK-LABEL: func.func @whole_registers
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.pd.512"
// CHECK-NOT: arith.shli
// CHECK: return
// WITHOUT-LABEL: func.func @whole_registers
// WITHOUT-NOT: llvm.call_intrinsic
// WITHOUT: arith.shli
func.func @whole_registers(%x: vector<16xf32>, %y: vector<8xf64>) -> (vector<16xf32>, vector<8xf64>) {
  %0 = math.exp %x : vector<16xf32>
  %1 = math.exp %y : vector<8xf64>
  return %0, %1 : vector<16xf32>, vector<8xf64>
}

// Must not fire: other vectors, and functions that need the halves of the exponent.

// CHECK-LABEL: func.func @others
// CHECK-NOT: llvm.call_intrinsic
// CHECK: return
func.func @others(%x: vector<8xf32>, %y: vector<16xf32>) -> (vector<8xf32>, vector<16xf32>) {
  %0 = math.exp %x : vector<8xf32>
  %1 = math.expm1 %y : vector<16xf32>
  return %0, %1 : vector<8xf32>, vector<16xf32>
}
