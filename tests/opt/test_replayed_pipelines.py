"""`Executable.passes`: pipeline-opt makes the last stage of `linalg` with them, to the letter."""

from __future__ import annotations

import re

import pytest
import torch
import torchvision_ops
from driver import run_opt
from function_model import Function
from torch import nn
from torch.export import Dim

import pipeline
from pipeline.fusion_rules.rules import dump

torchvision_ops.define_missing_operators()

LAST = {"cpu": "llvm", "vulkan": "gpu", "cuda:sm_90": "gpu"}


def resnet():
    from torchvision.models import resnet18

    return resnet18().eval(), (torch.randn(1, 3, 64, 64),)


def layer_of_bert():
    return nn.TransformerEncoderLayer(16, 2, 40, activation="gelu", batch_first=True).eval(), (torch.randn(3, 9, 16),)


def cond():
    def program(x):
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x.softmax(-1), (x,))

    return Function(program), (torch.randn(4, 5),)


def while_loop():
    def program(x):
        return torch.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y.sin() * 2), (torch.tensor(0), x))

    return Function(program), (torch.randn(4, 5),)


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(3))

    def forward(self, x):
        self.calls.add_(x.sum(0))
        x.mul_(2)
        return x + self.calls


def mutating():
    return Counts(), (torch.randn(4, 3),)


def replayed(executable, *options):
    finished = run_opt(f"--pass-pipeline={executable.passes}", *options, stdin=executable.ir("linalg"))
    assert finished.returncode == 0, finished.stderr
    return finished


@pytest.mark.parametrize("target", LAST)
@pytest.mark.parametrize("model", [resnet, layer_of_bert, cond, while_loop, mutating])
def test_the_last_stage_comes_out(model, target):
    module, args = model()
    executable = pipeline.compile(module, args, target=target, cache=False)
    assert replayed(executable).stdout == executable.ir(LAST[target])


@pytest.mark.parametrize("options", [{"profile": True}, {"num_threads": 1}, {"winograd": 0}, {"disable": ["cse"]}])
def test_options_are_in_the_passes(options):
    module, args = layer_of_bert()
    sizes = ({0: Dim("batch", max=9), 1: Dim("length", max=20)},)
    executable = pipeline.compile(module, args, dynamic_shapes=sizes, cache=False, cpu="x86-64-v3", **options)
    text = re.sub(r'^module attributes .*|"[^"]*\.py"?:\d+[^"]*"', "", executable.ir("llvm"))  # lines of the model
    assert re.sub(r'^module attributes .*|"-:\d+"', "", replayed(executable).stdout) == text


def test_the_ir_can_be_seen_at_each_pass():
    module, args = cond()
    executable = pipeline.compile(module, args, cache=False)
    finished = replayed(executable, "--mlir-print-ir-before-all", "--mlir-print-ir-after-all")
    assert finished.stdout == executable.ir("llvm")
    names = set(re.findall(r"[a-z0-9-]*-[a-z0-9-]+|cse|canonicalize", re.sub(r"\{[^}]*\}", "", executable.passes)))
    for when in ("Before", "After"):
        seen = set(re.findall(rf"IR Dump {when} (\S+)", finished.stderr))
        assert names <= seen
    assert len(names) > 80


def test_passes_of_the_users_and_rules_in_files(tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text(dump(pipeline.load_rules("cpu").apart()))
    module, args = cond()
    options = {"passes": {"fused": "cse,canonicalize"}, "fusion_rules": str(rules)}
    executable = pipeline.compile(module, args, cache=False, **options)
    assert f"rules={rules}" in executable.passes
    assert replayed(executable).stdout == executable.ir("llvm")


def test_what_the_cache_keeps_has_them(tmp_path, monkeypatch):
    monkeypatch.setenv("PIPELINE_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("PIPELINE_CACHE_SIZE", raising=False)
    module, args = cond()
    first = pipeline.compile(module, args)
    monkeypatch.setattr("pipeline.lowering.lower", None)  # what the cache has is not compiled
    assert first.passes.startswith("builtin.module(")
    assert pipeline.compile(module, args).passes == first.passes
