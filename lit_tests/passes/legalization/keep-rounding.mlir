// RUN: pipeline-opt %s --keep-rounding | FileCheck %s

// CHECK-LABEL: func.func @rounded
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK-NOT: fastmath
// CHECK: return
func.func @rounded(%x: f32) -> f32 {
  %narrow = arith.truncf %x fastmath<contract> : f32 to bf16
  %wide = arith.extf %narrow fastmath<contract> : bf16 to f32
  return %wide : f32
}

// Other ops keep their licences.

// CHECK-LABEL: func.func @product
// CHECK: arith.mulf %{{.*}} fastmath<contract>
func.func @product(%x: f32) -> f32 {
  %r = arith.mulf %x, %x fastmath<contract> : f32
  return %r : f32
}
