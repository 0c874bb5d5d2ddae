"""What runs executables. Imports neither torch nor MLIR."""
