"""functionalize."""
