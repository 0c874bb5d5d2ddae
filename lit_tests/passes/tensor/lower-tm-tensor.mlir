// RUN: pipeline-opt %s --split-input-file --pass-pipeline="builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline,lower-tm-tensor)" | FileCheck %s

// A running sum: one marked loop over the lines, an inner one that carries the sum. The dialect tm_tensor is loaded by
// torch-mlir's pipeline alone, so that the op is written in torch's here.

// CHECK-LABEL: func.func @cumsum
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[R:.*]] = scf.for %[[I:.*]] = {{.*}} iter_args(%[[O:.*]] = %{{.*}}) -> (tensor<4x8xf32>)
// CHECK: %[[WIDE:.*]] = arith.extf %[[ZERO]] : f32 to f64
// CHECK: scf.for %[[J:.*]] = {{.*}} iter_args(%{{.*}} = %[[O]], %[[SUM:.*]] = %[[WIDE]])
// CHECK: %[[E:.*]] = tensor.extract %[[X]][%[[I]], %[[J]]]
// CHECK: %[[WIDER:.*]] = arith.extf %[[E]] : f32 to f64
// CHECK: %[[NEXT:.*]] = arith.addf %[[WIDER]], %[[SUM]] : f64
// CHECK: %[[NARROW:.*]] = arith.truncf %[[NEXT]] : f64 to f32
// CHECK: tensor.insert %[[NARROW]]
// CHECK: {pipeline.scan}
// CHECK: {pipeline.kernel = "scan", pipeline.lines}
// CHECK: return %[[R]]
func.func @cumsum(%x: !torch.vtensor<[4,8],f32>) -> !torch.vtensor<[4,8],f32> {
  %dim = torch.constant.int 1
  %none = torch.constant.none
  %r = torch.aten.cumsum %x, %dim, %none : !torch.vtensor<[4,8],f32>, !torch.int, !torch.none -> !torch.vtensor<[4,8],f32>
  return %r : !torch.vtensor<[4,8],f32>
}

// -----

// Of lines across rows, too, each is one of a loop.

// CHECK-LABEL: func.func @cumsum_across_rows
// CHECK-SAME: (%[[X:.*]]: tensor<4x16xf32>)
// CHECK: %[[C16:.*]] = arith.constant 16 : index
// CHECK: scf.for %[[J:[a-z0-9]*]] = %{{.*}} to %[[C16]]
// CHECK: scf.for %[[I:[a-z0-9]*]] =
// CHECK: tensor.extract %[[X]][%[[I]], %[[J]]]
// CHECK: tensor.insert %{{.*}}[%[[I]], %[[J]]]
// CHECK: {pipeline.kernel = "scan", pipeline.lines}
func.func @cumsum_across_rows(%x: !torch.vtensor<[4,16],f32>) -> !torch.vtensor<[4,16],f32> {
  %dim = torch.constant.int 0
  %none = torch.constant.none
  %r = torch.aten.cumsum %x, %dim, %none : !torch.vtensor<[4,16],f32>, !torch.int, !torch.none -> !torch.vtensor<[4,16],f32>
  return %r : !torch.vtensor<[4,16],f32>
}

// -----

// Must not fire: loops that are there stay as they are, unmarked.

// CHECK-LABEL: func.func @loop
// CHECK: scf.for
// CHECK-NOT: pipeline.kernel
// CHECK: return
func.func @loop(%n: index, %x: tensor<4xf32>, %v: f32) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> tensor<4xf32> {
    %new = tensor.insert %v into %t[%i] : tensor<4xf32>
    scf.yield %new : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// Of a sort of which only the first elements are read, just these are kept: new ones are put in their place among them.

// CHECK-LABEL: func.func @first_three
// CHECK-SAME: (%[[X:.*]]: tensor<4x90xf32>)
// CHECK: %[[BEST:.*]] = tensor.empty() : tensor<4x3xf32>
// CHECK: %[[R:.*]]:2 = scf.for %{{.*}} iter_args(%{{.*}} = %[[BEST]], %{{.*}} = %{{.*}}) -> (tensor<4x3xf32>, tensor<4x3xi64>)
// The first three fill their places; of the others 32 at a time are compared with the last one of these.
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// CHECK: %[[NEW:.*]] = tensor.extract %[[X]][%{{.*}}, %[[I]]]
// CHECK: %[[PLACE:.*]] = arith.index_cast %[[I]] : index to i64
// CHECK-NOT: scf.if
// CHECK: scf.while
// CHECK: tensor.insert %[[NEW]] into
// CHECK: tensor.insert %[[PLACE]] into
// CHECK: %[[ENTERS:.*]] = scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (i1)
// CHECK: scf.if %[[ENTERS]]
// CHECK: scf.while
// CHECK: pipeline.kernel = "sort"
// CHECK: tensor.extract_slice %[[R]]#0[0, 0] [4, 3] [1, 1] : tensor<4x3xf32>
func.func @first_three(%x: !torch.vtensor<[4,90],f32>) -> (!torch.vtensor<[4,3],f32>, !torch.vtensor<[4,2],si64>) {
  %zero = torch.constant.int 0
  %one = torch.constant.int 1
  %two = torch.constant.int 2
  %three = torch.constant.int 3
  %true = torch.constant.bool true
  %s, %p = torch.aten.sort %x, %one, %true : !torch.vtensor<[4,90],f32>, !torch.int, !torch.bool -> !torch.vtensor<[4,90],f32>, !torch.vtensor<[4,90],si64>
  %a = torch.aten.slice.Tensor %s, %one, %zero, %three, %one : !torch.vtensor<[4,90],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[4,3],f32>
  %b = torch.aten.slice.Tensor %p, %one, %zero, %two, %one : !torch.vtensor<[4,90],si64>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[4,2],si64>
  return %a, %b : !torch.vtensor<[4,3],f32>, !torch.vtensor<[4,2],si64>
}

// -----

// Must not fire: more than the first few are read. All are sorted by the four digits of their bits.

// CHECK-LABEL: func.func @all
// CHECK-NOT: scf.while
// CHECK: tensor.empty() : tensor<1024xi32>
// CHECK: arith.bitcast %{{.*}} : f32 to i32
// CHECK-NOT: math.ctlz
// CHECK: pipeline.kernel = "sort"
func.func @all(%x: !torch.vtensor<[4,90],f32>) -> (!torch.vtensor<[4,3],f32>, !torch.vtensor<[4,90],si64>) {
  %zero = torch.constant.int 0
  %one = torch.constant.int 1
  %three = torch.constant.int 3
  %true = torch.constant.bool true
  %s, %p = torch.aten.sort %x, %one, %true : !torch.vtensor<[4,90],f32>, !torch.int, !torch.bool -> !torch.vtensor<[4,90],f32>, !torch.vtensor<[4,90],si64>
  %a = torch.aten.slice.Tensor %s, %one, %zero, %three, %one : !torch.vtensor<[4,90],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[4,3],f32>
  return %a, %p : !torch.vtensor<[4,3],f32>, !torch.vtensor<[4,90],si64>
}

// -----

// A line of few elements is sorted by putting one after the other into its place.

// CHECK-LABEL: func.func @short_line
// CHECK-NOT: arith.bitcast
// CHECK: scf.while
// CHECK: pipeline.kernel = "sort"
func.func @short_line(%x: !torch.vtensor<[4,24],f32>) -> !torch.vtensor<[4,24],f32> {
  %one = torch.constant.int 1
  %true = torch.constant.bool true
  %s, %p = torch.aten.sort %x, %one, %true : !torch.vtensor<[4,24],f32>, !torch.int, !torch.bool -> !torch.vtensor<[4,24],f32>, !torch.vtensor<[4,24],si64>
  return %s : !torch.vtensor<[4,24],f32>
}

// -----

// Lines whose size the call gives are merged.

// CHECK-LABEL: func.func @size_of_the_call
// CHECK-NOT: arith.bitcast
// CHECK: math.ctlz
// CHECK: pipeline.kernel = "sort"
func.func @size_of_the_call(%x: !torch.vtensor<[4,?],f32>) -> !torch.vtensor<[4,?],f32> {
  %one = torch.constant.int 1
  %true = torch.constant.bool true
  %s, %p = torch.aten.sort %x, %one, %true : !torch.vtensor<[4,?],f32>, !torch.int, !torch.bool -> !torch.vtensor<[4,?],f32>, !torch.vtensor<[4,?],si64>
  return %s : !torch.vtensor<[4,?],f32>
}

// -----

// A scatter of whole rows writes a row at a time, as a linalg op.

// CHECK-LABEL: func.func @rows
// CHECK: scf.for %[[U:.*]] = %{{.*}} to %{{.*}} step
// CHECK: %[[ROW:.*]] = tensor.extract_slice %{{.*}}[%[[AT:.*]], 0] [1, 16] [1, 1] : tensor<7x16xf32> to tensor<16xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]} ins(%{{.*}} : tensor<16xf32>, i1) outs(%[[ROW]] :
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[%[[AT]], 0] [1, 16] [1, 1]
// CHECK: pipeline.kernel = "scatter"
func.func @rows(%x: !torch.vtensor<[7,16],f32>, %i: !torch.vtensor<[5],si64>, %u: !torch.vtensor<[5,16],f32>) -> !torch.vtensor<[7,16],f32> {
  %false = torch.constant.bool false
  %l = torch.prim.ListConstruct %i : (!torch.vtensor<[5],si64>) -> !torch.list<vtensor>
  %r = torch.aten.index_put.hacked_twin %x, %l, %u, %false : !torch.vtensor<[7,16],f32>, !torch.list<vtensor>, !torch.vtensor<[5,16],f32>, !torch.bool -> !torch.vtensor<[7,16],f32>
  return %r : !torch.vtensor<[7,16],f32>
}

// -----

// Must not fire: rows are too short.

// An element that is inside is written, whatever is there.

// CHECK-LABEL: func.func @short
// CHECK-NOT: linalg.generic
// CHECK: scf.if %{{.*}} -> (tensor<7x3xf32>)
// CHECK: tensor.insert
// CHECK-NOT: linalg.generic
// CHECK: pipeline.kernel = "scatter"
func.func @short(%x: !torch.vtensor<[7,3],f32>, %i: !torch.vtensor<[5],si64>, %u: !torch.vtensor<[5,3],f32>) -> !torch.vtensor<[7,3],f32> {
  %false = torch.constant.bool false
  %l = torch.prim.ListConstruct %i : (!torch.vtensor<[5],si64>) -> !torch.list<vtensor>
  %r = torch.aten.index_put.hacked_twin %x, %l, %u, %false : !torch.vtensor<[7,3],f32>, !torch.list<vtensor>, !torch.vtensor<[5,3],f32>, !torch.bool -> !torch.vtensor<[7,3],f32>
  return %r : !torch.vtensor<[7,3],f32>
}

// -----

// A loop of one iteration stays, so that there is an op to be the kernel: a barrier hides how often it runs.

// CHECK-LABEL: func.func @one_line
// CHECK: %[[ONE:.*]] = "fusion.barrier"(%{{.*}}) : (index) -> index
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[ONE]] step
// CHECK: pipeline.kernel = "sort"
func.func @one_line(%x: !torch.vtensor<[1,8],f32>) -> !torch.vtensor<[1,8],f32> {
  %dim = torch.constant.int 1
  %falling = torch.constant.bool false
  %v, %i = torch.aten.sort %x, %dim, %falling : !torch.vtensor<[1,8],f32>, !torch.int, !torch.bool -> !torch.vtensor<[1,8],f32>, !torch.vtensor<[1,8],si64>
  return %v : !torch.vtensor<[1,8],f32>
}

// -----

// So it does in a scan of a long line.

// CHECK-LABEL: func.func @long_scan
// CHECK: %[[ONE:.*]] = "fusion.barrier"(%{{.*}}) : (index) -> index
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[ONE]] step
// CHECK: pipeline.kernel = "scan"
func.func @long_scan(%x: !torch.vtensor<[256],f32>) -> !torch.vtensor<[256],f32> {
  %dim = torch.constant.int 0
  %none = torch.constant.none
  %r = torch.aten.cumsum %x, %dim, %none : !torch.vtensor<[256],f32>, !torch.int, !torch.none -> !torch.vtensor<[256],f32>
  return %r : !torch.vtensor<[256],f32>
}

// -----

// Must not fire: a few steps that wait for each other.

// CHECK-LABEL: func.func @one_scan
// CHECK-NOT: fusion.barrier
// CHECK: return
func.func @one_scan(%x: !torch.vtensor<[1,8],f32>) -> !torch.vtensor<[1,8],f32> {
  %dim = torch.constant.int 1
  %none = torch.constant.none
  %r = torch.aten.cumsum %x, %dim, %none : !torch.vtensor<[1,8],f32>, !torch.int, !torch.none -> !torch.vtensor<[1,8],f32>
  return %r : !torch.vtensor<[1,8],f32>
}

// -----

// Must not fire: there are several.

// CHECK-LABEL: func.func @lines
// CHECK-NOT: fusion.barrier
// CHECK: pipeline.kernel = "scan"
func.func @lines(%x: !torch.vtensor<[2,8],f32>) -> !torch.vtensor<[2,8],f32> {
  %dim = torch.constant.int 1
  %none = torch.constant.none
  %r = torch.aten.cumsum %x, %dim, %none : !torch.vtensor<[2,8],f32>, !torch.int, !torch.none -> !torch.vtensor<[2,8],f32>
  return %r : !torch.vtensor<[2,8],f32>
}
