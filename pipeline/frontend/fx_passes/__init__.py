"""fx_passes."""
