"""Models on AArch64 against eager PyTorch, as `pipeline-compile --emit=so` and `obj` write them."""

from __future__ import annotations

import pytest
import torch
from compare import TOLERANCE, relative_error
from emulator import Emulator
from zoo import ZOO

import pipeline

#: The CPU that each is for, and whether it becomes a shared object.
MODELS = {
    "resnet18": ("neoverse-n1", True),
    "mobilenet-v2": ("cortex-a76", False),
    "bert": ("neoverse-v1", True),
    "gpt2": ("apple-m1", False),
    "lstm": ("cortex-a72", True),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model(tmp_path, name):
    model, args, kwargs = ZOO[name].create()
    cpu, is_shared = MODELS[name]
    executable = pipeline.compile(model, args, kwargs, cpu=cpu, linked=True)
    with torch.no_grad():
        wanted = model(*args, **kwargs)
    emulator = Emulator(tmp_path, cpu, is_shared=is_shared)
    emulator.add(executable, (args, kwargs), wanted, threads=2)
    (got,) = emulator.run()
    assert relative_error(got, wanted) < TOLERANCE
