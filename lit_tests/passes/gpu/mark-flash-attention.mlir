// RUN: pipeline-opt %s --split-input-file --mark-flash-attention | FileCheck %s
// RUN: pipeline-opt %s --split-input-file --mark-flash-attention --remarks-filter=mark-flash-attention -o %t 2>&1 | FileCheck %s --check-prefix=REMARK

// A product, a softmax along its columns, another product. A row's scores are not stored.

// CHECK-LABEL: func.func @attention
// CHECK-SAME: pipeline.streamed
// REMARK: passed: blocks of 32 queries go over 40 keys, 32 at a time
func.func @attention(%q: tensor<20x16xf32>, %k: tensor<16x40xf32>, %v: tensor<40x24xf32>, %out: tensor<20x24xf32>) -> tensor<20x24xf32>
    attributes {pipeline.kernel = "attention"} {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<20x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<20x40xf32>) -> tensor<20x40xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<20x16xf32>, tensor<16x40xf32>) outs(%f : tensor<20x40xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<20x40xf32>
  %e1 = tensor.empty() : tensor<20xf32>
  %f1 = linalg.fill ins(%least : f32) outs(%e1 : tensor<20xf32>) -> tensor<20xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<20x40xf32>) outs(%f1 : tensor<20xf32>) {
  ^bb0(%x: f32, %o: f32):
    %r = arith.maximumf %x, %o : f32
    linalg.yield %r : f32
  } -> tensor<20xf32>
  %w = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]} ins(%s, %m : tensor<20x40xf32>, tensor<20xf32>) outs(%e : tensor<20x40xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %d = arith.subf %x, %y : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<20x40xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<20xf32>) -> tensor<20xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%w : tensor<20x40xf32>) outs(%f2 : tensor<20xf32>) {
  ^bb0(%x: f32, %o: f32):
    %r = arith.addf %x, %o : f32
    linalg.yield %r : f32
  } -> tensor<20xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]} ins(%w, %t : tensor<20x40xf32>, tensor<20xf32>) outs(%e : tensor<20x40xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %r = arith.divf %x, %y : f32
    linalg.yield %r : f32
  } -> tensor<20x40xf32>
  %f3 = linalg.fill ins(%zero : f32) outs(%out : tensor<20x24xf32>) -> tensor<20x24xf32>
  %result = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%n, %v : tensor<20x40xf32>, tensor<40x24xf32>) outs(%f3 : tensor<20x24xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<20x24xf32>
  return %result : tensor<20x24xf32>
}

// -----

// Must not fire: the exponentials are relative to something else than the greatest score.

// CHECK-LABEL: func.func @other
// CHECK-NOT: pipeline.streamed
// REMARK: missed: its scores are stored: no exp of scores
func.func @other(%q: tensor<20x16xf32>, %k: tensor<16x40xf32>, %v: tensor<40x24xf32>, %out: tensor<20x24xf32>) -> tensor<20x24xf32>
    attributes {pipeline.kernel = "attention"} {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<20x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<20x40xf32>) -> tensor<20x40xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<20x16xf32>, tensor<16x40xf32>) outs(%f : tensor<20x40xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<20x40xf32>
  %e1 = tensor.empty() : tensor<20xf32>
  %f1 = linalg.fill ins(%least : f32) outs(%e1 : tensor<20xf32>) -> tensor<20xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<20x40xf32>) outs(%f1 : tensor<20xf32>) {
  ^bb0(%x: f32, %o: f32):
    %r = arith.maximumf %x, %o : f32
    linalg.yield %r : f32
  } -> tensor<20xf32>
  %w = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]} ins(%s, %m : tensor<20x40xf32>, tensor<20xf32>) outs(%e : tensor<20x40xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %h = arith.addf %x, %x : f32
    %d = arith.subf %h, %y : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<20x40xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<20xf32>) -> tensor<20xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%w : tensor<20x40xf32>) outs(%f2 : tensor<20xf32>) {
  ^bb0(%x: f32, %o: f32):
    %r = arith.addf %x, %o : f32
    linalg.yield %r : f32
  } -> tensor<20xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]} ins(%w, %t : tensor<20x40xf32>, tensor<20xf32>) outs(%e : tensor<20x40xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %r = arith.divf %x, %y : f32
    linalg.yield %r : f32
  } -> tensor<20x40xf32>
  %f3 = linalg.fill ins(%zero : f32) outs(%out : tensor<20x24xf32>) -> tensor<20x24xf32>
  %result = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%n, %v : tensor<20x40xf32>, tensor<40x24xf32>) outs(%f3 : tensor<20x24xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  } -> tensor<20x24xf32>
  return %result : tensor<20x24xf32>
}

// -----

// Must not fire: another kind of kernel. There is nothing to say about it.

// CHECK-LABEL: func.func @softmax
// CHECK-NOT: pipeline.streamed
// REMARK-NOT: stored
func.func @softmax(%x: tensor<4xf32>) -> tensor<4xf32> attributes {pipeline.kernel = "softmax"} {
  return %x : tensor<4xf32>
}
