"""The passes, one file each, in rooms by the level of IR that they take and leave.

From the imported program on: `tensor`, `weight_folding`, `control_flow` and `layout` take linalg on tensors and leave
it; `fusion` leaves `fusion.group` ops; `kernels` makes functions of them and `tiling` loops around what is in those;
`bufferization` goes from tensors to buffers; `cpu` from buffers to vectors and threads, `gpu` to launches and
threads; `legalization` replaces types and math functions that a target lacks, on any level. The order in which they
run stands in `pipeline.lowering` and in `pipeline.targets`.
"""
