"""The kinds of files that a model may lie in, by the endings of their names. Loads no torch."""

from __future__ import annotations

#: What to do about files that hold no program, by the ending of their names.
NO_PROGRAM = {
    ".safetensors": "it holds weights, no program; build the module, load_state_dict(load_file(...)), compile that",
    ".bin": "it holds weights, no program; build the module, load_state_dict(torch.load(...)), compile that",
    ".ckpt": "it holds weights, no program; build the module, load its state_dict, compile that",
    ".pipeline": "it is compiled already; pipeline.load(...) runs it",
    ".py": "a Python file is no model; import the module class and make one, or use the tool pipeline-compile",
}

#: Files that torch.save and torch.jit.save write.
TORCH_FILES = (".pt", ".pth", ".jit", ".ts", ".torchscript")

EXPORTED = ".pt2"
MLIR = ".mlir"

#: Files of MLIR: text, bytecode, and what `jax.export` serializes.
MLIR_FILES = (MLIR, ".mlirbc", ".stablehlo", ".tosa", ".jaxexport")

ONNX = ".onnx"
