"""The driver pipeline-run."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch
from drivers import fails
from torch import nn

import pipeline
from pipeline import PipelineError
from pipeline.tools import compile as compile_driver
from pipeline.tools import run as run_driver
from pipeline.tools.agreement import difference
from pipeline.tools.benchmark import comparison, measure
from pipeline.tools.eager_form import EagerForm


def test_run_prints_a_summary(artifact, folder, capsys):
    assert run_driver.main([artifact, "--input", str(folder / "x.npy")]) == 0
    assert re.fullmatch(r"result: float32\[2, 3\] = .*, \.\.\. \(min .*, mean .*, max .*\)\n", capsys.readouterr().out)


def test_run_writes_outputs(artifact, folder, tmp_path, capsys):
    out = tmp_path / "y.npy"
    assert run_driver.main([artifact, "--input", f"x={folder / 'x.npy'}", "--output", str(out)]) == 0
    assert capsys.readouterr().out == ""
    np.testing.assert_array_equal(np.load(out), pipeline.load(artifact)(np.ones((2, 4), np.float32)))


def test_run_with_names(scaled, folder, tmp_path, capsys):
    x, scale, out = folder / "x.npy", folder / "scale.npy", tmp_path / "x1.npy"
    argv = [scaled, "--input", f"scale={scale}", "--input", str(x)]
    assert run_driver.main(argv) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "result['y']",
        "result['n']",
        "result['x']",
    ]
    assert run_driver.main([*argv, "--output", f"result['x']={out}"]) == 0
    np.testing.assert_array_equal(np.load(out), np.full((2, 4), 2))


def test_run_bfloat16(nets, tmp_path, capsys):
    half = str(tmp_path / "half")
    assert compile_driver.main([f"{nets}:half", "-o", half]) == 0
    x = np.array([-1, 2, 3], ml_dtypes.bfloat16)
    np.save(tmp_path / "a.npy", x)
    np.save(tmp_path / "words.npy", x.view(np.uint16))
    for name in ("a.npy", "words.npy"):
        assert run_driver.main([half, "--input", str(tmp_path / name), "--output", str(tmp_path / "b.npy")]) == 0
        np.testing.assert_array_equal(np.load(tmp_path / "b.npy").view(ml_dtypes.bfloat16), np.maximum(x, 0))
        assert run_driver.main([half, "--input", str(tmp_path / name)]) == 0
        assert capsys.readouterr().out.startswith("result: bfloat16[3] = 0, 2, 3")


def test_benchmark(artifact, folder, capsys, monkeypatch):
    calls = []
    original = pipeline.load
    monkeypatch.setattr(run_driver, "load", lambda path: counting(original(path), calls))
    argv = [artifact, "--input", str(folder / "x.npy"), "--benchmark", "--repeats", "7", "--warmup", "2"]
    assert run_driver.main(argv) == 0
    assert len(calls) == 1 + 2 + 7
    heads, numbers = capsys.readouterr().out.splitlines()[-2:]
    names = [name.strip() for name in heads.split("(ms)")[:-1]]
    values = dict(zip(names, map(float, numbers.split()), strict=True))
    assert list(values) == ["mean", "median", "max", "min", "std"]
    assert 0 < values["min"] <= values["median"] <= values["max"]
    assert values["min"] <= values["mean"] <= values["max"]
    assert values["std"] >= 0


def test_benchmark_against_another(artifact, folder, nets, tmp_path, capsys, monkeypatch):
    other = str(tmp_path / "plain.pipeline")
    assert compile_driver.main([nets, "-o", other, "--disable", "fuse-elementwise"]) == 0
    calls = {artifact: [], other: []}
    original = pipeline.load
    monkeypatch.setattr(run_driver, "load", lambda path: counting(original(path), calls[path]))
    argv = [artifact, "--input", str(folder / "x.npy"), "--benchmark", "--repeats", "7", "--warmup", "2"]
    assert run_driver.main([*argv, "--against", other]) == 0
    assert [len(own) for own in calls.values()] == [1 + 2 + 7] * 2
    _, title, heads, *lines, ratio = capsys.readouterr().out.splitlines()
    assert title == "Execution time summary of 7 calls each, in turn:"
    assert heads.split("(ms)")[1].strip() == "median"
    assert [line.split()[0] for line in lines] == [artifact, other]
    first, second = (float(line.split()[2]) for line in lines)
    assert float(ratio.removeprefix("ratio of the medians, second to first: ")) == pytest.approx(second / first, 0.1)


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        ("other_weights", r"result differs: error [0-9.]+, where the largest number is "),
        ("scaled", "--input scale: missing"),
    ],
)
def test_against_a_model_that_differs(factory, message, artifact, folder, nets, tmp_path, capsys):
    other = str(tmp_path / "other.pipeline")
    assert compile_driver.main([f"{nets}:{factory}", "-o", other]) == 0
    argv = [artifact, "--input", str(folder / "x.npy"), "--benchmark", "--against", other]
    assert run_driver.main(argv) == 1
    said = capsys.readouterr()
    assert re.search(message, said.err)
    assert "Execution time" not in said.out


def test_against_eager(nets, artifact, capsys):
    argv = ["--benchmark", "--against=eager", "--repeats", "3"]
    for name in (nets, f"{nets}:counting"):
        assert run_driver.main([name, *argv]) == 0
        *_, heads, compiled, eager, ratio = capsys.readouterr().out.splitlines()
        assert "median (ms)" in heads and ratio.startswith("ratio of the medians")
        assert [line.split()[0] for line in (compiled, eager)] == [name, "eager"]
    assert "--against eager: needs a model to compile" in fails(capsys, run_driver, artifact, *argv)


def test_eager_forms_of_files(tmp_path):
    net, x = nn.Linear(4, 3), torch.ones(2, 4)
    torch.export.save(torch.export.export(net, (x,)), tmp_path / "net.pt2")
    exe = pipeline.compile(net, (x,))
    expected = net(x).detach()
    for model in (net, torch.export.export(net, (x,)), tmp_path / "net.pt2"):
        torch.testing.assert_close(EagerForm(model, exe)(x.numpy()), expected)
    with pytest.raises(PipelineError, match="--against eager: net.mlir is MLIR, which PyTorch does not run"):
        EagerForm(Path("net.mlir"), exe)


def test_against_needs_benchmark(artifact, folder, capsys):
    said = fails(capsys, run_driver, artifact, "--input", folder / "x.npy", "--against", artifact)
    assert "--against: needs --benchmark" in said


ONES = np.ones(3, np.float32)
HALF = np.ones(3, ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    ("value", "other", "differs"),
    [
        (ONES, ONES + np.float32(1e-6), False),
        (ONES, ONES + np.float32(1e-3), True),
        (HALF, HALF + ml_dtypes.bfloat16(0.01), False),
        (HALF, HALF * 2, True),
        (ONES * np.nan, ONES * np.nan, False),
        (ONES * np.inf, ONES * np.inf, False),
        (ONES * np.inf, ONES * -np.inf, True),
        (ONES, np.array([1, 1, np.nan], np.float32), True),
        (ONES[:0], ONES[:0], False),
        (ONES, ONES[:2], True),
        (ONES, ONES.astype(np.float64), True),
        (np.arange(3), np.arange(3), False),
        (np.arange(3), np.arange(3) + 1, True),
        (None, None, False),
        (3, 4, True),
    ],
)
def test_results_agree_up_to_rounding(value, other, differs):
    assert (difference({"result": value}, {"result": other}) is not None) == differs


def test_results_of_other_names_differ():
    assert difference({"result": 1}, {"result.logits": 1}) == "its results are result.logits, expected result"


def test_times_are_taken_in_turn(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr("pipeline.tools.benchmark.time.perf_counter", lambda: next(clock))
    order = []
    times = measure([lambda: order.append("a"), lambda: order.append("b")], warmup=1, repeats=2)
    assert order == ["a", "b"] * 3
    assert times == [[1000.0, 1000.0]] * 2
    assert "ratio of the medians, second to first: 2.000" in comparison({"a": [1.0, 2.0], "b": [2.0, 4.0]})


def counting(executable, calls):
    """The executable, with its calls noted."""

    class Counting:
        signature = executable.signature

        def __call__(self, *args, **kwargs):
            calls.append(args)
            return executable(*args, **kwargs)

    return Counting()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "--input x: missing; expected float32[2, 4]"),
        (["--input", "{folder}/scale.npy"], "argument x: expected float32[2, 4], got float32[3]"),
        (["--input", "{folder}/absent.npy"], "absent.npy: cannot be read: No such file or directory"),
        (["--input", "{folder}/nets.py"], "nets.py: not a .npy file"),
        (["--input", "{folder}"], "cannot be read"),
        (["--input", "{folder}/objects.npy"], "objects.npy: not a .npy file: Object arrays cannot be loaded"),
        (["--input", "{folder}/x.npz"], "x.npz: an archive of arrays; expected the .npy file of one"),
        (["--input", "{folder}/cut.npy"], "cut.npy: not a .npy file"),
        (["--input", "{folder}/empty.npy"], "empty.npy: not a .npy file"),
        (["--input", "x={folder}/x.npy", "--input", "x={folder}/x.npy"], "--input x: given twice"),
        (["--input", "{folder}/x.npy", "--input", "{folder}/x.npy"], "the model has no input for it; it has x"),
        (
            ["--input", "{folder}/x.npy", "--output", "a", "--output", "b"],
            "the model has no output for it; it has result",
        ),
        (["--input", "{folder}/x.npy", "--output", "{folder}/absent/y.npy"], "cannot be written"),
        (
            ["--input", "{folder}/x.npy", "--benchmark", "--repeats", "0"],
            "argument --repeats: takes a number from 1, not '0'",
        ),
    ],
)
def test_wrong_run(artifact, folder, capsys, argv, message):
    np.save(folder / "objects.npy", np.array([{}]), allow_pickle=True)
    np.savez(folder / "x.npz", np.ones(2))
    (folder / "cut.npy").write_bytes((folder / "x.npy").read_bytes()[:100])
    (folder / "empty.npy").write_bytes(b"")
    assert message in fails(capsys, run_driver, artifact, *(word.format(folder=folder) for word in argv))


def test_run_what_is_no_artifact(folder, capsys):
    assert "no artifact" in fails(capsys, run_driver, folder / "x.npy")
    assert "cannot be read" in fails(capsys, run_driver, folder / "absent")
