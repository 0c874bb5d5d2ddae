"""The sweep of shapes: what is compiled, in files of families, and how it is raced, judged and told; see sweep.py.

A family is a module with `cases()`: cases drawn from published networks, and at random with a fixed seed. `CASES` has
all of them by name. Nothing is downloaded, and nothing but a model's own case is made before it is needed.
"""
