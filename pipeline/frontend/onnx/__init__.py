"""ONNX files → modules that torch.export can trace.

A graph is run node by node on torch's functions (`graph_run`), as TorchScript is, and what torch.export traces of that
is an ordinary program: norms are folded, branches merged, symbolic sizes proved, and what cannot be lowered runs in
torch, as with any model. torch-mlir has a way of its own, `convert-torch-onnx-to-torch`. It is not taken: it gives
weights as constants of the text, has sizes as tensors of which nothing is proved, and none of what this frontend does
about corners of torch-mlir's lowerings would apply.

- `model_file`: reads a file and its external data; what is wrong with it.
- `element_types`: ONNX's element types as torch's.
- `known`: values that are known while a graph is traced: constants, sizes, and what is computed of them.
- `module`: the module, its weights, its example arguments and dynamic sizes.
- `graph_run`: one run of a graph; `call`: what an op sees of its node.
- `ops/`: the ops, by subject. An op that is not there and that ONNX defines by other ops is run by that definition.
"""
