"""What a branch or loop of a script hands on may be a tensor that the program has under another name, too.

A loop whose body hands on what it captures, or one tensor twice, had that tensor for its result ever after: a use of
either read the loop's result. A write in a second branch to what a first one perhaps handed on was seen by one only.
"""

import itertools

import pytest
import torch

import pipeline

LOOPS = {
    "while": "k = torch.zeros(())\n    while bool(c.sum() > 0) and bool(k < 2):\n        k = k + 1",
    "for": "for i in range(int(n)):\n        c = c + 1",
    "if": "if bool(c.sum() > 0):\n        c = c + 1",
}

#: What the body hands on.
STEPS = {
    "outer": ["a = b"],
    "outer twice": ["a = b", "d = b"],
    "argument": ["a = x"],
    "other carry": ["a = d", "d = a * 2"],
    "swap": ["t = a", "a = d", "d = t"],
    "made once, carried twice": ["a = d + 1", "d = a"],
    "constant": ["a = torch.ones(3)", "d = a"],
    "buffer": ["a = self.total"],
}

#: What becomes of the values behind it.
USES = {
    "used": ["e = b.flip(0) + d"],
    "outer is changed": ["b.add_(1)", "e = b * 2"],
    "result is changed": ["a.add_(1)", "e = b * 2"],
    "outer is changed in a branch": ["if bool(x.sum() > 0):", "    b.add_(1)", "e = b * 2"],
    "result is changed in a branch": ["if bool(x.sum() > 0):", "    a.add_(1)", "e = d * 2"],
}


class Scripted(torch.nn.Module):
    """A module whose forward method is given as source."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))


def source(loop, step, use):
    start = ["a = x * 1", "b = x + 1", "c = x - 1", "d = x * 2"]
    body = ["", *STEPS[step]]
    lines = [*start, LOOPS[loop] + "\n        ".join(body), *USES[use], "return a, b, c, d, e, x, self.total"]
    return "def forward(self, x, n):\n    " + "\n    ".join(lines) + "\n"


def python(text):
    space = {"torch": torch}
    exec(text, space)
    return type("Plain", (Scripted,), {"forward": space["forward"]})()


def scripted(text):
    module = torch.jit.script(type("Plain", (Scripted,), {})())
    module.define(text)
    return module


#: The bodies whose result may be another tensor, behind which there are writes.
SHARING = ("outer", "argument", "made once, carried twice")


def cases():
    behind = [(step, use) for step in SHARING for use in USES if use != "used"]
    return list(itertools.product(LOOPS, [*((step, "used") for step in STEPS), *behind]))


@pytest.mark.parametrize("loop, step_and_use", cases())
def test_values_behind_it_are_eagers_or_the_write_is_refused(loop, step_and_use):
    text = source(loop, *step_and_use)
    try:
        executable = pipeline.compile(scripted(text), (torch.ones(3), torch.tensor(1)))
    except pipeline.CaptureError as error:
        assert "clone it before" in str(error)
        assert "used" not in step_and_use
        return
    for shift, rounds in ((2.0, 0), (2.0, 1), (2.0, 3), (-5.0, 0), (-5.0, 2)):
        x, n = torch.arange(3.0) + shift, torch.tensor(rounds)
        theirs = x.clone()
        got, expected = executable(x, n), python(text)(theirs, n)
        for one, other in zip((*got, x), (*expected, theirs), strict=True):
            assert torch.equal(one, other), f"{text}\n{shift} {rounds}"
