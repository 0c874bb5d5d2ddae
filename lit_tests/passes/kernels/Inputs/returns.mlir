func.func private @mine_0(%x: memref<?xf32>) -> memref<?xf32> attributes {pipeline.calls = ["f", "lib.so"], pipeline.outputs = 0, pipeline.sizes = []} {
  return %x : memref<?xf32>
}
