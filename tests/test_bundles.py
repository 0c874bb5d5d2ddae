"""Several executables in one file, which share weights and buffers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import pipeline
from pipeline import ArtifactError, PipelineError


class Counter(torch.nn.Module):
    def __init__(self, total, step):
        super().__init__()
        self.register_buffer("total", total)
        self.step = step

    def forward(self, x):
        self.total += self.step * x
        return self.total * 1


def test_bundles(tmp_path):
    total, x = torch.zeros(3), torch.ones(3)
    up, down = (pipeline.compile(Counter(total, step), (x,)) for step in (2, -1))
    total.fill_(5)
    bundle = pipeline.Bundle({"up": up, "down": down}, {"notes": b"some", "none": b""})
    assert bundle.buffers["total"] is total
    bundle.save(tmp_path / "both")
    pipeline.Bundle({"up": up, "down": down}, scratch=["total"]).save(tmp_path / "scratch")
    for name, start in (("both", 5), ("scratch", 0)):
        loaded = pipeline.Bundle.load(tmp_path / name)
        assert loaded.entries["up"](np.ones(3, np.float32)).tolist() == [start + 2] * 3
        assert loaded.entries["down"](np.ones(3, np.float32)).tolist() == [start + 1] * 3
        assert loaded.buffers["total"].tolist() == [start + 1] * 3
    assert pipeline.Bundle.load(tmp_path / "both").files == {"notes": b"some", "none": b""}
    with pytest.raises(PipelineError, match="weight total is another tensor"):
        pipeline.Bundle({"up": up, "other": pipeline.compile(Counter(total.clone(), 1), (x,))})
    with pytest.raises(PipelineError, match="without slashes"):
        pipeline.Bundle({"a/b": up})
    with pytest.raises(PipelineError, match="'step' is no buffer"):
        pipeline.Bundle({"up": up}, scratch=["step"])
    with pytest.raises(ArtifactError, match="has several entries"):
        pipeline.load(tmp_path / "both")
    up.save(tmp_path / "single")
    with pytest.raises(ArtifactError, match=r"pipeline\.load reads it"):
        pipeline.Bundle.load(tmp_path / "single")
    data = bytearray((tmp_path / "both").read_bytes())
    (tmp_path / "damaged").write_bytes(data.replace(b"entries", b"entriez", 1))
    with pytest.raises(ArtifactError, match="its manifest is damaged"):
        pipeline.Bundle.load(tmp_path / "damaged")
    data[data.index(b"some")] ^= 1
    (tmp_path / "both").write_bytes(data)
    with pytest.raises(ArtifactError, match="the file notes in it is damaged"):
        pipeline.Bundle.load(tmp_path / "both")
