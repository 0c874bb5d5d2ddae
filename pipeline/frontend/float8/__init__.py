"""Numbers of 8 bits as bytes, so that nothing behind the frontend knows of them.

While torch decomposes a program, what computes with such numbers becomes ops on float32 between a decoding and an
encoding (`on_codes`); what only moves them stays as it is, and moves bytes in the end (`float8_as_bytes`).
"""

from __future__ import annotations

from pipeline.frontend.float8 import products
from pipeline.frontend.float8.moved_bytes import float8_as_bytes
from pipeline.frontend.float8.rules import on_codes

__all__ = ["float8_as_bytes", "on_codes", "products"]
