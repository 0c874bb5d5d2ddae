"""Layout, packing, precision and algorithm of contractions, on tensors: blocked channels, panels, Winograd, phases.

Leaves linalg on tensors, with weights packed in `@prepare` and layouts propagated between the ops that share them.
"""
