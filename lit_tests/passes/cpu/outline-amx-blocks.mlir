// RUN: pipeline-opt %s --outline-amx-blocks | FileCheck %s

// Blocks that do the same share a function, which has constants of its own, and takes the rest.

// CHECK-LABEL: func.func private @product_chunk_amx_0
// CHECK-SAME: (%[[OUT:.*]]: memref<64x16xf32>, %[[I:.*]]: index)
// CHECK: %[[C0:.*]] = arith.constant 0 : index
// CHECK: x86.amx.tile_store %[[OUT]][%[[I]], %[[C0]]]
// CHECK: return
// CHECK-LABEL: func.func private @product_chunk_amx_1
// CHECK: x86.amx.tile_zero : !x86.amx.tile<8x16xf32>
// CHECK-NOT: @product_chunk_amx_2
// CHECK-LABEL: func.func private @product(
// CHECK-SAME: %[[A:.*]]: index, %[[B:.*]]: index, %[[OUT:.*]]: memref<64x16xf32>
// CHECK: call @product_chunk_amx_0(%[[OUT]], %[[A]])
// CHECK: call @product_chunk_amx_0(%[[OUT]], %[[B]])
// CHECK: call @product_chunk_amx_1(%[[OUT]], %[[A]])
func.func private @product(%a: index, %b: index, %out: memref<64x16xf32>) attributes {pipeline.kernel = "matmul"} {
  %c0 = arith.constant 0 : index
  scf.execute_region no_inline {
    %zero = x86.amx.tile_zero : !x86.amx.tile<16x16xf32>
    x86.amx.tile_store %out[%a, %c0], %zero : memref<64x16xf32>, !x86.amx.tile<16x16xf32>
    scf.yield
  } {pipeline.amx_block}
  scf.execute_region no_inline {
    %zero = x86.amx.tile_zero : !x86.amx.tile<16x16xf32>
    x86.amx.tile_store %out[%b, %c0], %zero : memref<64x16xf32>, !x86.amx.tile<16x16xf32>
    scf.yield
  } {pipeline.amx_block}
  scf.execute_region no_inline {
    %zero = x86.amx.tile_zero : !x86.amx.tile<8x16xf32>
    x86.amx.tile_store %out[%a, %c0], %zero : memref<64x16xf32>, !x86.amx.tile<8x16xf32>
    scf.yield
  } {pipeline.amx_block}
  return
}

// Must not: a region that is no block of tiles stays where it is.

// CHECK-LABEL: func.func @other
// CHECK: scf.execute_region no_inline
func.func @other(%out: memref<64x16xf32>, %i: index, %f: f32) {
  scf.execute_region no_inline {
    memref.store %f, %out[%i, %i] : memref<64x16xf32>
    scf.yield
  }
  return
}
