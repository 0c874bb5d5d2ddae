"""Emitters of several ops in one block, with barriers between them; no passes."""
