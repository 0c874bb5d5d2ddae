// RUN: pipeline-opt %s --spirv-infinities-to-bits | FileCheck %s

// CHECK-LABEL: spirv.func @infinities
// CHECK: %[[BITS:.*]] = spirv.Constant 2139095040 : i32
// CHECK: spirv.Bitcast %[[BITS]] : i32 to f32
// CHECK: %[[WIDE:.*]] = spirv.Constant -4503599627370496 : i64
// CHECK: spirv.Bitcast %[[WIDE]] : i64 to f64
// CHECK: spirv.Constant 1.000000e+00 : f32
// CHECK: spirv.Constant 7 : i32
spirv.module Logical GLSL450 {
  spirv.func @infinities() "None" {
    %a = spirv.Constant 0x7F800000 : f32
    %b = spirv.Constant 0xFFF0000000000000 : f64
    %c = spirv.Constant 1.0 : f32
    %d = spirv.Constant 7 : i32
    spirv.Return
  }
}
