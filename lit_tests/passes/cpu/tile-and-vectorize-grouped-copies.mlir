// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize --canonicalize --cse | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --tile-and-vectorize --remarks-filter=tile-and-vectorize --verify-diagnostics

// Two lines become pairs.

#in = affine_map<(p, r, c, s) -> (r, s, p, c)>
#id = affine_map<(p, r, c, s) -> (p, r, c, s)>

// CHECK-LABEL: func.func @pairs
// CHECK-SAME: (%{{.*}}: memref<8x2x3x32xbf16>, %[[OUT:.*]]: memref<3x8x32x2xbf16>)
// CHECK: scf.for %[[P:.*]] = %c0 to %c3
// CHECK: scf.for %[[R:.*]] = %c0 to %c8
// CHECK: %[[FIRST:.*]] = vector.load %{{.*}}[%[[R]], %c0, %[[P]], %{{.*}}] : memref<8x2x3x32xi16>, vector<32xi16>
// CHECK: %[[SECOND:.*]] = vector.load %{{.*}}[%[[R]], %c1, %[[P]], %{{.*}}] : memref<8x2x3x32xi16>, vector<32xi16>
// CHECK: %[[BOTH:.*]] = vector.interleave %[[FIRST]], %[[SECOND]]
// CHECK: vector.store %[[BOTH]], %{{.*}} : memref<3x8x64xi16>, vector<64xi16>
func.func @pairs(%x: memref<8x2x3x32xbf16>, %out: memref<3x8x32x2xbf16>) {
  // expected-remark @below {{passed: interleaves lines of 32 elements, 2 of which are a group}}
  linalg.generic {indexing_maps = [#in, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : memref<8x2x3x32xbf16>) outs(%out : memref<3x8x32x2xbf16>) {
  ^bb0(%i: bf16, %o: bf16):
    linalg.yield %i : bf16
  }
  return
}

// -----

// Four lines of bytes become quads: the first and the third are interleaved, the others, and both.

#in = affine_map<(r, c, s) -> (r, s, c)>
#id = affine_map<(r, c, s) -> (r, c, s)>

// CHECK-LABEL: func.func @quads
// CHECK-COUNT-4: vector.load %{{.*}} : memref<5x4x16xi8>, vector<16xi8>
// CHECK-COUNT-3: vector.interleave
// CHECK: vector.store %{{.*}} : memref<5x64xi8>, vector<64xi8>
func.func @quads(%x: memref<5x4x16xi8>, %out: memref<5x16x4xi8>) {
  // expected-remark @below {{passed: interleaves lines of 16 elements, 4 of which are a group}}
  linalg.generic {indexing_maps = [#in, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : memref<5x4x16xi8>) outs(%out : memref<5x16x4xi8>) {
  ^bb0(%i: i8, %o: i8):
    linalg.yield %i : i8
  }
  return
}

// -----

// Pairs that lie together are words, squares of which are transposed.

#in = affine_map<(r, c, s) -> (c, r, s)>
#id = affine_map<(r, c, s) -> (r, c, s)>

// CHECK-LABEL: func.func @words
// CHECK: scf.for %{{.*}} = %c0 to %c32 step %c16
// CHECK: scf.for %{{.*}} = %c0 to %c48 step %c16
// CHECK: vector.load %{{.*}} : memref<48x32x2xi16>, vector<32xi16>
// CHECK: vector.bitcast %{{.*}} : vector<32xi16> to vector<16xi32>
// CHECK: vector.shuffle
// CHECK: vector.store %{{.*}} : memref<32x96xi16>, vector<32xi16>
func.func @words(%x: memref<48x32x2xbf16>, %out: memref<32x48x2xbf16>) {
  // expected-remark @below {{passed: transposes squares of 16 elements, 2 of which are a group}}
  linalg.generic {indexing_maps = [#in, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : memref<48x32x2xbf16>) outs(%out : memref<32x48x2xbf16>) {
  ^bb0(%i: bf16, %o: bf16):
    linalg.yield %i : bf16
  }
  return
}

// -----

// Must not: pairs of f32, pairs of which are not enough for a square, and what is computed.

#in = affine_map<(r, c, s) -> (r, s, c)>
#turned = affine_map<(r, c, s) -> (c, r, s)>
#id = affine_map<(r, c, s) -> (r, c, s)>

// CHECK-LABEL: func.func @others
// CHECK-NOT: vector.interleave
// CHECK-NOT: vector.bitcast
func.func @others(%x: memref<5x2x16xf32>, %out: memref<5x16x2xf32>, %y: memref<48x8x2xbf16>, %few: memref<8x48x2xbf16>,
    %z: memref<5x2x16xi16>, %sums: memref<5x16x2xi16>) {
  // expected-remark @below {{passed: tiles of}}
  linalg.generic {indexing_maps = [#in, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : memref<5x2x16xf32>) outs(%out : memref<5x16x2xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  }
  // expected-remark @below {{passed: tiles of}}
  linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y : memref<48x8x2xbf16>) outs(%few : memref<8x48x2xbf16>) {
  ^bb0(%i: bf16, %o: bf16):
    linalg.yield %i : bf16
  }
  // expected-remark @below {{passed: tiles of}}
  linalg.generic {indexing_maps = [#in, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%z : memref<5x2x16xi16>) outs(%sums : memref<5x16x2xi16>) {
  ^bb0(%i: i16, %o: i16):
    %s = arith.addi %i, %i : i16
    linalg.yield %s : i16
  }
  return
}
