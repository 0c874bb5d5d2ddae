// RUN: pipeline-opt %s --split-input-file --outline-kernels | FileCheck %s

// Equal groups are one function; the tensor that the result is computed into is its last argument, made by the caller.

// CHECK: func.func private @fused_fill_matmul
// CHECK-SAME: (%[[L:.*]]: tensor<4x4xf32>, %[[R:.*]]: tensor<4x4xf32>, %[[OUT:.*]]: tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK-SAME: attributes {pipeline.kernel = "matmul", pipeline.ops = ["linalg.fill", "linalg.matmul"], pipeline.words = ["matmul"]}
// CHECK: %[[FILL:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[OUT]] : tensor<4x4xf32>)
// CHECK-NEXT: %[[P:.*]] = linalg.matmul ins(%[[L]], %[[R]] : {{.*}}) outs(%[[FILL]] : tensor<4x4xf32>)
// CHECK-NEXT: return %[[P]]
// CHECK-NOT: func.func private
// CHECK-LABEL: func.func @equal_groups
// CHECK-SAME: (%[[A:.*]]: tensor<4x4xf32>, %[[B:.*]]: tensor<4x4xf32>)
// CHECK-NEXT: %[[E0:.*]] = tensor.empty() : tensor<4x4xf32>
// CHECK-NEXT: %[[P0:.*]] = call @fused_fill_matmul(%[[A]], %[[B]], %[[E0]])
// CHECK-NEXT: %[[E1:.*]] = tensor.empty() : tensor<4x4xf32>
// CHECK-NEXT: %[[P1:.*]] = call @fused_fill_matmul(%[[P0]], %[[B]], %[[E1]])
// CHECK-NEXT: return %[[P1]]
func.func @equal_groups(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "fusion.group"(%a, %b) ({
  ^bb0(%l: tensor<4x4xf32>, %r: tensor<4x4xf32>):
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<4x4xf32>
    %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
    %p = linalg.matmul ins(%l, %r : tensor<4x4xf32>, tensor<4x4xf32>) outs(%fill : tensor<4x4xf32>) -> tensor<4x4xf32>
    "fusion.yield"(%p) : (tensor<4x4xf32>) -> ()
  }) {kind = "matmul", label = "fused_fill_matmul"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "fusion.group"(%0, %b) ({
  ^bb0(%l: tensor<4x4xf32>, %r: tensor<4x4xf32>):
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<4x4xf32>
    %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
    %p = linalg.matmul ins(%l, %r : tensor<4x4xf32>, tensor<4x4xf32>) outs(%fill : tensor<4x4xf32>) -> tensor<4x4xf32>
    "fusion.yield"(%p) : (tensor<4x4xf32>) -> ()
  }) {kind = "matmul", label = "fused_fill_matmul"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// -----

// Groups that differ get names of their own: not that of a function that is there already, nor a bare word, which may
// be a C function's name.

// CHECK-DAG: func.func private @exp_1(%{{.*}}: tensor<4xf32>
// CHECK-DAG: func.func private @exp_2(%{{.*}}: tensor<8xf32>
// CHECK-DAG: func.func private @exp_0(tensor<4xf32>)
// CHECK: func.func @names
// CHECK: call @exp_1
// CHECK: call @exp_2
func.func private @exp_0(tensor<4xf32>)
func.func @names(%a: tensor<4xf32>, %b: tensor<8xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
  %0 = "fusion.group"(%a) ({
  ^bb0(%x: tensor<4xf32>):
    %empty = tensor.empty() : tensor<4xf32>
    %exp = linalg.exp ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
    "fusion.yield"(%exp) : (tensor<4xf32>) -> ()
  }) {kind = "elementwise", label = "exp"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "fusion.group"(%b) ({
  ^bb0(%x: tensor<8xf32>):
    %empty = tensor.empty() : tensor<8xf32>
    %exp = linalg.exp ins(%x : tensor<8xf32>) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
    "fusion.yield"(%exp) : (tensor<8xf32>) -> ()
  }) {kind = "elementwise", label = "exp"} : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<4xf32>, tensor<8xf32>
}

// -----

// An operand that only sizes the destination stays with the caller.

// CHECK: func.func private @fill_0(%{{.*}}: f32, %{{.*}}: tensor<?xf32>) -> tensor<?xf32>
// CHECK-LABEL: func.func @sizes
// CHECK-SAME: (%[[X:.*]]: f32, %[[N:.*]]: index)
// CHECK-NEXT: %[[EMPTY:.*]] = tensor.empty(%[[N]])
// CHECK-NEXT: call @fill_0(%[[X]], %[[EMPTY]])
func.func @sizes(%x: f32, %n: index) -> tensor<?xf32> {
  %0 = "fusion.group"(%x, %n) ({
  ^bb0(%y: f32, %m: index):
    %empty = tensor.empty(%m) : tensor<?xf32>
    %fill = linalg.fill ins(%y : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
    "fusion.yield"(%fill) : (tensor<?xf32>) -> ()
  }) {kind = "elementwise", label = "fill"} : (f32, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Must not make a destination: the result updates an operand, and the empty tensor is no result's.

// CHECK: func.func private @update_0(%[[A:.*]]: tensor<4xf32>, %[[T:.*]]: tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[SCRATCH:.*]] = tensor.empty()
// CHECK-NEXT: %[[EXP:.*]] = linalg.exp ins(%[[A]] : {{.*}}) outs(%[[SCRATCH]] :
// CHECK-NEXT: linalg.add ins(%[[EXP]], %[[A]] : {{.*}}) outs(%[[T]] :
// CHECK-LABEL: func.func @updates
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>)
// CHECK-NEXT: call @update_0(%[[X]], %[[Y]])
func.func @updates(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "fusion.group"(%x, %y) ({
  ^bb0(%a: tensor<4xf32>, %t: tensor<4xf32>):
    %scratch = tensor.empty() : tensor<4xf32>
    %exp = linalg.exp ins(%a : tensor<4xf32>) outs(%scratch : tensor<4xf32>) -> tensor<4xf32>
    %sum = linalg.add ins(%exp, %a : tensor<4xf32>, tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
    "fusion.yield"(%sum) : (tensor<4xf32>) -> ()
  }) {kind = "elementwise", label = "update"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A group that becomes a call takes its marks along, and a tensor of its own for each result, though one empty tensor was
// left for both. The call knows where its ops come from. The size of what stays inside is marked: it is not passed on.

// CHECK-LABEL: func.func private @mine_0
// CHECK-SAME: (%{{.*}}: tensor<4xf32>, %{{.*}}: index, %{{.*}}: tensor<4xf32>, %{{.*}}: tensor<4xf32>)
// CHECK-SAME: pipeline.calls = ["f", "lib.so"], pipeline.custom
// CHECK-SAME: pipeline.outputs = 2 : i64, pipeline.sizes = [1]
// CHECK: func.func @called
// CHECK: %[[A:.*]] = tensor.empty() : tensor<4xf32>
// CHECK-NEXT: %[[B:.*]] = tensor.empty() : tensor<4xf32>
// CHECK-NEXT: call @mine_0(%{{.*}}, %{{.*}}, %[[A]], %[[B]]) {pipeline.origins =
// CHECK-SAME: ["relu", "net.py:3"]
func.func @called(%x: tensor<4xf32>, %n: index) -> (tensor<4xf32>, tensor<4xf32>) {
  %g:2 = "fusion.group"(%x, %n) ({
  ^bb0(%a: tensor<4xf32>, %m: index):
    %empty = tensor.empty() : tensor<4xf32>
    %inner = tensor.empty(%m) : tensor<?xf32>
    %e = linalg.exp ins(%a : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32> loc("relu_1"("net.py":3:0))
    %s = linalg.sqrt ins(%inner : tensor<?xf32>) outs(%inner : tensor<?xf32>) -> tensor<?xf32>
    %l = linalg.log ins(%e : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
    "fusion.yield"(%e, %l) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) {kind = "elementwise", label = "mine", pipeline.calls = ["f", "lib.so"], pipeline.custom} : (tensor<4xf32>, index) -> (tensor<4xf32>, tensor<4xf32>)
  return %g#0, %g#1 : tensor<4xf32>, tensor<4xf32>
}
