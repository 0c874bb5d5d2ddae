"""Dialects defined in Python; each lives in a file of its own."""
