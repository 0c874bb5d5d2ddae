"""Groups of GPU targets are those of the CPU."""

from __future__ import annotations

import dataclasses

import pytest
from gpu_models import MODELS, SHOWN

import pipeline
from pipeline.fusion_rules.rules import load_rules


@pytest.mark.parametrize("target", ["vulkan", "cuda"])
def test_the_tables_say_the_same(target):
    own, cpu = load_rules(target), load_rules("cpu")
    assert dataclasses.replace(own, target="cpu") == cpu


@pytest.mark.parametrize("name", SHOWN)
def test_a_model_has_the_same_kernels(name):
    """But for what is done around groups: layouts; on the CPU packed weights, pads in kernels, loops as kernels."""
    case = MODELS[name]()
    alike = (
        "propagate-layouts",
        "drop-padded-taps",
        "winograd-weights",
        "pack-weights",
        "fold-pads-into-kernels",
        "outline-loops",
    )
    kernels = [
        [kernel.name for kernel in pipeline.compile(case.model, case.args, target=target, disable=disable).kernels]
        for target, disable in (("cpu", alike), ("vulkan", ()), ("cuda:sm_90", alike[:1]))
    ]
    assert kernels[0] == kernels[1] == kernels[2]


def test_layouts_are_what_differs():
    case = MODELS["weenet"]()
    cpu, gpu = (pipeline.compile(case.model, case.args, target=target).kernels for target in ("cpu", "cuda:sm_90"))
    assert [one.name for one in cpu if "conv" in one.name] == [one.name for one in gpu if "conv" in one.name]
