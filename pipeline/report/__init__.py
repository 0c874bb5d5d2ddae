"""Reports: one HTML file in which a compiled model can be looked at, and a page that compares two of them.

Owns what a report has, as plain data (`recording`, `contents`), where that comes from (`collect` asks an executable,
`recorder/` compiles once more and watches the passes), and the pages (`page`, `comparison`, `assets/`). `recorder/`
alone knows MLIR, and only the compiler imports it: a report of a file is made without. `assets/dagre` is the library
@dagrejs/dagre 3.1.3 as it was published, which lays graphs out.
"""
