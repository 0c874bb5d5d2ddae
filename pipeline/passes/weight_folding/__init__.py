"""Algebra on weights: linalg on tensors → the same, with what depends on weights alone in `@prepare`.

Scales, shifts, batch norms, biases, parallel convolutions and consecutive linear layers become part of the weights of a
contraction; `hoist-to-prepare` then moves their computation out of `@main`.
"""
