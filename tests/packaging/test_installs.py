"""The wheel in environments of its own: with NumPy alone it runs artifacts, with the compiler it does everything.

What an environment needs beside the wheel are links to the packages of the environment of the tests, so that nothing is
downloaded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import pipeline

ROOT = Path(pipeline.__file__).parent.parent
PACKAGES = Path(sysconfig.get_paths()["purelib"])

DRIVERS = ("bisect", "cache", "compile", "opt", "report", "run")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy, since setuptools leaves files in the tree, and takes those of earlier builds."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE", "pipeline_drivers.py"):
        shutil.copy(ROOT / name, source / name)
    shutil.copytree(ROOT / "pipeline", source / "pipeline", ignore=shutil.ignore_patterns("__pycache__"))
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--quiet"]
    run(sys.executable, "-m", "pip", "wheel", ".", *options, "-w", ".", cwd=source)
    (built,) = source.glob("*.whl")
    return built


def environment(folder, wheel, *names):
    """An environment with the wheel, and links to the packages that begin with these names; all without any."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    options = ["--no-deps", "--no-index", "--quiet", "--no-compile"]
    run(*pip, "install", *options, wheel, cwd=folder)
    for entry in PACKAGES.iterdir():
        if entry.name.startswith(names or "") and not entry.name.startswith(
            ("__editable__", "pipeline", "pip", "_dist")
        ):
            (site / entry.name).symlink_to(entry)
    return folder / "bin"


@pytest.fixture(scope="module")
def base(wheel, tmp_path_factory):
    return environment(tmp_path_factory.mktemp("base"), wheel, "numpy")


@pytest.fixture(scope="module")
def whole(wheel, tmp_path_factory):
    return environment(tmp_path_factory.mktemp("whole"), wheel)


def run(*command, cwd, status=0, **variables):
    """What a command prints, both streams; in an environment without PYTHONPATH."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env={**kept, **variables}, capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


class Layers(nn.Module):
    """Threads, a product, a scalar function of the C library, a buffer that it writes to, complex and bf16 numbers."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(130, 150)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("scale", torch.linspace(1, 2, 150).to(torch.bfloat16))

    def forward(self, x):
        self.calls.add_(1)
        y = torch.softmax(self.first(x), -1) * self.scale
        return (
            y,
            torch.fft.fft(x[:2]),
            self.calls * 2,
            torch.fmod(y.double(), 0.01),
            torch.nonzero(x[0] > 0.5),
            y.bfloat16(),
        )


RUNS = """
import importlib.util, sys
import numpy as np
import pipeline

present = [name for name in ("torch", "torch_mlir", "llvmlite", "safetensors", "ml_dtypes", "yaml", "rich")
           if importlib.util.find_spec(name) is not None]
assert not present, present
exe = pipeline.load("layers.pipeline")
for threads in (1, 2):
    exe.num_threads = threads
    *results, rounded = exe(np.load("x.npy"))
assert rounded.dtype.names == ("bfloat16",)
np.savez("results.npz", *results, rounded["bfloat16"])
print(exe)
try:
    exe(np.zeros((3, 130), np.float64))
except pipeline.ArgumentError as error:
    print(error)
try:
    pipeline.compile(lambda x: x, (1,))
except pipeline.PipelineError as error:
    print(error)
"""


def test_numpy_alone_runs_an_artifact(base, tmp_path):
    torch.manual_seed(0)
    model, x = Layers().eval().requires_grad_(False), torch.rand(400, 130)
    exe = pipeline.compile(model, (x,), dynamic_shapes=({0: torch.export.Dim("n", max=1000)},))
    exe.save(tmp_path / "layers.pipeline")
    np.save(tmp_path / "x.npy", x.numpy())
    said = run(base / "python", "-c", RUNS, cwd=tmp_path)
    assert "argument x: expected float32[s" in said
    assert "compiling needs torch, torch-mlir, llvmlite, pyyaml, ml-dtypes, which this installation lacks" in said
    assert "pip install 'pipeline-mlir[compile]'" in said
    model(x)
    *expected, rounded = model(x)
    *results, bits = np.load(tmp_path / "results.npz").values()
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, wanted.numpy(), rtol=1e-4, atol=1e-6)
    close = torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16).float()
    torch.testing.assert_close(close, rounded.float(), rtol=1e-2, atol=1e-6)


def test_what_is_installed_beside_numpy_is_small(base):
    (package,) = base.parent.glob("lib/python*/site-packages/pipeline")
    assert (package / "py.typed").exists()
    assert sum(file.stat().st_size for file in package.rglob("*") if file.is_file()) < 10 << 20


def test_drivers_without_the_compiler(base, tmp_path):
    """They say their versions and their options; those that compile say what to install."""
    (tmp_path / "net.py").write_text(NET)
    for driver in DRIVERS:
        assert f"pipeline-{driver} {pipeline.__version__}" in run(
            base / f"pipeline-{driver}", "--version", cwd=tmp_path
        )
        assert f"usage: pipeline-{driver}" in run(base / "python", "-m", "pipeline", driver, "--help", cwd=tmp_path)
    wanted = "error: compiling needs torch, torch-mlir, llvmlite"
    for driver, *arguments in (("compile", "-o", "net"), ("run",), ("bisect",), ("opt",)):
        assert wanted in run(base / f"pipeline-{driver}", "net.py", *arguments, cwd=tmp_path, status=1)
    said = run(base / "pipeline-run", "--print-completion", "bash", cwd=tmp_path, status=1)
    assert "--print-completion needs shtab" in said


NET = """
import torch


def model():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(33, 40), torch.nn.GELU(), torch.nn.Linear(40, 7))
    return net.eval().requires_grad_(False), (torch.linspace(-1, 1, 5 * 33).view(5, 33),)


def small():
    return torch.nn.ReLU(), (torch.ones(3),)
"""


def test_every_driver_of_the_whole_installation(whole, base, tmp_path):
    (tmp_path / "net.py").write_text(NET)
    np.save(tmp_path / "x.npy", np.linspace(-1, 1, 5 * 33, dtype=np.float32).reshape(5, 33))
    python = (whole / "python", "-m", "pipeline")
    run(whole / "pipeline-compile", "net.py", "-o", "net.pipeline", cwd=tmp_path)
    run(*python, "compile", "net.py:small", "--emit=linalg", "-o", "net.mlir", cwd=tmp_path)
    assert "linalg." in run(whole / "pipeline-opt", "net.mlir", "--canonicalize", cwd=tmp_path)
    run(base / "pipeline-run", "net.pipeline", "--input", "x.npy", "--output", "result=y.npy", cwd=tmp_path)
    scope = {}
    exec(NET, scope)
    model, (x,) = scope["model"]()
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), model(x).numpy(), rtol=1e-4, atol=1e-6)
    assert "result: float32[5, 7]" in run(base / "pipeline-run", "net.pipeline", "--input", "x.npy", cwd=tmp_path)
    run(whole / "pipeline-bisect", "net.mlir", cwd=tmp_path)
    run(base / "pipeline-run", "net.pipeline", "--input", "x.npy", "--report", "net.html", cwd=tmp_path)
    run(base / "pipeline-report", "diff", "net.html", "net.html", "-o", "both.html", cwd=tmp_path)
    run(whole / "pipeline-cache", "list", cwd=tmp_path, PIPELINE_CACHE_DIR=str(tmp_path / "cache"))
    for shell in ("bash", "zsh"):
        assert "--emit" in run(whole / "pipeline-compile", "--print-completion", shell, cwd=tmp_path)
    assert "pipeline-opt" in run(*python, "opt", "--version", cwd=tmp_path)
    assert "usage: python -m pipeline" in run(*python, "press", cwd=tmp_path, status=1)


def test_another_module_called_pipeline(base, tmp_path):
    (tmp_path / "pipeline.py").write_text("")
    said = run(base / "pipeline-run", "--version", cwd=tmp_path, status=1, PYTHONPATH=str(tmp_path))
    assert f"Python finds {tmp_path / 'pipeline.py'} under the name pipeline" in said
    run(base / "pipeline-run", "--version", cwd=tmp_path)  # the folder that it runs in does not matter


def test_the_package_is_not_transformers_function():
    with pytest.raises(pipeline.PipelineError, match="from transformers import pipeline as"):
        pipeline("sentiment-analysis")
