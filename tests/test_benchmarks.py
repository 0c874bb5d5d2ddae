"""The benchmarks: two contestants on the smallest workload, whoever is missing or fails, the tables."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from rich.console import Console

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))  # scripts, not a package

import contestant_process
import language_report
import language_workloads
import report
import training_report
import training_workloads
from contestants import Job
from language_contestants import DECODERS
from training_contestants import TRAINERS

FOLDER = Path(report.__file__).parent

SMALLEST = "W2c_rnncell"

_spec = importlib.util.spec_from_file_location("benchmarks_compare", FOLDER / "compare.py")
assert _spec and _spec.loader
compare = importlib.util.module_from_spec(_spec)  # another file of tests is called compare, too
sys.modules["benchmarks_compare"] = compare
_spec.loader.exec_module(compare)


def run(*arguments):
    compare.main([*map(str, arguments)])


def outcome(contestant, workload=SMALLEST, threads=1, **values):
    times = {"capture_cpu": 0.5, "compile_cpu": 1.25, "held_mb": 90.0, "call_mb": 2.5, "error": 2e-7, "ms": 2.0}
    head = {"workload": workload, "contestant": contestant, "threads": threads, "malloc_tuned": False}
    return {**head, **times, "best_ms": 1.5, "ratio": 1.0, **values}


def lines_of(path, *outcomes):
    lines = report.Lines(path / "lines.jsonl")
    peak = {
        "cpu": "some CPU",
        "flops": 1e11,
        "bytes": 2e10,
        "date": "2026-01-02",
        "load": 0.5,
        "versions": {"torch": "2.13.0"},
    }
    for line in ({"machine": peak}, *outcomes):
        lines.append(line)
    return lines


def row(text, workload, title):
    """The cells of a workload in the table under a title."""
    table = text[text.index(title) :]
    return [cell.strip() for cell in table[table.index(f"| {workload} |") :].split("\n")[0].strip("| ").split("|")]


def test_pipeline_and_eager_on_the_smallest_workload(tmp_path, capsys):
    file = tmp_path / "lines.jsonl"
    run("--contestants", "pipeline", "--output", file, SMALLEST)
    machine, *found = map(json.loads, file.read_text().splitlines())
    assert machine["machine"]["flops"] > 1e9
    assert [one["contestant"] for one in found] == ["eager", "pipeline"]
    assert all(one["error"] < 1e-5 and one["ms"] >= one["best_ms"] > 0 for one in found), found
    assert found[1]["warm_cpu"] < found[1]["compile_cpu"]
    printed = capsys.readouterr().out
    assert f"**{found[1]['ratio']:.2f}**" in printed or found[1]["ratio"] < 1
    run("--report", "--output", file)
    assert capsys.readouterr().out in printed


def test_what_is_not_there_is_said(tmp_path, capsys):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # sees no package
    python.chmod(0o755)
    file = tmp_path / "lines.jsonl"
    run("--contestants", "openvino", "--python", f"openvino={python}", "--output", file, SMALLEST)
    assert capsys.readouterr().out.count("openvino is left out") == 1
    assert [one.get("contestant") for one in map(json.loads, file.read_text().splitlines())] == [None, "eager"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--contestants", "nobody"], "unknown contestant 'nobody'; there are: eager, pipeline"),
        (["--python", "pipeline=/nowhere/python"], "pipeline: /nowhere/python does not run"),
        (["W0"], "unknown workload 'W0'; there are: W1_weenet"),
        (["--threads", "4096"], "--threads 4096: there are"),
    ],
)
def test_wrong_arguments(tmp_path, arguments, message):
    with pytest.raises(SystemExit) as raised:
        run(*arguments, "--output", tmp_path / "lines.jsonl")
    assert message in str(raised.value)


def test_a_step_of_training(tmp_path):
    def create():
        layers = [torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)]
        return training_workloads.WithLoss(torch.nn.Sequential(*layers)), (torch.randn(5, 6), torch.arange(5) % 3)

    workload = training_workloads.TrainingWorkload(create)
    for contestant in (TRAINERS["eager"], TRAINERS["pipeline"]):
        run, report = contestant_process.compiled(contestant, workload, 1, tmp_path)
        assert report["error"] < 1e-5
        assert run().requires_grad


def test_the_table_of_training(tmp_path, capsys, monkeypatch):
    page = tmp_path / "training.md"
    page.write_text("before\n<!-- training -->\nold\n<!-- /training -->\nafter\n")
    monkeypatch.setattr(training_report, "PAGE", page)
    lines = lines_of(tmp_path, outcome("eager", "T11_mlp"), outcome("pipeline", "T11_mlp", ratio=1.5))
    run("--training", "--report", "--write", "--output", lines.path)
    assert "| T11_mlp | 2.00 | 1.50 | 2e-07 | 1 | 92 / 92 |" in page.read_text()
    assert page.read_text().startswith("before\n<!-- training -->") and page.read_text().endswith("\nafter\n")
    assert "old" not in page.read_text()
    with pytest.raises(SystemExit, match="unknown workload 'W2c_rnncell'; there are: T1_bert"):
        run("--training", SMALLEST)


@pytest.mark.parametrize(
    ("filled", "count", "bits", "bound"),
    [(0, 7, 32, 1e-5), (5, 1, 8, 0.05)],
)
def test_a_language_model(tmp_path, monkeypatch, filled, count, bits, bound):
    small = {"hidden_size": 128, "num_hidden_layers": 1, "intermediate_size": 256, "vocab_size": 200}
    monkeypatch.setattr(language_workloads, "SIZES", {**language_workloads.SIZES, **small})
    workload = language_workloads.workload(filled, count, language_workloads.Numbers(bits, 32 if bits == 4 else None))
    for contestant in (DECODERS["eager"], DECODERS["pipeline"]):
        run, report = contestant_process.compiled(contestant, workload, 1, tmp_path)
        assert report["error"] < bound
        assert 0 <= report["divergence"] < bound
        first = contestant.arrays(run())[0].copy()
        assert (contestant.arrays(run())[0] == first).all()  # in the same slot


def test_a_contestant_without_products_of_bf16_says_so():
    model = language_workloads.LastLogits(torch.nn.Identity(), language_workloads.Numbers(16))
    with pytest.raises(ValueError, match="no weights of 16 bits on CPUs"):
        DECODERS["onnxruntime-genai"].capture(Job(model, (), 1, FOLDER))


def test_the_table_of_language_models(tmp_path, monkeypatch):
    page = tmp_path / "generation.md"
    page.write_text(f"before\n{language_report.START}\nold\n{language_report.END}\nafter\n")
    monkeypatch.setattr(language_report, "PAGE", page)
    calls = [
        outcome(name, "L3_step_int8", divergence=3e-4, ms=ms) for name, ms in (("pipeline", 2.0), ("openvino", 3.0))
    ]
    run("--language", "--report", "--write", "--output", lines_of(tmp_path, *calls).path)
    assert "| L3_step_int8 | 2.00 | 3.00 | 1.50 |" in page.read_text()
    assert "| L3_step_int8 | 3e-04 | 3e-04 |" in page.read_text()
    assert "old" not in page.read_text()


def test_a_contestant_that_fails_says_why(tmp_path):
    script = "import contestant_process as p, contestants as c\nc.CONTESTANTS['eager'].modules = ('no_such',)\np.main()"
    command = [sys.executable, "-c", script, "run", "inference", "eager", SMALLEST, "1", str(tmp_path)]
    run = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=100)
    assert json.loads(run.stdout) == {"failure": "ModuleNotFoundError: No module named 'no_such'"}


def test_disturbed_calls_do_not_count():
    sleeps = iter([0.02])

    def call():
        for seconds in sleeps:
            time.sleep(seconds)  # as if somebody else had the processor
        sum(range(10000))

    found = contestant_process.slice_of_calls(call, 0.05, 1)
    assert found["quiet"] < found["calls"]
    assert found["median"] < 0.01


def test_where_all_calls_are_disturbed_their_cpu_time_counts():
    found = contestant_process.slice_of_calls(lambda: time.sleep(0.01), 0.03, 1)
    assert found["quiet"] == 0
    assert found["median"] < 0.005
    assert contestant_process.slice_of_calls(lambda: time.sleep(0.01), 0.03, 2)["median"] > 0.009


def test_tables(tmp_path):
    lines = lines_of(
        tmp_path,
        outcome("eager", ms=4.0),
        outcome("pipeline", ratio=2.0, warm_cpu=0.03),
        outcome("openvino", ratio=1.6),
        outcome("pipeline", "W8a_resnet18", warm_cpu=0.1, warm_held_mb=60.0, warm_call_mb=1.5),
        {**outcome("eager", "W8c_bert"), "held_mb": 4.0},
        {key: value for key, value in outcome("pipeline", "W8c_bert").items() if key in ("workload", "contestant")}
        | {"threads": 1, "malloc_tuned": False, "failure": "died"},
        outcome("eager", threads=2),
        outcome("pipeline", threads=2, ms=1.0, ratio=2.0),
    )
    text = report.tables(report.Lines(lines.path))
    assert "some CPU; one thread's peak 100 GFLOP/s, 20 GB/s; torch 2.13.0" in text
    assert row(text, SMALLEST, "Times: 1 thread") == [SMALLEST, "4", "2 (1.5)", "**2.00**", "1.60", "1.25", "0%"]
    assert row(text, SMALLEST, "Times: 2 threads")[-1] == "2.00"  # times as fast as one
    assert row(text, "W8c_bert", "Times: 1 thread")[2:5] == ["- (-)", "-", "-"]
    assert row(text, SMALLEST, "Largest error")[1:] == ["2e-07"] * 3
    assert row(text, SMALLEST, "Compilation") == [SMALLEST, "0.5 + 1.2", "0.03", "0.5 + 1.2"]
    assert row(text, "W8c_bert", "Compilation")[1:3] == ["fails", "fails"]
    assert row(text, "W8c_bert", "Memory") == ["W8c_bert", "4 + 2.5", "fails", "fails", "-"]
    assert row(text, "W8a_resnet18", "Memory") == ["W8a_resnet18", "-", "90 + 2.5", "60 + 1.5", "-"]
    assert "- W8c_bert, pipeline: died" in text


def test_of_several_outcomes_the_last_one_counts(tmp_path):
    busy = {
        "cpu": "some CPU",
        "flops": 9e10,
        "bytes": 1e10,
        "date": "2026-01-03",
        "load": 9.0,
        "versions": {"tvm": "1"},
    }
    lines = lines_of(tmp_path, outcome("eager", ms=4.0), {"machine": busy}, outcome("eager", ms=3.0))
    assert lines.machine["bytes"] == 2e10  # what it can do at most
    assert lines.machine["versions"] == {"torch": "2.13.0", "tvm": "1"}
    assert report.Lines(lines.path).get(report.USUAL, SMALLEST, "eager")["ms"] == 3.0
    assert lines.has(SMALLEST, ["eager"], 1, False)
    assert not lines.has(SMALLEST, ["eager", "pipeline"], 1, False)
    assert not lines.has(SMALLEST, ["eager"], 1, True)


def test_the_page_gets_the_tables_between_its_marks(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.START}\nstale\n{report.END}\nafter\n")
    monkeypatch.setattr(report, "PAGE", page)
    monkeypatch.setattr(report, "PICTURE", tmp_path / "pictures" / "picture.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    report.write_page(lines_of(tmp_path, outcome("eager"), outcome("pipeline")), Console(width=500))
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "stale" not in text
    assert "#### Times: 1 thread\n" in text
    assert "picture.png is not drawn" in capsys.readouterr().out
