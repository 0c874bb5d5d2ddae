"""Rules in a compilation: an accelerator's table, single ops, predicates, and parts of a model that go elsewhere."""

from __future__ import annotations

import pytest
import torch
from fusion.support import compiled, groups
from torch import nn

import pipeline
from pipeline import FusionRules, OptionError, load_rules
from pipeline.fusion_rules.rules import KindRules, dump

GEMM_RELU = FusionRules("npu", {"matmul": KindRules(epilogue=("add", "relu"), dtypes=("f32",))})


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(5, 7), nn.Linear(7, 3)

    def forward(self, x):
        return torch.sigmoid(self.second(torch.relu(self.first(x)).exp().neg()))


@pytest.fixture(scope="module")
def net():
    return Net().requires_grad_(False)


X = torch.randn(3, 5)


def words(exe):
    return [label for label, _ in groups(exe)]


def test_an_accelerator_that_runs_gemm_bias_relu_and_nothing_else(net):
    exe = compiled(net, X, fusion_rules=GEMM_RELU)
    assert not any("relu" in label and "exp" in label for label in words(exe))
    assert {"exp", "neg"} <= set(words(exe))
    rules = {remark.reason.rpartition(": ")[2] for remark in exe.remarks if remark.key == "rule"}
    assert "table npu takes add, relu as epilogue of matmul, not exp" in rules


def test_must_not_fire_the_whole_table_of_the_cpu_joins_them(net):
    exe = compiled(net, X)
    assert any("relu" in label and "exp" in label and "neg" in label for label in words(exe))
    rules = {remark.reason.rpartition(": ")[2] for remark in exe.remarks if remark.key == "rule"}
    assert rules == {"table cpu takes elementwise as epilogue of matmul, not matmul"}


def test_an_op_that_nothing_joins(net):
    exe = compiled(net, X, fusion_rules=load_rules("cpu").with_(ops={"neg": []}))
    assert "neg" in words(exe)
    assert any("relu" in label and "exp" in label for label in words(exe))


def test_a_limit(net):
    exe = compiled(net, X, fusion_rules=load_rules("cpu").with_(limits={"ops": 2}))
    assert not any("relu_exp_neg" in label for label in words(exe))
    assert any(remark.key == "limit" for remark in exe.remarks)


def test_a_predicate_is_asked_before_the_table(net):
    asked = []

    def no_exp(op, kind, role):
        asked.append((op.words, kind, role))
        return False if "exp" in op.words else None

    exe = compiled(net, X, fusion_rules=load_rules("cpu").with_(predicate=no_exp))
    assert any("exp" in seen for seen, _, _ in asked)
    assert not any("relu" in label and "exp" in label for label in words(exe))
    everything = FusionRules("npu", {}, predicate=lambda op, kind, role: True)
    assert any("relu" in label and "exp" in label for label in words(compiled(net, X, fusion_rules=everything)))


def test_parts_of_a_model_go_by_other_tables(net):
    def is_second(op):
        return op.kind == "matmul" and op.op.results[0].type.shape[-1] == 3

    rules = load_rules("cpu").with_(
        parts=[(is_second, GEMM_RELU), (("exp", "neg"), load_rules("cpu").with_(target="dsp"))]
    )
    exe = compiled(net, X, fusion_rules=rules)
    targets = {target for _, target in groups(exe)}
    assert targets == {None, "npu", "dsp"}
    for label, target in groups(exe):
        if target == "dsp":
            assert "exp" in label and "neg" in label and "relu" not in label
        if target == "npu":
            assert "matmul" in label
    assert any(remark.key == "other-target" for remark in exe.remarks)


def test_torch_compile_takes_a_table(net, tmp_path):
    path = tmp_path / "npu.yaml"
    path.write_text(dump(GEMM_RELU))
    torch._dynamo.reset()
    with torch.no_grad():
        for table in (path, str(path), GEMM_RELU):
            function = torch.compile(net, backend="pipeline", options={"fusion_rules": table})
            torch.testing.assert_close(function(X), net(X))
            torch._dynamo.reset()
        with pytest.raises(Exception, match="no file, and no target"):
            torch.compile(net, backend="pipeline", options={"fusion_rules": "nowhere.yaml"})(X)


def test_every_edge_that_was_fused_has_a_remark(net):
    exe = compiled(net, X)
    passed = {remark.pass_name for remark in exe.remarks if remark.kind == "passed" and remark.edge is not None}
    assert passed == {"fuse-elementwise", "form-groups"}
    edges = [remark.edge for remark in exe.remarks if remark.kind == "passed" and remark.edge is not None]
    assert any(first.label == "matmul" and "add" in second.names for first, second in edges)


def test_the_dtypes_and_limits_of_the_other_table(net):
    def labels(**changes):
        part = load_rules("cpu").with_(target="npu", **changes)
        exe = compiled(net, X, fusion_rules=load_rules("cpu").with_(parts=[(lambda op: True, part)]))
        assert {target for _, target in groups(exe)} == {"npu"}
        return [label for label in words(exe) if "matmul" in label]

    assert all(label.startswith("fused_matmul_add") for label in labels())
    assert labels(kinds={"matmul": {"dtypes": ["f16"]}}) == ["matmul", "matmul"]
    assert labels(limits={"ops": 1}) == ["matmul", "matmul"]


def test_an_op_marked_with_a_target_that_has_no_table():
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %e = linalg.exp {pipeline.target = "nowhere"} ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
      %l = linalg.log {pipeline.target = "nowhere"} ins(%e : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
      return %l : tensor<4xf32>
    }"""
    with pytest.raises(pipeline.PipelineError, match="fusion rules 'nowhere': no file, and no target"):
        pipeline.compile(text, passes={"linalg": "linalg-generalize-named-ops"})


def test_a_table_that_is_a_part_of_itself(tmp_path):
    path = tmp_path / "loop.yaml"
    path.write_text("target: x\nkinds: {}\nparts:\n  - ops: [add]\n    table: loop.yaml\n")
    with pytest.raises(OptionError, match="loop.yaml:5: .*loop.yaml: this table is a part of itself"):
        load_rules(path)
