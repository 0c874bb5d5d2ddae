"""What the tests of fusion share."""

from __future__ import annotations

import re

import torch

import pipeline


def compiled(model, *args, **options):
    """The executable, after a comparison of its results with eager's."""
    exe = pipeline.compile(model, args, **options)
    torch.testing.assert_close(exe(*args), model(*args))
    return exe


def groups(exe):
    """(label, target) of each fusion.group that was formed, in order."""
    found = re.findall(r"^ *\}\) \{(.*label = .*)\} :", exe.ir("fused"), re.MULTILINE)
    return [(_attribute(line, "label"), _attribute(line, "pipeline.target")) for line in found]


def _attribute(line, name):
    match = re.search(rf'(?:^|, ){re.escape(name)} = "([^"]*)"', line)
    return match and match[1]


def calls(exe):
    """The kernels that one call runs, in order."""
    text = exe.ir("kernels")
    main = text[text.index("func.func @main") :]
    return re.findall(r"call @([\w$.-]+)\(", main[: main.find("func.func", 1)])
