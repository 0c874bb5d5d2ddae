"""`python -m pipeline compile net.py -o net.pipeline`: the drivers, where their commands are not on the PATH."""

from __future__ import annotations

import importlib
import sys

DRIVERS = ("bisect", "cache", "compile", "generate", "opt", "report", "run")


def main() -> int:
    """Runs the driver that the first argument names on the others; returns its exit code."""
    name, *argv = sys.argv[1:] or ["--help"]
    if name in DRIVERS:
        return int(importlib.import_module(f"pipeline.tools.{name}").main(argv))
    if name == "--version":
        from pipeline.tools.versions import versions

        sys.stdout.write(versions("pipeline"))
        return 0
    print(f"usage: python -m pipeline {{{','.join(DRIVERS)}}} ... or --version; each has --help", file=sys.stderr)
    return 0 if name in ("-h", "--help") else 1


if __name__ == "__main__":
    sys.exit(main())
