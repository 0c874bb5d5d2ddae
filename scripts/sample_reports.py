"""Writes reports of a ResNet-18, a BERT-base, and models with a branch and a loop, to look at.

Usage: taskset -c 0 python scripts/sample_reports.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("examples", "benchmarks", "tests/models", "tests/report")]


def main(folder: Path) -> None:
    """Compiles and measures each on one thread."""
    from report_models import branches, rounds
    from resnet18 import resnet18
    from workloads import WORKLOADS

    import pipeline

    folder.mkdir(parents=True, exist_ok=True)
    makers = {"resnet18": resnet18, "bert": WORKLOADS["W8c_bert"].create, "branch": branches, "loop": rounds}
    for name, make in makers.items():
        model, inputs = make()
        path = folder / f"{name}.html"
        pipeline.compile(model, inputs, num_threads=1).report(path, *inputs)
        print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "reports")
