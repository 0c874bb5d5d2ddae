// RUN: pipeline-opt %s --spirv-signed-types | FileCheck %s

// CHECK-LABEL: spirv.func @least
// CHECK-SAME: (%[[X:.*]]: i32, %[[Y:.*]]: i32) -> i32
// CHECK: %[[A:.*]] = spirv.Bitcast %[[X]] : i32 to si32
// CHECK: %[[B:.*]] = spirv.Bitcast %[[Y]] : i32 to si32
// CHECK: %[[M:.*]] = spirv.GL.SMin %[[A]], %[[B]] : si32
// CHECK: %[[R:.*]] = spirv.Bitcast %[[M]] : si32 to i32
// CHECK: spirv.ReturnValue %[[R]] : i32
spirv.module Logical GLSL450 {
  spirv.func @least(%x: i32, %y: i32) -> i32 "None" {
    %r = spirv.GL.SMin %x, %y : i32
    spirv.ReturnValue %r : i32
  }

  // A float that a signed integer becomes; sums, and what is unsigned, do not go by signs.

  // CHECK-LABEL: spirv.func @others
  // CHECK: %[[S:.*]] = spirv.Bitcast %{{.*}} : i32 to si32
  // CHECK: spirv.ConvertSToF %[[S]] : si32 to f32
  // CHECK: spirv.IAdd %{{.*}}, %{{.*}} : i32
  // CHECK: spirv.UDiv %{{.*}}, %{{.*}} : i32
  spirv.func @others(%x: i32, %y: i32) -> f32 "None" {
    %r = spirv.ConvertSToF %x : i32 to f32
    %a = spirv.IAdd %x, %y : i32
    %b = spirv.UDiv %a, %y : i32
    spirv.ReturnValue %r : f32
  }
}
