"""Emitters of code for one thread, and of reductions over a warp; no passes."""
