"""passmanager."""
