"""scripts/gpu_check.py, as far as it goes without an NVIDIA GPU: the driver for Vulkan runs its artifacts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))  # scripts are no package

import gpu_check
import gpu_figures
import gpu_outcome

SCRIPTS = Path(gpu_check.__file__).parent


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("artifacts")
    assert gpu_check.main(["build", str(folder), "--target=vulkan", "--only=layernorm", "--only=size 1"]) == 0
    return folder


def _case(folder, number, capsys):
    capsys.readouterr()
    gpu_outcome.case(folder, number)
    return json.loads(capsys.readouterr().out)


def test_a_case(built, capsys):
    index = json.loads((built / "index.json").read_text())
    assert [one["name"] for one in index["cases"]] == ["layernorm", "size 1"]
    for number in range(2):
        outcome = _case(built, number, capsys)
        assert outcome["outcome"] == "right" and outcome["error"] < 1e-5


def test_a_wrong_number(built, capsys, monkeypatch):
    read = gpu_outcome.unnamed
    monkeypatch.setattr(
        gpu_outcome, "unnamed", lambda arrays, name: [one + (name == "result") for one in read(arrays, name)]
    )
    assert _case(built, 0, capsys)["outcome"].startswith("WRONG: differs by 1")


def test_all_cases(built, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gpu_check, "_what_is_missing", lambda: None)
    monkeypatch.setattr(gpu_check, "_machine", lambda: "a test")
    figures = tmp_path / "figures.json"
    assert gpu_check.run(built, figures) == 0
    assert "2 right, 0 not" in capsys.readouterr().out
    assert [one["outcome"] for one in json.loads(figures.read_text())["cases"]] == ["right", "right"]
    assert gpu_check.run(built, figures, ["size"]) == 0
    assert [one["name"] for one in json.loads(figures.read_text())["cases"]] == ["size 1"]


def test_a_case_that_fails_leaves_the_others_alone(built, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gpu_check, "_what_is_missing", lambda: None)
    monkeypatch.setattr(gpu_check, "_machine", lambda: "a test")
    folder = tmp_path / "copies"
    folder.mkdir()
    for path in built.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "0.pipeline").write_bytes(b"nothing")
    assert gpu_check.run(folder, tmp_path / "figures.json") == 1
    said = capsys.readouterr().out
    assert "right: size 1" in said and "1 right, 1 not: layernorm" in said


def test_nothing_built(tmp_path, capsys):
    assert gpu_check.main(["run", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_no_gpu_is_one_sentence(built):
    """In a process with neither torch nor a compiler to import."""
    program = (
        "import sys\n"
        "for name in ('torch', 'torch_mlir', 'llvmlite', 'yaml', 'rich'): sys.modules[name] = None\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "import gpu_check\n"
        "sys.exit(gpu_check.main(['run', sys.argv[2]]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(SCRIPTS), str(built)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("nothing can run here: ") and done.stderr.count("\n") == 1


def test_the_report(tmp_path, monkeypatch):
    page = tmp_path / "performance.md"
    page.write_text(f"before\n{gpu_figures.START}\nold\n{gpu_figures.END}\nbehind\n")
    monkeypatch.setattr(gpu_figures, "PAGE", page)
    timed = {"kind": "timed", "outcome": "right", "seconds": 0.001, "eager": 1.5, "compiled": None}
    cases = [
        {"kind": "numbers", "name": "one", "outcome": "right"},
        {"kind": "numbers", "name": "two", "outcome": "WRONG: differs by 3"},
        {**timed, "name": "softmax", "bandwidth": 0.91},
        {**timed, "name": "matmul", "tflops": 512.3},
    ]
    figures = tmp_path / "figures.json"
    figures.write_text(json.dumps({"target": "cuda:sm_90", "machine": "a GPU", "cases": cases}))
    assert gpu_check.main(["report", str(figures)]) == 0
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith(f"{gpu_figures.END}\nbehind\n") and "old" not in text
    assert "- two: WRONG: differs by 3" in text
    assert "| softmax | 1.000 | 1.50 | - | 91% |  |" in text and "| matmul | 1.000 | 1.50 | - |  | 512.3 |" in text
