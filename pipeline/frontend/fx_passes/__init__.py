"""Rewrites of FX graphs between decomposition and import, and the source lines that they keep."""
