"""What every level of IR shares: views of linalg ops and their indexing maps, types, matchers, names of attributes.

Takes any level and leaves it as it is, but for `rewriting`, the helpers with which passes replace ops. Imports `mlir`
alone.
"""
