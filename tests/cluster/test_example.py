"""examples/ray_images.py, with a smaller model."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn

EXAMPLES = Path(__file__).parents[2] / "examples"


class Small(nn.Module):
    def forward(self, image):
        scores = image.float().flatten(1)[:, :10].softmax(-1)
        return {"label": scores.argmax(-1), "score": scores.amax(-1)}


def test_the_example_classifies_each_image_once(cluster, tmp_path, monkeypatch, capsys):
    import ray.cloudpickle

    monkeypatch.syspath_prepend(EXAMPLES)
    import ray_images

    def build():
        return Small(), (torch.zeros(16, 64, 64, 3, dtype=torch.uint8),)

    monkeypatch.setattr(ray_images, "build", build)
    monkeypatch.setattr(sys, "argv", ["ray_images.py", str(tmp_path), "--images", "40"])
    ray.cloudpickle.register_pickle_by_value(ray_images)
    ray_images.main()
    ray.cloudpickle.unregister_pickle_by_value(ray_images)
    said = capsys.readouterr().out
    assert "classifier/x86-64-v3.pipeline" in said and "40 images classified; the first: {'id': " in said
