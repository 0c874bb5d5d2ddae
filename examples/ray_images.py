"""Classifies images on a cluster: a model is compiled for all of its machines once, and runs over a dataset.

Usage: python examples/ray_images.py [FOLDER] [--address ADDRESS] [--images N]

Without an address ray starts on this machine; `ray start --head` on one machine and `ray start --address=...` on
others make a cluster. FOLDER is where the results and the shared cache go, a path or, with s3fs, s3://bucket/folder.
The images are noise: `ray.data.read_images` or `read_parquet` read others.
"""

from __future__ import annotations

import argparse
import tempfile

import numpy as np
import ray
import ray.data
import torch
from resnet import ResNet18
from torch import nn

import pipeline
import pipeline.ray

BATCH = 16

#: So many images are a task: ray takes a few rows for one where it is not told.
BLOCK = 4 * BATCH


class Classifier(nn.Module):
    """Takes images of bytes, a quarter of what floats are on their way through the cluster; gives classes."""

    def __init__(self) -> None:
        super().__init__()
        self.net = ResNet18(classes=10)

    def forward(self, image: torch.Tensor) -> dict[str, torch.Tensor]:
        scores = self.net(image.permute(0, 3, 1, 2).float() / 255).softmax(-1)
        return {"label": scores.argmax(-1), "score": scores.amax(-1)}


def build() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The model and an example; machines call it, so that weights take no way but theirs."""
    torch.manual_seed(0)
    return Classifier().eval().requires_grad_(False), (torch.zeros(BATCH, 64, 64, 3, dtype=torch.uint8),)


def noise(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """An image for each id."""
    images = [np.random.default_rng(number).integers(0, 256, (64, 64, 3), np.uint8) for number in batch["id"]]
    return {"id": batch["id"], "image": np.stack(images)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", default=tempfile.gettempdir() + "/pipeline-images")
    parser.add_argument("--address", help="of a cluster")
    parser.add_argument("--images", type=int, default=400)
    arguments = parser.parse_args()
    ray.init(arguments.address, ignore_reinit_error=True)

    places = {"url": f"{arguments.folder}/cache", "artifacts": f"{arguments.folder}/artifacts"}
    (compiled,) = pipeline.ray.compile_all({"classifier": build}, **places, num_threads=1, cpu="x86-64-v3")
    print(f"compiled for {compiled.kind} in {compiled.seconds:.1f} s: {compiled.error or compiled.artifact}")

    ids = ray.data.range(arguments.images, override_num_blocks=-(-arguments.images // BLOCK))
    images = ids.map_batches(noise, batch_format="numpy")
    labels = pipeline.ray.map_batches(images, compiled.artifact)
    labels.write_parquet(f"{arguments.folder}/labels", mode="overwrite")

    written = ray.data.read_parquet(f"{arguments.folder}/labels")
    rows = pipeline.ray.rows_of(written, ["id"])
    assert rows == pipeline.ray.rows_of(ids, ["id"])  # each image once
    print(f"{rows.count} images classified; the first: {written.take(1)[0]}")


if __name__ == "__main__":
    main()
