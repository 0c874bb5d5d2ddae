"""Profiles: what they account for, kernel by kernel, and what they leave alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn

import pipeline
from pipeline.errors import PipelineError
from pipeline.runtime.report.machine_peak import Peak, measured_peak
from pipeline.tools import compile as compile_driver
from pipeline.tools import run as run_driver


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(256, 512), nn.Linear(512, 256)

    def forward(self, x):
        return torch.softmax(self.second(torch.relu(self.first(x))), -1)


@pytest.fixture(scope="module")
def mixer():
    torch.manual_seed(0)
    return Mixer().requires_grad_(False)


@pytest.fixture(scope="module")
def executable(mixer):
    return pipeline.compile(mixer, (torch.randn(512, 256),))


@pytest.fixture(scope="module")
def timed(mixer):
    return pipeline.compile(mixer, (torch.randn(512, 256),), profile=True)


@pytest.fixture(scope="module")
def profile(executable):
    return executable.profile(torch.randn(512, 256), repeats=5)


def test_every_kernel_has_its_row(timed, profile):
    prepare = {"transpose", "pack"}
    assert {row.name for row in profile.rows} == {k.name for k in timed.kernels if not prepare & set(k.words)}


def test_rows_account_for_every_run(timed, tmp_path):
    """Rows are what their kernels' runs took, to the nanosecond; a call has no time but those and what lies between."""
    profile = timed.profile(torch.randn(512, 256), repeats=1)
    profile.save_trace(tmp_path / "trace.json")
    main, *runs = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert main["dur"] * 1e3 == pytest.approx(profile.code_seconds * 1e9, abs=0.5)
    taken = Counter()
    for run in runs:
        taken[run["name"], run["args"]["source"]] += run["dur"] * 1e3
    assert {(row.name, row.source): row.seconds * 1e9 for row in profile.rows} == pytest.approx(taken, abs=0.5)
    assert profile.accounted == pytest.approx(sum(taken.values()) / 1e9 / profile.seconds)
    assert profile.seconds >= profile.code_seconds


def test_rows_have_source_lines_and_work(profile):
    named = {row.name: row for row in profile.rows if row.name != "copy"}
    products = [row for row in named.values() if row.operations and row.operations >= 2 * 512 * 256 * 512]
    assert len(products) == 2
    for row in products:
        assert row.source.startswith(__file__)
        assert row.runs == 1
        assert row.operations < 1.1 * 2 * 512 * 256 * 512
        assert row.bytes >= 4 * (512 * 256 + 256 * 512 + 512 * 512)
    assert [row.seconds for row in profile.rows] == sorted((row.seconds for row in profile.rows), reverse=True)


def test_the_table(profile):
    said = str(profile)
    assert "of it in kernels and copies" in said and "GFLOP/s" in said
    assert all(row.name in said for row in profile.rows)
    assert "(between kernels)" in said and "(arguments and results)" in said


def test_the_executable_itself_times_nothing(executable, profile):
    assert "pipeline_clock" not in executable.ir("llvm")
    assert executable._record is None


def test_results_of_code_that_times_itself(mixer, timed):
    x = torch.randn(512, 256)
    torch.testing.assert_close(timed(x), mixer(x))
    assert "pipeline_begin" in timed.ir("llvm")
    assert timed.profile(x).calls == 10


def test_the_trace(profile, tmp_path):
    profile.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert events[0]["name"] == "main" and events[0]["ts"] == 0
    inner = events[1:]
    assert len(inner) == sum(row.runs for row in profile.rows)
    ends = [event["ts"] + event["dur"] for event in inner]
    assert all(end <= event["ts"] for end, event in zip(ends, inner[1:], strict=False))
    assert ends[-1] <= events[0]["dur"]
    with pytest.raises(PipelineError, match="cannot be written"):
        profile.save_trace(tmp_path / "missing" / "trace.json")


class Loop(nn.Module):
    def forward(self, x):
        def body(i, x):
            return i + 1, torch.tanh(x @ x)

        return torch._higher_order_ops.while_loop(lambda i, x: i < 50, body, (torch.tensor(0), x))[1]


def test_kernels_in_loops():
    x = torch.randn(64, 64) / 64
    exe = pipeline.compile(Loop(), (x,))
    assert any(row.runs == 50 and row.operations for row in exe.profile(x).rows)


def test_a_loop_that_is_one_kernel():
    x = torch.randn(16, 16) / 16
    exe = pipeline.compile(Loop(), (x,))
    (kernel,) = exe.kernels
    assert kernel.kind == "loop" and kernel.operations == 50 * (2 * 16**3 + 16**2)
    assert any(row.runs == 1 and row.operations == kernel.operations for row in exe.profile(x).rows)


def test_dynamic_sizes_have_no_rates(mixer):
    exe = pipeline.compile(mixer, (torch.randn(512, 256),), dynamic_shapes=({0: torch.export.Dim("n", max=1024)},))
    profile = exe.profile(torch.randn(100, 256))
    assert any(row.operations is None for row in profile.rows)
    assert "-" in str(profile)


def test_more_events_than_there_is_room_for(monkeypatch):
    from pipeline.runtime.report import event_record

    monkeypatch.setattr(event_record, "EVENTS", 3)
    x = torch.randn(64, 64) / 64
    profile = pipeline.compile(Loop(), (x,), profile=True).profile(x)
    assert any(row.runs == 50 for row in profile.rows)
    assert len(profile.events) == 3


def test_peak():
    assert measured_peak().operations > 1e9 and measured_peak().bytes > 1e8
    assert Peak(100.0, 10.0).share(2.0, 100, 1) == 0.5
    assert Peak(100.0, 10.0).share(2.0, 1, 20) == 1.0
    assert Peak(100.0, 10.0).share(0.0, 1, 20) == 0.0


@pytest.fixture
def net_file(tmp_path):
    (tmp_path / "net.py").write_text(
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x @ x.T)\n"
        "\n\ndef model():\n    return Net(), (torch.randn(128, 64),)\n"
    )
    np.save(tmp_path / "x.npy", np.ones((128, 64), np.float32))
    return tmp_path


def test_the_drivers(net_file, capsys):
    artifact = str(net_file / "timed")
    assert compile_driver.main([str(net_file / "net.py"), "--profile", "-o", artifact]) == 0
    argv = [artifact, "--input", str(net_file / "x.npy"), "--profile", "--trace", str(net_file / "trace.json")]
    assert run_driver.main(argv) == 0
    said = capsys.readouterr().out
    assert "kernels and copies" in said and "net.py" in said
    assert json.loads((net_file / "trace.json").read_text())["traceEvents"]


def test_an_artifact_that_does_not_time_itself(net_file, capsys):
    artifact = str(net_file / "plain")
    assert compile_driver.main([str(net_file / "net.py"), "-o", artifact]) == 0
    assert run_driver.main([artifact, "--input", str(net_file / "x.npy"), "--profile"]) == 1
    assert "compile the model with profile=True" in capsys.readouterr().err


PERF = """
import os, numpy as np, pipeline
from pathlib import Path
exe = pipeline.load(__import__("sys").argv[1])
exe(np.ones((128, 64), np.float32))
path = Path(f"/tmp/perf-{os.getpid()}.map")  # where `perf` looks
lines = [line.split() for line in path.read_text().splitlines()]
path.unlink()
places = sorted((int(start, 16), int(size, 16), name) for start, size, name in lines)
names = [name for _, _, name in places]
assert "pipeline_main" in names, names
assert all(kernel.name in names for kernel in exe.kernels), names
assert all(size for _, size, _ in places)
assert all(one + size <= other for (one, size, _), (other, _, _) in zip(places, places[1:]))
maps = [line.split()[0].split("-") for line in open("/proc/self/maps") if " r-xp " in line]
inside = [any(int(a, 16) <= start < int(b, 16) for a, b in maps) for start, _, _ in places]
assert all(inside), places
"""


def test_names_for_perf(net_file, tmp_path):
    artifact = str(net_file / "plain")
    assert compile_driver.main([str(net_file / "net.py"), "-o", artifact]) == 0
    for wanted in ("1", "0"):
        ran = subprocess.run(
            [sys.executable, "-c", PERF, artifact],
            env={"PIPELINE_PERF_MAP": wanted, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert (ran.returncode == 0) == (wanted == "1"), ran.stderr


def test_kernels_are_ranges_of_torchs_profiler(timed, executable):
    x = torch.randn(512, 256)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as watched:
        timed(x)
        torch.tanh(x)
        executable(x)
    events = watched.events()
    found = [event for event in events if event.name in {kernel.name for kernel in timed.kernels}]
    assert sorted(event.name for event in found) == sorted(row.name for row in timed.profile(x, repeats=1).rows)
    (whole,) = (event for event in events if event.name == "pipeline.main")
    assert all(event.cpu_parent is whole for event in found)
    assert all(whole.time_range.start <= event.time_range.start <= event.time_range.end for event in found)
    assert sum(event.name == "aten::tanh" for event in events) == 1
    torch.testing.assert_close(timed(x), executable(x), rtol=0, atol=0)


def test_kernels_are_ranges_under_torch_compile_and_beside_fallbacks():
    class Inverse(nn.Module):
        def forward(self, x):
            return torch.linalg.qr(x.sin() * 2)[0].exp() + 1

    torch._dynamo.reset()
    run = torch.compile(Inverse(), backend="pipeline", options={"profile": True, "fallback": "torch"})
    x = torch.randn(5, 5)
    with torch.no_grad():
        run(x)
        with torch.profiler.profile() as watched:
            run(x)
    names = [event.name for event in watched.events()]
    assert names.count("pipeline.main") == 2 and "aten::linalg_qr" in names
    assert any("exp" in name and "aten" not in name for name in names)
    torch._dynamo.reset()
