"""The sweep of shapes: its cases, what judges them, resuming, the tables."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))  # scripts, not a package

import sweep
from shapes import summary
from shapes.families import CASES, kinds
from shapes.judge import judged
from shapes.race import Setting

SMALLEST = "rms_norm/512x3_"


def run(*arguments):
    sweep.main([*map(str, arguments)])


def outcome(case, contestant, seconds, setting="f32/1", **values):
    head = {"case": case, "setting": setting, "contestant": contestant, "wall": seconds, "cpu": seconds}
    return {**head, "flops": 0, "bytes": 100} | values


MACHINE = {
    "machine": {"cpu": "some CPU", "flops": 1e11, "bytes": 1e10, "date": "2026-01-02", "load": 0.5, "versions": {}}
}


def outcomes_of(path, *lines):
    found = summary.Outcomes(path / "lines.jsonl")
    for line in (MACHINE, *lines):
        found.append(line)
    return found


def row(text, first):
    return [cell.strip() for cell in text[text.index(f"| {first} |") :].split("\n")[0].strip("| ").split("|")]


def test_there_are_enough_cases_of_each_kind():
    counts = {kind: sum(case.kind == kind for case in CASES.values()) for kind in kinds()}
    assert min(counts.values()) >= 20 and len(CASES) > 1000, counts


@pytest.mark.parametrize("kind", [kind for kind in kinds() if kind != "model"])
def test_a_case_is_the_same_each_time(kind):
    case = min((case for case in CASES.values() if case.kind == kind), key=lambda case: len(case.shape))
    (model, inputs), (again, same) = case.make(), case.make()
    assert all(torch.equal(one, other) for one, other in zip(inputs, same, strict=True))
    assert all(torch.equal(one, other) for one, other in zip(model.parameters(), again.parameters(), strict=True))


def test_floats_are_in_the_dtype_that_is_asked_for():
    model, inputs = next(case for case in CASES.values() if case.kind == "linear").make("bf16")
    assert {one.dtype for one in (*inputs, *model.parameters())} == {torch.bfloat16}


def test_a_sweep_goes_on_where_it_stopped(tmp_path, capsys):
    file = tmp_path / "lines.jsonl"
    arguments = ("--contestants", "eager,pipeline", "--only", SMALLEST, "--settings", "f32/1", "--output", file)
    run(*arguments, "--check")
    _, *found = map(json.loads, file.read_text().splitlines())
    assert [one["contestant"] for one in found] == ["eager", "pipeline"]
    assert found[1]["error"] < 1e-6 and "wall" not in found[1]
    run(*arguments)  # times are wanted now
    run(*arguments)
    _, *found = (json.loads(line) for line in file.read_text().splitlines() if "machine" not in line)
    assert [one["contestant"] for one in found] == ["pipeline", "eager", "pipeline"]
    assert found[2]["wall"] > 0 and found[2]["cpu"] > 0
    assert row(capsys.readouterr().out, "rms_norm")[1] == "1"


def test_who_is_not_like_eager_is_wrong():
    exact = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    eager = exact.float()
    assert judged([eager], [exact], [eager], "f32").wrong is None
    assert judged([eager * (1 + 1e-6)], [exact], [eager], "f32").wrong is None
    assert "off by" in judged([eager * 1.001], [exact], [eager], "f32").wrong
    assert judged([eager * 1.001], [exact], [eager * 0.999], "f32").wrong is None  # eager is no nearer
    assert "shape" in judged([eager[:2]], [exact], [eager], "f32").wrong
    assert "infinity" in judged([torch.tensor([1.0, 2.0, float("nan")])], [exact], [eager], "f32").wrong
    infinite = torch.tensor([1.0, float("inf"), 4.0])
    assert judged([infinite], [exact], [infinite], "f32").wrong is None
    assert (
        "1 of 2 differ" in judged([torch.tensor([1, 2])], [torch.tensor([1, 3])], [torch.tensor([1, 3])], "f32").wrong
    )


def test_tables(tmp_path):
    found = outcomes_of(
        tmp_path,
        outcome("matmul/a", "eager", 4e-3, flops=1e8),
        outcome("matmul/a", "pipeline", 2e-3),
        outcome("matmul/a", "openvino", 1e-3, wrong="off by 1"),  # does not count
        outcome("matmul/a", "onnxruntime", 3e-3),
        outcome("matmul/b", "eager", 1e-3),
        outcome("matmul/b", "pipeline", 2e-3, wrong="off by 1e-3"),
        outcome("copy/c", "eager", 0.1, bytes=1 << 29),
        outcome("copy/c", "pipeline", 0.1),
        {"case": "copy/d", "setting": "f32/1", "contestant": "pipeline", "failure": "died"},
    )
    text = summary.page(found)
    assert row(text, "matmul")[1:] == ["2", "0.87", "50%", "1", "0.50", "1.00", "1", "50%"]
    assert row(text, "copy")[1:] == ["1", "1.00", "100%", "0", "1.00", "1.00", "0", "54%"]
    assert row(text, "matmul/b")[1:] == ["f32/1", "2", "eager", "0.50", "0.50", "-"]
    assert row(text, "**matmul/b**")[1:] == ["f32/1", "off by 1e-3"]
    assert row(text, "**copy/d**")[1:] == ["f32/1", "died"]


def test_settings():
    assert Setting.parse("bf16/2") == Setting("bf16", 2)
    assert str(Setting.parse("f32")) == "f32/1"
    kinds_of = {case.kind for case, _ in sweep.chosen(sweep.parse(["--sample"]))}
    assert kinds_of == set(kinds())
    grids = [str(setting) for _, setting in sweep.chosen(sweep.parse(["--only", "grid_sample/", "--settings", "bf16"]))]
    assert not grids  # eager has none in 16 bits


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--settings", "f8/1"], "no case is of f8"),
        (["--settings", "f32/x"], "invalid settings value"),
        (["--report", "--settings", "int4/1"], "no case is of int4"),
        (["--settings", "f32/0"], "one thread is the least"),
        (["--contestants", "eager,torchy"], "there is no torchy"),
        (["--contestants", "pipeline"], "judged by eager's"),
    ],
)
def test_wrong_arguments(arguments, message, capsys):
    with pytest.raises(SystemExit):
        sweep.main(arguments)
    assert message in capsys.readouterr().err
