"""Groups of GPU targets are those of the CPU."""

from __future__ import annotations

import dataclasses

import pytest
from gpu_models import MODELS

import pipeline
from pipeline.analysis.fusion_rules import load_rules


@pytest.mark.parametrize("target", ["vulkan", "cuda"])
def test_the_tables_say_the_same(target):
    own, cpu = load_rules(target), load_rules("cpu")
    assert dataclasses.replace(own, target="cpu") == cpu


@pytest.mark.parametrize("name", ["mlp", "transformer block", "softmax"])
def test_a_model_has_the_same_kernels(name):
    case = MODELS[name]()
    kernels = [
        [kernel.name for kernel in pipeline.compile(case.model, case.args, target=target).kernels]
        for target in ("cpu", "vulkan", "cuda:sm_90")
    ]
    assert kernels[0] == kernels[1] == kernels[2]
