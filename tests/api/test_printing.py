"""How executables print: as text, in notebooks, of every kind; and the demo, which prints one."""

from __future__ import annotations

import ast
import copy
import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import torch
from torch import nn

import pipeline

EXAMPLES = Path(__file__).parents[2] / "examples"


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, n: int, scale=None):
        self.calls.add_(1)
        return {"y": self.linear(x).relu() * n, "calls": self.calls + 0, "x": x}


class Cells(HTMLParser):
    """The text of the cells of tables; raises where tags do not match."""

    def __init__(self, html: str):
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.open += [tag] * (tag != "br")
        self.cells += [""] * (tag in ("td", "th"))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def test_an_executable(tmp_path):
    exe = pipeline.compile(Scaled().eval(), (torch.ones(2, 4), 3), {"scale": None}, winograd=4)
    first, *lines = str(exe).splitlines()
    assert first == "executable of Scaled"
    text = [line.strip() for line in lines]
    assert text[:3] == ["inputs:       x: float32[2, 4]", "n: 3", "scale: None"]
    assert text[3:6] == [
        "outputs:      result['y']: float32[2, 3]",
        "result['calls']: float32[]",
        "result['x']: the argument x",
    ]
    facts = dict(line.split(":", 1) for line in text[6:11])
    assert facts["target"].strip().startswith(f"{exe.target}, threads: ")
    assert facts["options"].strip() == "winograd=4"
    assert "weights 64 B" in facts["memory"] and "run by torch" in facts
    mains = [kernel for kernel in exe.kernels if kernel.entry == "main"]
    prepares = [kernel for kernel in exe.kernels if kernel.entry == "prepare"]
    assert mains and [kernel.name for kernel in prepares] == ["transpose_0"]
    assert exe.kernels == (*mains, *prepares)
    assert f"{len(mains)} of @main" in facts["kernels"] and "1 of @prepare, which run once" in facts["kernels"]
    assert [line.split()[0] for line in text[12:]] == [kernel.name for kernel in mains]
    matmul = next(kernel for kernel in mains if kernel.kind == "matmul")
    assert str(matmul).startswith(f"@main {matmul.name}: matmul, 1 call, ") and "FLOP" in str(matmul)
    assert repr(matmul) == f"<Kernel {matmul}>"
    cells = Cells(exe._repr_html_()).cells
    assert "x: float32[2, 4]n: 3scale: None" in cells and matmul.name in cells
    exe.save(tmp_path / "net.pipeline")
    loaded = str(pipeline.load(tmp_path / "net.pipeline"))
    assert loaded.splitlines()[0] == first == str(copy.copy(exe)).splitlines()[0]
    assert [line for line in loaded.splitlines() if "kernels:" in line or matmul.name in line] == [
        line for line in lines if "kernels:" in line or matmul.name in line
    ]


def test_names_of_models():
    x = torch.ones(2)

    def doubled(x):
        return x * 2

    for model, name in (
        (doubled, "test_names_of_models.<locals>.doubled"),
        (nn.ReLU(), "ReLU"),
        (torch.jit.trace(nn.ReLU(), (x,)), "ReLU"),
        ("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }", "MLIR text"),
    ):
        exe = pipeline.compile(model, None if isinstance(model, str) else (x,))
        assert str(exe).startswith(f"executable of {name}\n")
    exe = pipeline.compile(lambda x: torch.linalg.eigvals(x @ x) + 1, (torch.ones(3, 3),), fallback="torch")
    assert Cells(exe._repr_html_()).cells and f"at {__file__}:" in str(exe)
    gpu = pipeline.compile(nn.ReLU(), (x,), target="cuda:sm_80")
    assert "target:       cuda:sm_80, " in str(gpu) and "memory:       not reported for this target" in str(gpu)


def test_the_notebook(capsys):
    """Each cell as a notebook runs it: the value of its last expression is shown."""
    notebook = json.loads((EXAMPLES / "kernels.ipynb").read_text())
    names: dict[str, Any] = {}
    shown = []
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            body = ast.parse("".join(cell["source"]), f"cell {number}").body
            last = body.pop() if isinstance(body[-1], ast.Expr) else None
            exec(compile(ast.Module(body, []), f"cell {number}", "exec"), names)
            shown.append(None if last is None else eval(compile(ast.Expression(last.value), "", "eval"), names))
    assert "fused_matmul_add_gelu" in Cells(shown[0]._repr_html_()).cells
    assert any("layer_norm in 3" in place for _, places in shown[2] for place in places)
    assert "change the table" in capsys.readouterr().out


def test_the_demo_fits_a_screen():
    done = subprocess.run([sys.executable, EXAMPLES / "resnet18.py", "64"], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert done.stderr == ""
    assert len(lines) <= 45 and max(map(len, lines)) <= 110
    assert lines[0].startswith("compiled in ") and "executable of ResNet18" in lines
