"""thread."""
