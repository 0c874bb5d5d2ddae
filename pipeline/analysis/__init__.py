"""Questions about IR that passes of two or more rooms ask: contractions, epilogues, iter_args, cost, winograd.

Analyses read and never write. What one room alone asks lies beside the passes that ask it.
"""
