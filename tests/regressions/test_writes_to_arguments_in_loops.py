"""A loop writes to an argument in its first round, hands on other tensors, and writes to a buffer that it captures."""

from __future__ import annotations

import itertools

import pytest
import torch

import pipeline

#: What a round does; `a` and `b` are arguments before it.
WRITES = {
    "carried": ["a.add_(i)", "a = a.clamp(-8, 8)"],
    "carried, too": ["b.mul_(2)", "b = b + 1"],
    "kept": ["c.sub_(1)"],
    "buffer": ["self.total.copy_(c)"],
    "other buffer": ["self.least.clamp_(max=i)"],
    "argument": ["z.add_(0.5)"],
}

CASES = [case for count in (2, 3, 6) for case in itertools.combinations(WRITES, count)]


class Buffers(torch.nn.Module):
    """A module whose forward method is given as source."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.ones(3))
        self.register_buffer("least", torch.full((3,), 2.0))


def source(writes):
    lines = [line for write in writes for line in WRITES[write]]
    body = ["a = x", "b = y", "c = x * 2", "for i in range(int(n)):", *("    " + line for line in lines)]
    body.append("return a, b, c, self.total, self.least")
    return "def forward(self, x, y, z, n):\n    " + "\n    ".join(body) + "\n"


def python(text):
    space = {"torch": torch}
    exec(text, space)
    return type("Plain", (Buffers,), {"forward": space["forward"]})()


@pytest.mark.parametrize("writes", CASES, ids="+".join)
def test_all_writes_are_seen(writes):
    text = source(writes)
    script = torch.jit.script(type("Plain", (Buffers,), {})())
    script.define(text)
    arguments = [torch.randn(3) for _ in range(3)]
    executable, eager = pipeline.compile(script, (*arguments, torch.tensor(2))), python(text)
    for rounds in (0, 1, 3):
        ours, theirs = [value.clone() for value in arguments], [value.clone() for value in arguments]
        got, expected = executable(*ours, torch.tensor(rounds)), eager(*theirs, torch.tensor(rounds))
        for value, wanted in zip((*got, *ours), (*expected, *theirs), strict=True):
            assert torch.equal(value, wanted), text
