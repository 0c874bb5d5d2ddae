"""Dialects defined in Python. `load_dialects` makes them known to a context; each lives in a file of its own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.mlir import ir

_loading = threading.Lock()  # `ext.Dialect.load` keeps its module on the class while it loads


def load_dialects(ctx: ir.Context) -> None:
    """Loads every dialect of ours into `ctx`."""
    from pipeline.dialects.fusion import Fusion

    with _loading, ctx:
        Fusion.load()
