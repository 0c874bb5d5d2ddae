"""legalization."""
