"""Draws docs/pictures/training.png: examples/train_vit.py in eager mode and compiled, from the same weights.

Without dropout, so that both see the same numbers; what is left between the curves is rounding.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import torch

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "docs" / "pictures" / "training.png"
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

from train_vit import History, ViT, train  # noqa: E402  # an example, not a package

EPOCHS = 25
STYLES = {"eager": {"color": "C1", "linewidth": 4, "alpha": 0.5}, "pipeline": {"color": "C0", "linewidth": 1.2}}


def draw(histories: dict[str, History], path: Path) -> None:
    """Draws losses and accuracies by epoch."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    from pipeline.runtime.interface.atomic_files import replacing

    figure, (losses, accuracies) = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for backend, history in histories.items():
        epochs = range(1, len(history.losses) + 1)
        losses.plot(epochs, history.losses, label=backend, **STYLES[backend])
        accuracies.plot(epochs, [100 * part for part in history.accuracies], label=backend, **STYLES[backend])
    losses.set_yscale("log")
    losses.set_ylabel("training loss")
    accuracies.set_ylabel("test images right, %")
    for axis in (losses, accuracies):
        axis.set_xlabel("epoch")
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as place:
        figure.savefig(place, dpi=110, format="png")


def main() -> None:
    """Trains with both, and draws."""
    torch.set_num_threads(1)
    histories = {}
    for backend in STYLES:
        torch.manual_seed(0)
        histories[backend] = train(ViT(dropout=0.0), backend, EPOCHS)
        print(f"{backend:10} loss {histories[backend].losses[-1]:.4f}, {histories[backend].accuracies[-1]:.1%} right")
    draw(histories, OUTPUT)


if __name__ == "__main__":
    main()
