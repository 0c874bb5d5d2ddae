// RUN: pipeline-opt %s --pack-weights="columns=4 int8-dots=mixed" | FileCheck %s
// RUN: pipeline-opt %s --pack-weights="columns=4 int8-dots=none" | FileCheck %s --check-prefix=NONE

// A convolution of bytes reads its weight in quads, however small it is: each element is read for many places.

#x = affine_map<(n, h, w, f, r, s, c) -> (n, h + r, w + s, c)>
#t = affine_map<(n, h, w, f, r, s, c) -> (r, s, c, f)>
#y = affine_map<(n, h, w, f, r, s, c) -> (n, h, w, f)>

// CHECK: func.func private @conv(%{{.*}}: tensor<1x6x6x4xi8>, %{{.*}}: tensor<2x3x3x1x16xi8>
// NONE: func.func private @conv(%{{.*}}: tensor<1x6x6x4xi8>, %{{.*}}: tensor<3x3x4x8xi8>
func.func private @conv(%x: tensor<1x6x6x4xi8>, %t: tensor<3x3x4x8xi8>, %y: tensor<1x4x4x8xi32>) -> tensor<1x4x4x8xi32> attributes {pipeline.kernel = "conv"} {
  %r = linalg.generic {indexing_maps = [#x, #t, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %t : tensor<1x6x6x4xi8>, tensor<3x3x4x8xi8>) outs(%y : tensor<1x4x4x8xi32>) {
  ^bb0(%a: i8, %b: i8, %o: i32):
    %l = arith.extui %a : i8 to i32
    %m = arith.extsi %b : i8 to i32
    %p = arith.muli %l, %m : i32
    %s = arith.addi %o, %p : i32
    linalg.yield %s : i32
  } -> tensor<1x4x4x8xi32>
  return %r : tensor<1x4x4x8xi32>
}

func.func @main(%x: tensor<1x6x6x4xi8> {pipeline.argument = 0 : i64}, %t: tensor<3x3x4x8xi8> {pipeline.weight = "t"}) -> tensor<1x4x4x8xi32> {
  %e = tensor.empty() : tensor<1x4x4x8xi32>
  %r = call @conv(%x, %t, %e) : (tensor<1x6x6x4xi8>, tensor<3x3x4x8xi8>, tensor<1x4x4x8xi32>) -> tensor<1x4x4x8xi32>
  return %r : tensor<1x4x4x8xi32>
}
