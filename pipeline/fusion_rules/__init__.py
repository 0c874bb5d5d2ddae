"""fusion_rules."""
