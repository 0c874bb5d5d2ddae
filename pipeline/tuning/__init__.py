"""Tuning: the variants of a model's kernels are measured on this machine, and the best are kept."""
