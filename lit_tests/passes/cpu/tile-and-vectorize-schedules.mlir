// RUN: pipeline-opt %s --split-input-file --pack-weights="columns=4 least-bytes=64" | FileCheck %s --check-prefix=PACK
// RUN: pipeline-opt %s --split-input-file --tile-groups="scratch=64" --tile-and-vectorize="vector-bytes=16 registers=16" --remarks-filter="tile-and-vectorize|tile-groups" -o /dev/null 2>&1 | FileCheck %s

// What a kernel's schedule says counts, not what the passes would choose.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// PACK: func.func private @product(%{{.*}}: tensor<5x6xf32>, %{{.*}}: tensor<2x6x8xf32>
func.func private @product(%x: tensor<5x6xf32>, %w: tensor<6x16xf32>, %out: tensor<5x16xf32>) -> tensor<5x16xf32> attributes {pipeline.kernel = "matmul", pipeline.schedule = {columns = 8 : i64}} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%out : tensor<5x16xf32>) -> tensor<5x16xf32>
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<5x6xf32>, tensor<6x16xf32>) outs(%f : tensor<5x16xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x16xf32>
  return %p : tensor<5x16xf32>
}

func.func @main(%x: tensor<5x6xf32> {pipeline.argument = 0 : i64}, %w: tensor<6x16xf32> {pipeline.weight = "w"}) -> tensor<5x16xf32> {
  %e = tensor.empty() : tensor<5x16xf32>
  %r = func.call @product(%x, %w, %e) : (tensor<5x6xf32>, tensor<6x16xf32>, tensor<5x16xf32>) -> tensor<5x16xf32>
  return %r : tensor<5x16xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Rows and vectors, as far as the loops are long enough.

// CHECK: tiles of 3 x 1 vectors of 4
func.func @chosen(%x: memref<9x7xf32>, %w: memref<7x8xf32>, %out: memref<9x8xf32>) attributes {pipeline.kernel = "matmul", pipeline.schedule = {rows = 3 : i64, vectors = 1 : i64}} {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<9x7xf32>, memref<7x8xf32>) outs(%out : memref<9x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }
  return
}

// CHECK: tiles of 2 x 2 vectors of 4
func.func @larger_than_the_loops(%x: memref<2x7xf32>, %w: memref<7x8xf32>, %out: memref<2x8xf32>) attributes {pipeline.kernel = "matmul", pipeline.schedule = {rows = 30 : i64, vectors = 5 : i64}} {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<2x7xf32>, memref<7x8xf32>) outs(%out : memref<2x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }
  return
}

// What has no sum keeps its tile.

// CHECK: tiles of 1 x 1 vectors of 4
func.func @elementwise(%x: memref<8x8xf32>, %out: memref<8x8xf32>) attributes {pipeline.kernel = "elementwise", pipeline.schedule = {rows = 3 : i64, vectors = 2 : i64}} {
  linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x8xf32>) outs(%out : memref<8x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.negf %i : f32
    linalg.yield %m : f32
  }
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A row of 7 takes 32 bytes with its sum: 4 rows fit into 128 bytes, 2 would into the pass's 64.

// CHECK: tiles of 4 of the loops that its ops have in common
func.func @rows(%x: tensor<8x7xf32>, %out: tensor<8x7xf32>) -> tensor<8x7xf32> attributes {pipeline.kernel = "reduction", pipeline.schedule = {scratch = 128 : i64}} {
  %zero = arith.constant 0.0 : f32
  %full = tensor.empty() : tensor<8x7xf32>
  %line = tensor.empty() : tensor<8xf32>
  %exp = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x7xf32>) outs(%full : tensor<8x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  } -> tensor<8x7xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%line : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%exp : tensor<8x7xf32>) outs(%fill : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%exp, %sum : tensor<8x7xf32>, tensor<8xf32>) outs(%out : tensor<8x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.divf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<8x7xf32>
  return %r : tensor<8x7xf32>
}
