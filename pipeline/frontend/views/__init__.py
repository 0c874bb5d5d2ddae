"""Views of tensors whose sizes are known as the program runs only: none of them reaches torch-mlir's lowering.

Torch-mlir casts dims of such sizes to 1 where a view merges several of them, so that wrong elements are read. Here a
view is taken apart on torch's symbolic sizes (`factoring`) into ops of our own (`ops`, `own_views`), which become
tensor.collapse_shape and tensor.expand_shape between torch-mlir's passes (`lower_views`).
"""
