"""The user's line and the module of the model: beside kernels, in remarks, in explanations and in profiles."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers
from torch import fx, nn

import pipeline
from pipeline.frontend.fx_passes.source_lines import line_in, module_path
from pipeline.tools.explain import explanation

TORCH, LIBRARY = Path(torch.__file__).parent, Path(transformers.__file__).parent


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)

    def forward(self, x):
        return self.norm(self.linear(x).relu())


def line(text: str) -> str:
    """The place of the line of this file that starts with `text`."""
    lines = Path(__file__).read_text().splitlines()
    return f"{__file__}:{1 + next(n for n, line in enumerate(lines) if line.strip().startswith(text))}"


def trace(*files: str | Path) -> dict[str, str]:
    """What torch keeps of a node that such frames made, from the outermost in."""
    return {"stack_trace": "".join(f'  File "{file}", line {n}, in forward\n' for n, file in enumerate(files, 1))}


def test_the_users_line_and_not_the_librarys():
    plumbing = (LIBRARY / "modeling_layers.py", TORCH / "nn/modules/linear.py")
    model = LIBRARY / "models/bert/modeling_bert.py"
    assert line_in(trace("/home/me/net.py", model, *plumbing)) == ("/home/me/net.py", 1)
    assert line_in(trace("/home/me/net.py", "/home/me/layers.py", *plumbing)) == ("/home/me/layers.py", 2)
    assert line_in(trace(model, *plumbing)) == (str(model), 1)
    assert line_in(trace(*plumbing)) == (str(plumbing[0]), 1)
    assert line_in(trace(plumbing[1])) == (str(plumbing[1]), 1)
    assert line_in({}) is None


def test_paths_of_modules_as_torch_notes_them():
    node = fx.Graph().placeholder("x")
    for noted, path in (
        ("encoder.layer.3", "encoder.layer.3"),
        ("L['self'].encoder.0", "encoder.0"),
        ("L['fn'].encoder[0]", "encoder.0"),
        ("L['self']._modules['encoder']", "encoder"),
        ("G['net'].encoder", "net.encoder"),
        ("L['self']", None),
        ("", None),
    ):
        node.meta = {"nn_module_stack": {"outer": ("", nn.Module), "inner": (noted, nn.Linear)}}
        assert module_path(node) == path
    node.meta = {"fwd_nn_module_stack": {"inner": ("head", nn.Linear)}}
    assert module_path(node) == "head"


def test_modules_are_told_wherever_lines_are():
    exe = pipeline.compile(nn.Sequential(Block(), Block()).requires_grad_(False), (torch.ones(2, 4),))
    here = line("return self.norm(")
    matmul = next(kernel for kernel in exe.kernels if kernel.kind == "matmul")
    assert [[(origin.source, origin.module) for origin in place.ops] for place in matmul.places] == [
        [(here, f"{number}.linear"), (here, str(number))] for number in (0, 1)
    ]
    edge = next(remark for remark in exe.remarks if remark.kind == "missed" and remark.edge is not None)
    assert edge.module is not None and f"{here} in {edge.module}: missed" in str(edge)
    assert f" at {here} in {edge.edge[0].module} -> " in str(edge)
    said = explanation(exe.kernels, exe.remarks)
    assert f"      {here} in 0.linear: linear\n      {here} in 0: relu\n      and in 1 more place\n" in said
    advice = [line for line in said.splitlines() if "; to change it: " in line]
    assert advice and len(set(advice)) == len(advice)
    assert "and in 1 more place\n" in said.partition("edges between")[2]
    rows = {(row.name, row.module) for row in exe.profile(torch.ones(2, 4), repeats=1).rows}
    assert {(matmul.name, "0"), (matmul.name, "1")} <= rows
