"""Trains a small vision transformer on scikit-learn's digits: forward, backward and the optimizer's step compiled.

python examples/train_vit.py                     compiled
python examples/train_vit.py --backend eager     in eager mode, to compare
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn


class ViT(nn.Module):
    """A transformer over the patches of [N, 1, 8, 8] images: logits [N, 10]."""

    def __init__(self, width: int = 32, layers: int = 2, dropout: float = 0.1, patch: int = 2):
        super().__init__()
        self.patches = nn.Conv2d(1, width, patch, patch)
        self.places = nn.Parameter(torch.randn((8 // patch) ** 2, width) * 0.02)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, dropout, "gelu", batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


@dataclass
class History:
    """What became of a training run: the mean loss of each epoch, and the part of test images told right after it."""

    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)


def digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images [N, 1, 8, 8] and labels [N] to train on, then those to test with: every fifth one."""
    data = load_digits()
    images = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 8 - 1
    labels = torch.tensor(data.target)
    is_test = torch.arange(len(labels)) % 5 == 0
    return images[~is_test], labels[~is_test], images[is_test], labels[is_test]


def train(model: nn.Module, backend: str, epochs: int, batch: int = 64, rate: float = 5e-3) -> History:
    """Trains a model from its weights as they are; batches are drawn from torch's generator."""
    images, labels, test_images, test_labels = digits()
    steps = len(labels) // batch
    optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(rate), weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * steps)
    compiled, step = model, optimizer.step
    if backend != "eager":
        options = {"num_threads": torch.get_num_threads()} if backend == "pipeline" else None
        compiled, step = (torch.compile(each, backend=backend, options=options) for each in (model, optimizer.step))
    history, order = History(), torch.Generator().manual_seed(0)
    for _ in range(epochs):
        model.train()
        total = 0.0
        for chosen in torch.randperm(len(labels), generator=order)[: steps * batch].split(batch):
            optimizer.zero_grad()
            loss = F.cross_entropy(compiled(images[chosen]), labels[chosen])
            loss.backward()
            step()
            schedule.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            accuracy = (compiled(test_images).argmax(1) == test_labels).float().mean().item()
        history.losses.append(total / steps)
        history.accuracies.append(accuracy)
    return history


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="pipeline", help="torch.compile's, or eager; default: %(default)s")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--width", type=int, default=32, help="features of a patch; a multiple of 4")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    start = time.perf_counter()
    history = train(ViT(options.width, options.layers), options.backend, options.epochs)
    for epoch, (loss, accuracy) in enumerate(zip(history.losses, history.accuracies, strict=True), 1):
        print(f"epoch {epoch:3}: loss {loss:.4f}, {accuracy:.1%} of the test images right")
    print(f"{time.perf_counter() - start:.1f} s, compilation included")


if __name__ == "__main__":
    main()
