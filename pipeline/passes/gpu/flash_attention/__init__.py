"""Attention in one kernel that streams keys past queries (FlashAttention): the pattern and its emitters; no passes."""
