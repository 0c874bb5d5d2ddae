// RUN: pipeline-opt %s --round-to-bf16 | FileCheck %s

// One instruction of GPUs from sm_80 on; its result is the bits, which become the number.

// CHECK-LABEL: func.func @narrow
// CHECK: %[[BITS:.*]] = llvm.inline_asm "cvt.rn.bf16.f32 $0, $1;", "=h,f" %arg0 : (f32) -> i16
// CHECK: arith.bitcast %[[BITS]] : i16 to bf16
// CHECK-NOT: arith.truncf
func.func @narrow(%x: f32) -> bf16 {
  %r = arith.truncf %x : f32 to bf16
  return %r : bf16
}

// Must not fire: other types, vectors, and the way back.

// CHECK-LABEL: func.func @others
// CHECK-NOT: inline_asm
func.func @others(%x: f32, %d: f64, %b: bf16, %v: vector<4xf32>) -> (f16, bf16, f32, vector<4xbf16>) {
  %h = arith.truncf %x : f32 to f16
  %n = arith.truncf %d : f64 to bf16
  %w = arith.extf %b : bf16 to f32
  %s = arith.truncf %v : vector<4xf32> to vector<4xbf16>
  return %h, %n, %w, %s : f16, bf16, f32, vector<4xbf16>
}
