"""Watches a compilation: what each pass does to the IR, the program as a graph, the plan of memory.

Takes modules and gives a `pipeline.report.recording.Recording`; the IR itself stays as it is.
"""
