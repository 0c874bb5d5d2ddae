"""StableHLO and TOSA → linalg on tensors, by the passes that are in the wheel, and by ours where these have none.

- `reading`: text, bytecode, and the portable bytecode in which StableHLO is kept, `jax.export`'s among it.
- `stablehlo`, `tosa`: what lowers each dialect.
- `stablehlo_control_flow`: while, if and case, which upstream's pass leaves alone, as scf's.

A module may also be linalg itself; `pipeline.frontend.importer.mlir_text` makes Programs of all of them.
"""
