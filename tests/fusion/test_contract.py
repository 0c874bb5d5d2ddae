"""assert_fused and --explain: contracts about fusion, and what people are told when one is broken."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import yaml
from fusion.support import compiled
from torch import nn

import pipeline
from pipeline import FusionError
from pipeline.fusion_rules.reasons import REASONS
from pipeline.tools import compile as driver

ROOT = Path(__file__).resolve().parents[2]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 5)

    def forward(self, x):
        y = torch.relu(self.linear(x))
        return torch.softmax(y, -1), pipeline.stop_fusion(y).exp()


@pytest.fixture(scope="module")
def exe():
    return compiled(Net().requires_grad_(False), torch.randn(4, 6))


def test_kernels_know_their_words_and_places(exe):
    kernel = next(kernel for kernel in exe.kernels if "matmul" in kernel.words)
    assert "relu" in kernel.words
    lines = Path(__file__).read_text().splitlines()
    for name, text in (("linear", "y = torch.relu(self.linear(x))"), ("relu", "y = torch.relu(self.linear(x))")):
        source = next(origin.source for place in kernel.places for origin in place.ops if origin.op == name)
        assert source == f"{__file__}:{1 + next(n for n, line in enumerate(lines) if text in line)}"


def test_fused(exe):
    exe.assert_fused("linear", "relu")
    exe.assert_fused("matmul", "add", "relu")
    exe.assert_fused("softmax")
    exe.assert_not_fused("linear", "exp", "softmax")


def test_not_fused_says_where_they_are_and_why(exe):
    with pytest.raises(FusionError) as caught:
        exe.assert_fused("relu", "exp", "linear")
    text = str(caught.value)
    assert "relu, exp, linear are not in one kernel:" in text
    assert f"linear is in {next(kernel.name for kernel in exe.kernels if 'matmul' in kernel.words)}" in text
    assert f"{__file__}:" in text
    assert "barrier; to change it: take the `pipeline.stop_fusion` away" in text
    assert isinstance(caught.value, AssertionError)


def test_an_op_that_is_nowhere(exe):
    with pytest.raises(FusionError, match=r"tanh is in no kernel; they hold add, .*linear.*softmax"):
        exe.assert_fused("linear", "tanh")


def test_must_not_be_fused(exe):
    with pytest.raises(FusionError, match="linear, relu are in one kernel, fused_matmul_add_relu"):
        exe.assert_not_fused("linear", "relu")


def test_after_loading_words_are_left(exe, tmp_path):
    exe.save(tmp_path / "net.pipeline")
    loaded = pipeline.load(tmp_path / "net.pipeline")
    loaded.assert_fused("matmul", "relu")
    loaded.assert_not_fused("matmul", "exp", "reduce_max")
    assert all(kernel.places == () for kernel in loaded.kernels)
    assert [kernel.words for kernel in loaded.kernels] == [kernel.words for kernel in exe.kernels]


def test_every_reason_is_a_listed_one(exe):
    keys = {remark.key for remark in exe.remarks if remark.edge is not None and remark.kind == "missed"}
    assert keys and keys <= set(REASONS)
    assert all(REASONS[key].key == key and REASONS[key].change for key in REASONS)


MODEL = """
import torch, pipeline
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        return pipeline.stop_fusion(torch.relu(x)).exp()

def model():
    return Net(), (torch.ones(4),)
"""


@pytest.fixture
def model_file(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(MODEL)
    return path


def test_explain(model_file, tmp_path, capfd):
    assert driver.main([str(model_file), "--explain", "-o", str(tmp_path / "net.pipeline")]) == 0
    assert capfd.readouterr().err.splitlines() == [
        "2 kernels:",
        "  relu_0 (elementwise)",
        f"      {model_file}:7: relu",
        "  exp_0 (elementwise)",
        f"      {model_file}:7: exp",
        "",
        "1 edge between two kernels:",
        "  barrier; to change it: take the `pipeline.stop_fusion` away",
        "      is not in a group with its producer, linalg.generic: a barrier stands between the two",
        f"          relu at {model_file}:7 -> exp at {model_file}:7",
    ]


def test_remarks_for_programs(model_file, tmp_path):
    output, file = str(tmp_path / "net.pipeline"), tmp_path / "remarks.yaml"
    options = ["--remarks-filter=.*/missed/barrier", "--remark-format=yaml", f"--remarks-output-file={file}"]
    assert driver.main([str(model_file), *options, "-o", output]) == 0
    text = file.read_text().replace("!Missed", "")
    documents = list(yaml.safe_load_all(text))
    assert {document["Reason"] for document in documents} == {"barrier"}
    assert documents[-1]["Producer"]["Label"] == "relu"
    assert documents[-1]["Consumer"]["DebugLoc"] == {"File": str(model_file), "Line": 7, "Column": 0}
    assert documents[-1]["Change"] == REASONS["barrier"].change


@pytest.mark.parametrize(("pattern", "count"), [("passed", 0), ("barrier", 2), ("missed", 2), ("form-groups", 1)])
def test_the_filter_takes_passes_kinds_and_reasons(model_file, tmp_path, capfd, pattern, count):
    driver.main([str(model_file), f"--remarks-filter={pattern}", "-o", str(tmp_path / "net.pipeline")])
    lines = [line for line in capfd.readouterr().err.splitlines() if "relu" in line]
    assert len(lines) == count
