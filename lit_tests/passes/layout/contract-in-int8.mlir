// RUN: pipeline-opt %s --split-input-file --contract-in-int8 --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --contract-in-int8 --remarks-filter=contract-in-int8 --verify-diagnostics
// RUN: pipeline-opt %s --split-input-file --contract-in-int8="dots=none" --canonicalize --cse | FileCheck %s --check-prefix=OLD

// Data without a sign, weights with one: their bytes are multiplied; zero point and scale are applied to the sums.

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @product
// CHECK-SAME: (%[[X:.*]]: tensor<3x64xi8>, %[[Q:.*]]: tensor<64x4xi8> {{{.*}}}, %[[S:.*]]: tensor<4xf32>
// CHECK: %[[ACC:.*]] = linalg.generic
// CHECK-SAME: ins(%[[X]], %[[Q]] : tensor<3x64xi8>, tensor<64x4xi8>) outs(%{{.*}} : tensor<3x4xi32>)
// CHECK: arith.extui
// CHECK: arith.extsi
// CHECK: %[[SUM:.*]] = linalg.generic
// CHECK-SAME: ins(%[[Q]] : tensor<64x4xi8>) outs(%{{.*}} : tensor<4xi32>)
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[ACC]], %[[SUM]], %[[S]] : tensor<3x4xi32>, tensor<4xi32>, tensor<4xf32>) outs(%{{.*}} : tensor<3x4xf32>)
// CHECK: arith.muli %{{.*}}, %c17_i32
// CHECK: arith.subi
// CHECK: arith.sitofp
// CHECK-NOT: linalg.matmul
// OLD-LABEL: func.func @product
// OLD: linalg.matmul
func.func @product(%x: tensor<3x64xi8>, %q: tensor<64x4xi8> {pipeline.weight = "q"},
    %s: tensor<4xf32> {pipeline.weight = "s"}) -> tensor<3x4xf32> {
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.5 : f32
  %point = arith.constant 17 : i32
  %xe = tensor.empty() : tensor<3x64xf32>
  %xf = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x64xi8>) outs(%xe : tensor<3x64xf32>) {
  ^bb0(%i: i8, %o: f32):
    %w = arith.extui %i : i8 to i32
    %d = arith.subi %w, %point : i32
    %f = arith.sitofp %d : i32 to f32
    %m = arith.mulf %f, %scale : f32
    linalg.yield %m : f32
  } -> tensor<3x64xf32>
  %we = tensor.empty() : tensor<64x4xf32>
  %wf = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : tensor<64x4xi8>, tensor<4xf32>) outs(%we : tensor<64x4xf32>) {
  ^bb0(%i: i8, %k: f32, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    %m = arith.mulf %f, %k : f32
    linalg.yield %m : f32
  } -> tensor<64x4xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  // expected-remark @below {{passed: adds up products of bytes}}
  %r = linalg.matmul ins(%xf, %wf : tensor<3x64xf32>, tensor<64x4xf32>) outs(%init : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

// Symbolic rows, each with a scale: it is read along the rows of the data, so that there are as many.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @symbolic_rows
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<?x64xi8>, tensor<64x4xi8>) outs(%{{.*}} : tensor<?x4xi32>)
// CHECK-NOT: linalg.matmul
// OLD-LABEL: func.func @symbolic_rows
func.func @symbolic_rows(%x: tensor<?x64xi8>, %t: tensor<?xf32>, %q: tensor<64x4xi8> {pipeline.weight = "q"},
    %s: tensor<4xf32> {pipeline.weight = "s"}) -> tensor<?x4xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x64xi8>
  %xe = tensor.empty(%rows) : tensor<?x64xf32>
  %xf = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %t : tensor<?x64xi8>, tensor<?xf32>) outs(%xe : tensor<?x64xf32>) {
  ^bb0(%i: i8, %k: f32, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    %m = arith.mulf %f, %k : f32
    linalg.yield %m : f32
  } -> tensor<?x64xf32>
  %we = tensor.empty() : tensor<64x4xf32>
  %wf = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : tensor<64x4xi8>, tensor<4xf32>) outs(%we : tensor<64x4xf32>) {
  ^bb0(%i: i8, %k: f32, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    %m = arith.mulf %f, %k : f32
    linalg.yield %m : f32
  } -> tensor<64x4xf32>
  %e = tensor.empty(%rows) : tensor<?x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  // expected-remark @below {{passed: adds up products of bytes}}
  %r = linalg.matmul ins(%xf, %wf : tensor<?x64xf32>, tensor<64x4xf32>) outs(%init : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// -----

// Must not: data with a scale for each element.

#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func.func @symbolic_elements
// CHECK: linalg.matmul
// OLD-LABEL: func.func @symbolic_elements
func.func @symbolic_elements(%x: tensor<?x64xi8>, %t: tensor<?x64xf32>, %q: tensor<64x4xi8> {pipeline.weight = "q"},
    %s: tensor<4xf32> {pipeline.weight = "s"}) -> tensor<?x4xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x64xi8>
  %xe = tensor.empty(%rows) : tensor<?x64xf32>
  %xf = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %t : tensor<?x64xi8>, tensor<?x64xf32>) outs(%xe : tensor<?x64xf32>) {
  ^bb0(%i: i8, %k: f32, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    %m = arith.mulf %f, %k : f32
    linalg.yield %m : f32
  } -> tensor<?x64xf32>
  %we = tensor.empty() : tensor<64x4xf32>
  %wf = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : tensor<64x4xi8>, tensor<4xf32>) outs(%we : tensor<64x4xf32>) {
  ^bb0(%i: i8, %k: f32, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    %m = arith.mulf %f, %k : f32
    linalg.yield %m : f32
  } -> tensor<64x4xf32>
  %e = tensor.empty(%rows) : tensor<?x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %r = linalg.matmul ins(%xf, %wf : tensor<?x64xf32>, tensor<64x4xf32>) outs(%init : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// -----

// Integers: the sums are exact in 32 bits. Both have a sign, which the data loses; 128 times the sums of the weight go.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @integers
// CHECK: arith.xori %{{.*}}, %c-128_i8
// CHECK: linalg.generic
// CHECK-SAME: outs(%{{.*}} : tensor<3x4xi32>)
// CHECK: arith.muli %{{.*}}, %c128_i32
// CHECK: arith.extsi %{{.*}} : i32 to i64
// OLD-LABEL: func.func @integers
// OLD-NOT: xori
// OLD: linalg.generic
// OLD-SAME: outs(%{{.*}} : tensor<3x4xi32>)
func.func @integers(%x: tensor<3x64xi8>, %q: tensor<64x4xi8> {pipeline.weight = "q"}) -> tensor<3x4xi64> {
  %zero = arith.constant 0 : i64
  %xe = tensor.empty() : tensor<3x64xi64>
  %xi = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x64xi8>) outs(%xe : tensor<3x64xi64>) {
  ^bb0(%i: i8, %o: i64):
    %w = arith.extsi %i : i8 to i64
    linalg.yield %w : i64
  } -> tensor<3x64xi64>
  %qe = tensor.empty() : tensor<64x4xi64>
  %qi = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<64x4xi8>) outs(%qe : tensor<64x4xi64>) {
  ^bb0(%i: i8, %o: i64):
    %w = arith.extsi %i : i8 to i64
    linalg.yield %w : i64
  } -> tensor<64x4xi64>
  %e = tensor.empty() : tensor<3x4xi64>
  %init = linalg.fill ins(%zero : i64) outs(%e : tensor<3x4xi64>) -> tensor<3x4xi64>
  // expected-remark @below {{passed: adds up products of bytes}}
  %r = linalg.matmul ins(%xi, %qi : tensor<3x64xi64>, tensor<64x4xi64>) outs(%init : tensor<3x4xi64>) -> tensor<3x4xi64>
  return %r : tensor<3x4xi64>
}

// -----

// Must not: what is added to the sums would have to be quantized; floats that were not; sums that may not fit.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @added
// CHECK: linalg.matmul
func.func @added(%x: tensor<3x64xi8>, %q: tensor<64x4xi8> {pipeline.weight = "q"}, %init: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %xe = tensor.empty() : tensor<3x64xf32>
  %xf = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x64xi8>) outs(%xe : tensor<3x64xf32>) {
  ^bb0(%i: i8, %o: f32):
    %f = arith.uitofp %i : i8 to f32
    linalg.yield %f : f32
  } -> tensor<3x64xf32>
  %we = tensor.empty() : tensor<64x4xf32>
  %wf = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<64x4xi8>) outs(%we : tensor<64x4xf32>) {
  ^bb0(%i: i8, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    linalg.yield %f : f32
  } -> tensor<64x4xf32>
  // expected-remark @below {{missed: its factors are dequantized: something is added to its sums}}
  %r = linalg.matmul ins(%xf, %wf : tensor<3x64xf32>, tensor<64x4xf32>) outs(%init : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @data_in_floats
// CHECK: linalg.matmul
func.func @data_in_floats(%x: tensor<3x64xf32>, %q: tensor<64x4xi8> {pipeline.weight = "q"}) -> tensor<3x4xf32> {
  %zero = arith.constant 0.0 : f32
  %we = tensor.empty() : tensor<64x4xf32>
  %wf = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<64x4xi8>) outs(%we : tensor<64x4xf32>) {
  ^bb0(%i: i8, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    linalg.yield %f : f32
  } -> tensor<64x4xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  %r = linalg.matmul ins(%x, %wf : tensor<3x64xf32>, tensor<64x4xf32>) outs(%init : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @too_long
// CHECK: linalg.matmul
func.func @too_long(%x: tensor<3x40000xi8>, %q: tensor<40000x4xi8> {pipeline.weight = "q"}) -> tensor<3x4xi64> {
  %zero = arith.constant 0 : i64
  %xe = tensor.empty() : tensor<3x40000xi64>
  %xi = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x40000xi8>) outs(%xe : tensor<3x40000xi64>) {
  ^bb0(%i: i8, %o: i64):
    %w = arith.extui %i : i8 to i64
    linalg.yield %w : i64
  } -> tensor<3x40000xi64>
  %qe = tensor.empty() : tensor<40000x4xi64>
  %qi = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<40000x4xi8>) outs(%qe : tensor<40000x4xi64>) {
  ^bb0(%i: i8, %o: i64):
    %w = arith.extui %i : i8 to i64
    linalg.yield %w : i64
  } -> tensor<40000x4xi64>
  %e = tensor.empty() : tensor<3x4xi64>
  %init = linalg.fill ins(%zero : i64) outs(%e : tensor<3x4xi64>) -> tensor<3x4xi64>
  // expected-remark @below {{missed: its factors are dequantized: sums of more than 33025 products of bytes may not fit into 32 bits}}
  %r = linalg.matmul ins(%xi, %qi : tensor<3x40000xi64>, tensor<40000x4xi64>) outs(%init : tensor<3x4xi64>) -> tensor<3x4xi64>
  return %r : tensor<3x4xi64>
}

// -----

// Scales of groups: the sum of a group is one of bytes, and scaled; the scale of a row is applied to the whole sum.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#group = affine_map<(d0, d1) -> (d0 floordiv 16, d1)>

// CHECK-DAG: #[[DATA:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
// CHECK-DAG: #[[WEIGHT:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d3, d1)>
// CHECK-DAG: #[[SCALE:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d1)>
// CHECK-LABEL: func.func @groups
// CHECK-SAME: %[[T:[a-z0-9]*]]: tensor<3xf32>, %{{.*}}: tensor<64x4xi8> {{{.*}}}, %[[S:.*]]: tensor<4x4xf32>
// CHECK: arith.xori %{{.*}}, %c-128_i8
// CHECK: %[[SUM:.*]] = linalg.generic {indexing_maps = [#[[DATA]], #[[WEIGHT]], #[[SCALE]],
// CHECK-SAME: iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
// CHECK-SAME: ins(%{{.*}}, %{{.*}}, %[[S]] : tensor<3x4x16xi8>, tensor<4x16x4xi8>, tensor<4x4xf32>) outs(%{{.*}} : tensor<3x4xf32>)
// CHECK: %[[X:.*]] = arith.extui %{{.*}} : i8 to i32
// CHECK: %[[LEFT:.*]] = arith.subi %[[X]], %c128_i32
// CHECK: %[[RIGHT:.*]] = arith.extsi %{{.*}} : i8 to i32
// CHECK: %[[PRODUCT:.*]] = arith.muli %[[LEFT]], %[[RIGHT]] : i32
// CHECK: %[[FLOAT:.*]] = arith.sitofp %[[PRODUCT]]
// CHECK: arith.mulf %[[FLOAT]]
// CHECK: arith.addf
// CHECK: linalg.generic {{.*}} ins(%[[SUM]], %[[T]] : tensor<3x4xf32>, tensor<3xf32>)
// OLD-LABEL: func.func @groups
// OLD: linalg.matmul
func.func @groups(%x: tensor<3x64xi8>, %t: tensor<3xf32>, %q: tensor<64x4xi8> {pipeline.weight = "q"},
    %s: tensor<4x4xf32> {pipeline.weight = "s"}) -> tensor<3x4xf32> {
  %zero = arith.constant 0.0 : f32
  %xe = tensor.empty() : tensor<3x64xf32>
  %xf = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %t : tensor<3x64xi8>, tensor<3xf32>) outs(%xe : tensor<3x64xf32>) {
  ^bb0(%i: i8, %k: f32, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    %m = arith.mulf %f, %k : f32
    linalg.yield %m : f32
  } -> tensor<3x64xf32>
  %we = tensor.empty() : tensor<64x4xf32>
  %wf = linalg.generic {indexing_maps = [#id, #group, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : tensor<64x4xi8>, tensor<4x4xf32>) outs(%we : tensor<64x4xf32>) {
  ^bb0(%i: i8, %k: f32, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    %m = arith.mulf %f, %k : f32
    linalg.yield %m : f32
  } -> tensor<64x4xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  // expected-remark @below {{passed: adds up products of bytes, each group with its scale}}
  %r = linalg.matmul ins(%xf, %wf : tensor<3x64xf32>, tensor<64x4xf32>) outs(%init : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

// Must not: groups of data and of weights that are cut at other places.

#id = affine_map<(d0, d1) -> (d0, d1)>
#across = affine_map<(d0, d1) -> (d0, d1 floordiv 8)>
#group = affine_map<(d0, d1) -> (d0 floordiv 16, d1)>

// CHECK-LABEL: func.func @other_groups
// CHECK: linalg.matmul
func.func @other_groups(%x: tensor<3x64xi8>, %t: tensor<3x8xf32>, %q: tensor<64x4xi8> {pipeline.weight = "q"},
    %s: tensor<4x4xf32> {pipeline.weight = "s"}) -> tensor<3x4xf32> {
  %zero = arith.constant 0.0 : f32
  %xe = tensor.empty() : tensor<3x64xf32>
  %xf = linalg.generic {indexing_maps = [#id, #across, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %t : tensor<3x64xi8>, tensor<3x8xf32>) outs(%xe : tensor<3x64xf32>) {
  ^bb0(%i: i8, %k: f32, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    %m = arith.mulf %f, %k : f32
    linalg.yield %m : f32
  } -> tensor<3x64xf32>
  %we = tensor.empty() : tensor<64x4xf32>
  %wf = linalg.generic {indexing_maps = [#id, #group, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %s : tensor<64x4xi8>, tensor<4x4xf32>) outs(%we : tensor<64x4xf32>) {
  ^bb0(%i: i8, %k: f32, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    %m = arith.mulf %f, %k : f32
    linalg.yield %m : f32
  } -> tensor<64x4xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  // expected-remark @below {{missed: its factors are dequantized: a sum has several scales}}
  %r = linalg.matmul ins(%xf, %wf : tensor<3x64xf32>, tensor<64x4xf32>) outs(%init : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

// Must not: zero points of groups that may not be bytes.

#id = affine_map<(d0, d1) -> (d0, d1)>
#group = affine_map<(d0, d1) -> (d0 floordiv 16, d1)>

// CHECK-LABEL: func.func @wide_zero_points
// CHECK: linalg.matmul
func.func @wide_zero_points(%x: tensor<3x64xi8>, %q: tensor<64x4xi8> {pipeline.weight = "q"},
    %z: tensor<4x4xi32> {pipeline.weight = "z"}) -> tensor<3x4xf32> {
  %zero = arith.constant 0.0 : f32
  %xe = tensor.empty() : tensor<3x64xf32>
  %xf = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<3x64xi8>) outs(%xe : tensor<3x64xf32>) {
  ^bb0(%i: i8, %o: f32):
    %f = arith.sitofp %i : i8 to f32
    linalg.yield %f : f32
  } -> tensor<3x64xf32>
  %we = tensor.empty() : tensor<64x4xf32>
  %wf = linalg.generic {indexing_maps = [#id, #group, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q, %z : tensor<64x4xi8>, tensor<4x4xi32>) outs(%we : tensor<64x4xf32>) {
  ^bb0(%i: i8, %k: i32, %o: f32):
    %w = arith.extsi %i : i8 to i32
    %d = arith.subi %w, %k : i32
    %f = arith.sitofp %d : i32 to f32
    linalg.yield %f : f32
  } -> tensor<64x4xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  // expected-remark @below {{missed: its factors are dequantized: zero points of groups may not be bytes}}
  %r = linalg.matmul ins(%xf, %wf : tensor<3x64xf32>, tensor<64x4xf32>) outs(%init : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
