"""pipeline-run on models: with fusion and without, in one call."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.tools import run as driver

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x, scale=None):
        y = torch.relu(x).exp() * 2
        return y if scale is None else {"y": y * scale, "n": 3}

def model():
    return Net(), (torch.arange(4.0),)

def scaled():
    return Net(), (torch.arange(4.0),), {"scale": torch.ones(4)}
"""

MLIR = """
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %e = linalg.exp ins(%x : tensor<3xf32>) outs(%x : tensor<3xf32>) -> tensor<3xf32>
  return %e : tensor<3xf32>
}
"""


@pytest.fixture
def net(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(MODEL)
    return str(path)


@pytest.mark.parametrize("factory", ["", ":scaled"])
def test_both_are_timed(net, factory, capsys):
    argv = [net + factory, "--benchmark", "--compare-unfused", "--repeats", "3", "--warmup", "1"]
    assert driver.main(argv) == 0
    *_, title, heads, fused, unfused, ratio = capsys.readouterr().out.splitlines()
    assert title == "Execution time summary of 3 calls each, in turn:"
    assert [head.strip() for head in heads.split("(ms)")[:-1]] == ["mean", "median", "max", "min", "std"]
    assert [line.split()[0] for line in (fused, unfused)] == ["fused", "unfused"]
    assert all(len(line.split()) == 6 for line in (fused, unfused))
    assert ratio.startswith("ratio of the medians, second to first: ")


def test_unfused_has_a_kernel_for_each_op(net):
    from pipeline.tools.run_arguments import parse_arguments
    from pipeline.tools.run_model import compile_forms

    forms, (args, kwargs) = compile_forms(parse_arguments([net, "--benchmark", "--compare-unfused"]))
    assert {name: len(exe.kernels) for name, exe in forms.items()} == {"fused": 1, "unfused": 3}
    np.testing.assert_array_equal(forms["fused"](*args, **kwargs), forms["unfused"](*args, **kwargs))


def test_a_model_runs_on_its_examples_or_on_files(net, tmp_path, capsys):
    assert driver.main([net]) == 0
    assert capsys.readouterr().out.startswith("result: float32[4] = 2, 5.43656, 14.7781")
    np.save(tmp_path / "x.npy", np.zeros(4, np.float32))
    output = tmp_path / "y.npy"
    assert driver.main([net, "--input", str(tmp_path / "x.npy"), "--output", str(output)]) == 0
    np.testing.assert_array_equal(np.load(output), np.full(4, 2, np.float32))


def test_mlir_takes_its_inputs_from_files(tmp_path, capsys):
    path = tmp_path / "exp.mlir"
    path.write_text(MLIR)
    np.save(tmp_path / "x.npy", np.zeros(3, np.float32))
    argv = [str(path), "--input", str(tmp_path / "x.npy"), "--benchmark", "--compare-unfused", "--repeats", "1"]
    assert driver.main(argv) == 0
    assert "unfused" in capsys.readouterr().out
    assert driver.main([str(path)]) == 1
    assert "missing; expected float32[3]" in capsys.readouterr().err


def test_a_table_for_the_model(net, tmp_path, capsys):
    table = tmp_path / "table.yaml"
    table.write_text("target: x\nkinds: {}\nops:\n  expp: []\n")
    assert driver.main([net, "--fusion-rules", str(table)]) == 1
    assert f"{table}:4: no op 'expp'" in capsys.readouterr().err
    table.write_text("target: x\nkinds: {}\n")
    assert driver.main([net, "--fusion-rules", str(table), "--disable", "fuse-elementwise"]) == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["{net}", "--compare-unfused"], "--compare-unfused: needs --benchmark"),
        (["a.pipeline", "--benchmark", "--compare-unfused"], "--compare-unfused: needs a model to compile"),
        (["a.pipeline", "--fusion-rules", "cpu"], "--fusion-rules: needs a model to compile"),
        (["a.pipeline", "--disable", "cse"], "--disable: needs a model to compile"),
        (
            ["{net}", "--benchmark", "--compare-unfused", "--against", "b.pipeline"],
            "--compare-unfused: cannot be used together with --against",
        ),
    ],
)
def test_refused(net, argv, message, capsys):
    with pytest.raises(SystemExit):
        driver.main([word.format(net=net) for word in argv])
    assert message in capsys.readouterr().err
