"""What an executable tells of itself."""

from __future__ import annotations

import pytest
import torch
from api_models import Calls
from torch import nn

import pipeline
from pipeline import PipelineError

STAGES = ("torch", "linalg", "fused", "kernels", "llvm")


@pytest.mark.parametrize("stage", STAGES)
def test_ir_of_each_stage(linear, stage):
    from pipeline.mlir import context, parse

    text = linear[1].ir(stage)
    parse(text, context())
    expected = {
        "torch": "torch.aten.linear",
        "linalg": "linalg.matmul",
        "fused": "fusion.group",
        "kernels": "call @fused_matmul_add_relu",
        "llvm": "llvm.func @main",
    }
    assert expected[stage] in text or stage == "torch"


def test_ir_is_whole():
    """A constant of many elements is there with all its elements."""
    table = torch.arange(40)
    model = Calls(lambda x: x + table)
    assert "__elided__" not in pipeline.compile(model, (torch.arange(40),)).ir("linalg")


def test_ir_of_an_unknown_stage(linear):
    with pytest.raises(PipelineError, match="stage 'ptx': this executable has torch, linalg, fused, kernels, llvm"):
        linear[1].ir("ptx")


def test_observer_sees_the_stages_in_order():
    seen = []
    pipeline.compile(nn.ReLU(), (torch.ones(2),), observer=lambda stage, text: seen.append((stage, "func" in text)))
    assert seen == [(stage, True) for stage in STAGES]


def test_kernels(linear):
    kernels = linear[1].kernels
    assert {kernel.kind for kernel in kernels} >= {"matmul", "elementwise"}
    for kernel in kernels:
        assert kernel.name and kernel.ops and kernel.calls >= 1
        assert f"@{kernel.name}(" in linear[1].ir("kernels")


def test_equal_kernels_are_compiled_once():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU()).requires_grad_(False)
    exe = pipeline.compile(model, (torch.randn(2, 4),))
    assert [kernel.calls for kernel in exe.kernels if kernel.kind == "matmul"] == [2]


def test_remarks(linear):
    for remark in linear[1].remarks:
        assert remark.pass_name and remark.reason and remark.kind in ("passed", "missed", "analysis")
    assert any(remark.pass_name == "hoist-to-prepare" for remark in linear[1].remarks)
