"""Emitters of register tiles that `tile-and-vectorize` uses: loop nests, loads and stores, epilogues; no passes."""
