"""A plugin whose dialect has a name that is taken."""

from pipeline.mlir import ext


class Clash(ext.Dialect, name="linalg"):
    """No ops."""
