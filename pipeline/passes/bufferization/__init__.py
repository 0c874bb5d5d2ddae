"""Tensors → buffers: destinations, updates in place, double buffering of iter_args, the memory plan.

Upstream's one-shot bufferization does the conversion; passes here decide beforehand where results lie, and afterwards
give temporaries offsets in one workspace.
"""
