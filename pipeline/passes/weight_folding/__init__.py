"""weight_folding."""
