"""In-place code → functional code where torch's own functionalization does not reach: regions, aliases, effects."""
