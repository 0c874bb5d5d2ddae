"""Gradients: what backward ops are taken apart to, and where a graph of both is cut into forward and backward.

Takes aot_autograd's joint graphs, in ATen; leaves two graphs in the ops that inference has, too.
"""
