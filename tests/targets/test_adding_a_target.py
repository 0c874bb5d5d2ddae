"""Runs docs/adding-a-target.md: its target compiles models that its device runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "adding-a-target.md").read_text()
FILES = dict(re.findall(r"^```python (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))

LOAD = """
import torch, pipeline
from pipeline import plugins
for name in ("c_target.py", "c_device.py"):
    plugins.load_file(name)
torch.manual_seed(0)
"""

MODELS = """
from torch import nn
from torch.export import Dim

models = [
    (nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)), (torch.randn(1, 3, 8, 8),)),
    (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Softmax(-1), nn.LayerNorm(16)), (torch.randn(3, 8),)),
    (nn.Embedding(10, 4), (torch.tensor([1, 9]),)),
]
for model, args in models:
    model.eval()
    executable = pipeline.compile(model, args, target="c", cache=False)
    print(torch.allclose(executable(*args), model(*args), atol=1e-5))
model = nn.Sequential(nn.Linear(8, 5), nn.Tanh()).eval()
sizes = ({0: Dim("n", max=40)},)
executable = pipeline.compile(model, (torch.randn(3, 8),), target="c", dynamic_shapes=sizes, cache=False)
print(all(torch.allclose(executable(x), model(x), atol=1e-6) for x in map(lambda n: torch.randn(n, 8), (1, 2, 33))))
executable.save("model")
print(torch.allclose(pipeline.load("model")(x := torch.randn(4, 8)), model(x), atol=1e-6))
"""

ERRORS = r"""
def said(**options):
    try:
        pipeline.compile(torch.nn.Linear(3, 4), (torch.randn(2, 3),), cache=False, **options)
    except pipeline.PipelineError as error:
        print(error)

said(target="d")
said(target="c:fast")
said(target="c", profile=True)
said(target="c", winograd=4)
text = open("c_target.py").read()
open("unfinished.py", "w").write("from pipeline.targets import Target\nclass Unfinished(Target): pass")
plugins.load_file("unfinished.py")
said(target="d")
open("nameless.py", "w").write(text.replace("family = ", "", 1))
nameless = plugins.load_file("nameless.py")
said(target="d")
plugins.unload_file(nameless)
open("again.py", "w").write(text)
plugins.load_file("again.py")
said(target="c")
"""

WITHOUT = """
import pipeline, numpy as np
pipeline.load("model")(np.ones((2, 8), np.float32))
"""


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(folder, program):
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PIPELINE_CACHE_SIZE": "0"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return finished.stdout, finished.stderr


def lacks_compiler(folder):
    """Whether the machine has no C compiler; then the target says so."""
    if shutil.which("cc") is not None:
        return False
    assert "CompileError: target c: [Errno 2] No such file or directory: 'cc'" in run(folder, FILES["use.py"])[1]
    return True


def test_the_page(folder):
    assert list(FILES) == ["c_target.py", "c_device.py", "use.py"]
    assert lacks_compiler(folder) or run(folder, FILES["use.py"]) == ("True\n", "")


def test_models_and_files(folder):
    if lacks_compiler(folder):
        return
    assert run(folder, LOAD + MODELS) == ("True\n" * 5, "")
    out, error = run(folder, WITHOUT)
    assert "the code is for c, which neither this version nor a plugin knows" in error


def test_the_command_lines(folder):
    if lacks_compiler(folder):
        return
    saved = """
import torch, numpy
model = torch.nn.Linear(3, 4).eval()
x = torch.ones(2, 3)
torch.export.save(torch.export.export(model, (x,)), "model.pt2")
numpy.save("x.npy", x.numpy())
"""
    assert run(folder, saved)[1] == ""
    commands = re.findall(r"^\$ pipeline-(\w+) (.*)$", PAGE, re.MULTILINE)
    assert [tool for tool, _ in commands] == ["compile", "run"]
    for tool, arguments in commands:
        program = f"from pipeline.tools.{tool} import main; raise SystemExit(main({arguments.split()!r}))"
        out, error = run(folder, program)
        assert "rror" not in error
    assert out.startswith("result: float32[2, 4]"), out + error


def test_wrong_names_and_options(folder):
    lines = run(folder, LOAD + ERRORS)[0].splitlines()
    assert lines == [
        "target='d': expected cpu or vulkan or cuda:sm_90 or c",
        "target='c:fast': expected cpu or vulkan or cuda:sm_90 or c",
        "profile: kernels are timed on the target cpu only, not on c",
        "winograd=4: Winograd's algorithm is for the target cpu only, not for c",
        "target='d': expected cpu or vulkan or cuda:sm_90 or c",
        "plugin nameless.py: class CTarget needs a string as its `family`",
        "plugin again.py: the target 'c' is already there, from c_target.py",
    ]
