"""The CPU target."""
