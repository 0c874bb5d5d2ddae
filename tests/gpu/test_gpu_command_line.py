"""pipeline-compile and pipeline-run for GPUs."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.tools import compile as compiler
from pipeline.tools import run as runner

SOURCE = """func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %in : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "double.mlir"
    path.write_text(SOURCE)
    return path


def test_text(model, capsys):
    assert compiler.main([str(model), "--target=cuda:sm_80", "--emit=ptx"]) == 0
    assert ".target sm_80" in capsys.readouterr().out
    assert compiler.main([str(model), "--target=vulkan", "--emit=gpu"]) == 0
    assert "gpu.thread_id" in capsys.readouterr().out


def test_spirv(model, tmp_path):
    assert compiler.main([str(model), "--target=vulkan", "--emit=spirv", "-o", str(tmp_path / "kernels")]) == 0
    (file,) = (tmp_path / "kernels").iterdir()
    assert file.suffix == ".spv" and file.read_bytes()[:4] == b"\x03\x02\x23\x07"


def test_an_artifact_runs(model, tmp_path):
    artifact, x = tmp_path / "double.pipeline", np.arange(32, dtype=np.float32).reshape(4, 8)
    np.save(tmp_path / "x.npy", x)
    assert compiler.main([str(model), "--target=vulkan", "-o", str(artifact)]) == 0
    result = tmp_path / "result.npy"
    assert runner.main([str(artifact), "--input", str(tmp_path / "x.npy"), "--output", str(result)]) == 0
    assert np.array_equal(np.load(result), x + x)


def test_what_a_target_has_not(model, capsys):
    with pytest.raises(SystemExit):
        compiler.main([str(model), "--emit=ptx"])
    assert "--emit=ptx is for the target cuda, not cpu" in capsys.readouterr().err
