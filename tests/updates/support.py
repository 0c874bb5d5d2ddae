"""What tests of updates share: arguments, a model with buffers, functions that write, what was decided."""

from __future__ import annotations

import torch
from torch import nn

import pipeline
from pipeline.mlir import context, parse
from pipeline.passmanager.pass_pipeline import PassPipeline


def remarks(exe):
    return [(one.kind, one.reason) for one in exe.remarks if one.pass_name == "update-in-place"]


def in_place(exe, *names):
    """Whether just these are updated in place, as decided and as it came out."""
    return remarks(exe) == [("passed", f"{name} is updated in place") for name in names]


def with_buffers(model, args):
    """An executable, and the IR once it has buffers."""
    executable = pipeline.compile(model, args, cache=False)
    until_then, found, _ = executable.passes.partition(",profile-kernels,")
    assert found
    module = parse(executable.ir("linalg"), context())
    PassPipeline.parse(f"{until_then})").run(module)
    return executable, str(module)


def arguments(rows, columns, dtype=torch.float32):
    def draw(*shape):
        return (torch.randn(*shape) * 4).to(dtype)

    return draw(rows, columns), draw(rows, columns), draw(columns, columns)


class Buffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(2, 8, 4))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, key):
        self.keys[:, 2:3] = key
        self.count += 1
        return self.keys.sum(1) * self.count


def masked(x, y, w):
    x[y > 0] = 0
    return x * 2
