"""Loops around the ops of a group, still on tensors, for CPUs and GPUs.

What the ops of a kernel hand to each other becomes a tile that stays in cache or in registers.
"""
