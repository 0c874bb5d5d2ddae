"""flash_attention."""
