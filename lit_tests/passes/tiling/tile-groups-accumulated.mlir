// RUN: pipeline-opt %s --split-input-file --tile-groups="scratch=512" --canonicalize | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --tile-groups="scratch=512" --remarks-filter=tile-groups --verify-diagnostics

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

// What is summed is a result, too: rows are gone through tile by tile, a tile's sums are added to those before.
// CHECK-LABEL: func.func @column_sums
// CHECK: %[[NOTHING:.*]] = arith.constant -0.0
// CHECK: scf.for %{{.*}} step %{{.*}} -> (tensor<64x80xf32>, tensor<80xf32>)
// CHECK:   %[[START:.*]] = linalg.fill
// CHECK:   scf.for %{{.*}} -> (tensor<64x80xf32>, tensor<80xf32>)
// CHECK:     %[[TILE:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<32x16xf32>)
// CHECK:     %[[SCRATCH:.*]] = linalg.fill ins(%[[NOTHING]] : f32)
// CHECK:     %[[PART:.*]] = linalg.generic {{.*}}"reduction", "parallel"]} ins(%[[TILE]] : {{.*}}) outs(%[[SCRATCH]]
// CHECK:     linalg.generic {{.*}}["parallel"]} ins(%[[PART]] : tensor<16xf32>)
// CHECK:   }
// CHECK: } {pipeline.parallel = "tiles"}
// expected-remark @below {{passed: tiles of 16 x 32 of the loops that its ops have in common}}
func.func @column_sums(%x: tensor<64x80xf32>, %out: tensor<64x80xf32>, %sums: tensor<80xf32>)
    -> (tensor<64x80xf32>, tensor<80xf32>) attributes {pipeline.kernel = "reduction"} {
  %zero = arith.constant 0.0 : f32
  %exp = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x80xf32>) outs(%out : tensor<64x80xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  } -> tensor<64x80xf32>
  %init = linalg.fill ins(%zero : f32) outs(%sums : tensor<80xf32>) -> tensor<80xf32>
  %sum = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
      ins(%exp : tensor<64x80xf32>) outs(%init : tensor<80xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<80xf32>
  return %exp, %sum : tensor<64x80xf32>, tensor<80xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

// All rows fit into one tile: nothing is accumulated.
// CHECK-LABEL: func.func @few_rows
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: } {pipeline.parallel = "tiles"}
// expected-remark @below {{passed: tiles of 256 of the loops that its ops have in common}}
func.func @few_rows(%x: tensor<4x1024xf32>, %out: tensor<4x1024xf32>, %sums: tensor<1024xf32>)
    -> (tensor<4x1024xf32>, tensor<1024xf32>) attributes {pipeline.kernel = "reduction"} {
  %exp = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x1024xf32>) outs(%out : tensor<4x1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  } -> tensor<4x1024xf32>
  %sum = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
      ins(%exp : tensor<4x1024xf32>) outs(%sums : tensor<1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<1024xf32>
  return %exp, %sum : tensor<4x1024xf32>, tensor<1024xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

// Another op reads the sums, which are complete behind the last row only.
// CHECK-LABEL: func.func @sums_that_are_read
// CHECK-NOT: scf.for
// CHECK: return
// expected-remark @below {{passed: tiles of 80 of the loops that its ops have in common}}
func.func @sums_that_are_read(%x: tensor<64x80xf32>, %sums: tensor<80xf32>, %out: tensor<64x80xf32>)
    -> tensor<64x80xf32> attributes {pipeline.kernel = "reduction"} {
  %sum = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<64x80xf32>) outs(%sums : tensor<80xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<80xf32>
  %r = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<64x80xf32>, tensor<80xf32>) outs(%out : tensor<64x80xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<64x80xf32>
  return %r : tensor<64x80xf32>
}
