"""Passes: one a file, named after it, with the registry and textual pipelines beside them."""
