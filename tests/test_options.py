"""Options of a compilation: the same words everywhere, and what does not exist is refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pipeline
from pipeline import OptionError
from pipeline.options import Options

X = torch.randn(2, 4)


@pytest.fixture(scope="module")
def model():
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU()).requires_grad_(False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"disabled": []}, "unknown option 'disabled', did you mean 'disable'?"),
        ({"capturing": "export"}, "unknown option 'capturing', did you mean 'capture'?"),
        ({"zzz": 1}, "unknown option 'zzz'; there are target, cpu, capture, disable, passes"),
        ({"check": 1}, "check: expected True or False, got 1"),
        ({"tune": True}, "tune: expected a number of seconds from 0 or None, got True"),
        ({"tune": -1}, "tune: expected a number of seconds from 0 or None, got -1"),
        ({"tune": float("nan")}, "tune: expected a number of seconds from 0 or None, got nan"),
        ({"tune": 1, "target": "vulkan"}, "tune: this machine cannot run the code"),
        ({"precision": "f16"}, "precision='f16': expected one of f32, bf16"),
        ({"winograd": 3}, "winograd=3: expected one of 0, 2, 4"),
        ({"winograd": True}, "winograd=True: expected one of 0, 2, 4"),
        (
            {"winograd": 4, "target": "vulkan"},
            "Winograd's algorithm is for the target cpu only",
        ),
        ({"winograd": "2"}, "winograd='2': expected one of 0, 2, 4"),
        ({"weights": "int3"}, "weights='int3': expected one of f32, int8"),
        ({"weights": "int8", "group": 1}, "group: expected a number of weights from 2 or None, got 1"),
        ({"weights": "int8", "group": True}, "group: expected a number of weights from 2 or None, got True"),
        ({"group": 32}, "group=32: there are groups of quantized weights only"),
        ({"weights": "int8", "target": "vulkan"}, "weights='int8': weights are quantized for the target cpu only"),
        ({"precision": None}, "precision=None: expected one of f32, bf16"),
        ({"capture": "trace"}, "capture='trace': expected one of export, script"),
        ({"capture": 1}, "capture: expected a string, got int"),
        ({"target": "tpu"}, "target='tpu': expected cpu"),
        ({"target": None}, "target: expected a string, got NoneType"),
        ({"cpu": "z80"}, "cpu='z80': expected native or one of x86-64"),
        ({"cpu": 64}, "cpu: expected a string, got int"),
        ({"disable": "cse"}, "disable: expected a list of pass names, got 'cse'"),
        ({"disable": [1]}, "disable: expected a list of pass names, got [1]"),
        ({"disable": ["no-such-pass"]}, "no-such-pass"),
        (
            {"disable": ["cse", "guard-traps"]},
            "disable: 'guard-traps' has to run: without it models crash, are wrong or",
        ),
        ({"disable": ["reallocate-strided-casts"]}, "'reallocate-strided-casts' has to run"),
        ({"disable": ["one-shot-bufferize"]}, "'one-shot-bufferize' has to run"),
        ({"passes": "cse"}, "passes: expected pass pipelines by stage"),
        ({"passes": {"linalg": ["cse"]}}, "passes: expected pass pipelines by stage"),
        ({"passes": {"llvm": "cse"}}, "passes: passes run after linalg, fused, kernels, not after 'llvm'"),
        ({"passes": {"linalg": "no-such-pass"}}, "no-such-pass"),
        ({"passes": {"linalg": "cse{"}}, "pipeline"),
    ],
)
def test_refused(model, options, message):
    with pytest.raises(OptionError) as caught:
        pipeline.compile(model, (X,), **options)
    assert message in str(caught.value)


def test_a_wrong_option_is_refused_before_the_model_is_captured():
    class Explodes(nn.Module):
        def forward(self, x):
            raise AssertionError("captured")

    wrong = ({"cpu": "z80"}, {"target": "tpu"}, {"capture": "trace"}, {"disable": ["no-such-pass"]})
    for options in (*wrong, {"passes": {"kernels": "no-such-pass"}}):
        with pytest.raises(OptionError):
            pipeline.compile(Explodes(), (X,), **options)


def test_disable(model):
    def elementwise(**options):
        exe = pipeline.compile(model, (X,), **options)
        torch.testing.assert_close(exe(X), model(X))
        return exe

    one = elementwise(disable=["form-groups"])
    assert one.kernels == ()
    assert "fusion.group" not in one.ir("fused")
    assert any(remark.reason == "the pass is disabled" and remark.pass_name == "form-groups" for remark in one.remarks)
    assert elementwise(disable=("hoist-to-prepare", "linalg-fuse-elementwise-ops")).kernels


@pytest.mark.parametrize("stage", ["linalg", "fused", "kernels"])
def test_passes_run_after_their_stage(model, stage):
    exe = pipeline.compile(model, (X,), passes={stage: "linalg-generalize-named-ops,cse"})
    torch.testing.assert_close(exe(X), model(X))
    assert "linalg.matmul ins" in exe.ir("linalg")
    assert "linalg.matmul ins" not in exe.ir("kernels")


@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v2", "native"])
def test_cpu(model, cpu):
    exe = pipeline.compile(model, (X,), cpu=cpu)
    torch.testing.assert_close(exe(X), model(X))


def test_assembly_is_for_the_cpu(model):
    texts = [pipeline.compile(model, (X,), cpu=cpu, assembly=True).ir("asm") for cpu in ("x86-64", "x86-64-v3")]
    assert "%ymm" not in texts[0]
    assert "pipeline_main:" in texts[0] and "pipeline_main:" in texts[1]


def test_defaults():
    assert Options.create({}) == Options()
    assert Options().cpu == "native"
    assert Options.create({"disable": ["cse"]}) == Options(disable=("cse",))


@pytest.mark.parametrize("name", ["plan-memory", "tile-and-vectorize", "expand-vector-math", "fuse-elementwise"])
def test_a_disabled_pass_of_any_stage_is_left_out(name):
    model = torch.nn.Sequential(torch.nn.Linear(8, 20), torch.nn.GELU(), torch.nn.Softmax(-1)).eval()
    x = torch.randn(3, 8)
    exe = pipeline.compile(model, (x,), disable=[name])
    reasons = {remark.reason for remark in exe.remarks if remark.pass_name == name}
    assert reasons == {"the pass is disabled"}
    torch.testing.assert_close(exe(x), model(x))
