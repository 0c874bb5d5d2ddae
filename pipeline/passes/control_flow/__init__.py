"""scf on tensors → scf on tensors: passes move ops across region boundaries before fusion, and make loops counted.

If-conversion, hoisting and sinking, merging of equal conditions, removal of unused iter_args, `scf.while` to `scf.for`.
"""
