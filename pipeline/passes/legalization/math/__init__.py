"""Mathematical functions of vectors as arithmetic, which the pass expand-vector-math puts in the place of calls.

A function takes `Vectors` and the operands, builds at the insertion point and returns the value. `tests/kernels/
test_vector_math.py` checks each over the whole range of its type; the bounds on errors are in docs/vector-math.md.
"""
