"""What runs passes: `Pass` and its options, the registry, textual pipelines, the runner that verifies and reports.

Knows no pass by name: the registry finds those of `pipeline.passes` by file, and those of plugins by entry point.
"""
