"""What a compilation says of itself: a bar on a terminal, lines in the log, nothing else; and what Ctrl-C leaves."""

from __future__ import annotations

import contextlib
import logging
import os
import pty
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch
from torch import nn

import pipeline

NET = """
import torch
from torch import nn
import pipeline
from pipeline import progress
widths = range(16, 112, 16)
layers = [nn.Sequential(nn.Conv2d(n, n + 16, 3), nn.BatchNorm2d(n + 16), nn.GELU()) for n in widths]
net, x = nn.Sequential(*layers).eval(), torch.randn(1, 16, 40, 40)
"""


def small(**options: object) -> pipeline.Executable:
    return pipeline.compile(nn.ReLU(), (torch.ones(3),), cache=False, **options)


def on_a_terminal(code: str) -> str:
    """What a process writes to a terminal that is its stderr."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stderr=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    said = b""
    while True:
        try:
            said += os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
    os.close(ours)
    assert process.wait() == 0, said.decode()
    return re.sub(r"\x1b\[[\d;]*m", "", said.decode())  # without colours


def test_a_bar_on_a_terminal() -> None:
    said = on_a_terminal(NET + "progress.LONG = 0.0\npipeline.compile(net, (x,), cache=False)")
    assert "compiling" in said and "import: functionalize" in said and "target: machine code" in said
    counts = [(int(done), int(total)) for done, total in re.findall(r"(\d+)/(\d+) kernels", said)]
    (total,) = {total for _, total in counts}
    assert total > 5 and counts == sorted(counts) and counts[0] == (0, total) and counts[-1] == (total, total)
    assert said.rstrip().endswith(("\x1b[2K", "\x1b[?25h"))  # erased, and the cursor is back


def test_no_bar_for_what_is_done_soon() -> None:
    code = "import torch, pipeline\npipeline.compile(torch.nn.ReLU(), (torch.ones(3),))(torch.ones(3))"
    assert "compiling" not in on_a_terminal("from pipeline import progress\nprogress.LONG = 60.0\n" + code)


def test_nothing_where_there_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    small()
    assert capfd.readouterr() == ("", "")


def test_lines_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        small(verbose=True)
    lines = [record.getMessage() for record in caplog.records if record.name == "pipeline.compile"]
    stages = [line.partition(":")[0].strip() for line in lines]
    order = ["torch.export", "functionalize", "import", "simplify", "fuse", "vectorize", "machine code", "target"]
    assert [stage for stage in stages if stage in order] == order
    assert all(re.fullmatch(r" *[^:]+: \d+\.\d\d s| *\d+ of \d+ kernels", line) for line in lines)
    assert "1 of 1 kernels" in map(str.strip, lines)
    assert not {"form-groups", "fuse-elementwise"} & set(stages)


def test_passes_in_the_log_for_debugging(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "pipeline.compile"):
        small(verbose=True)
    assert any(record.getMessage().strip().startswith("form-groups: ") for record in caplog.records)


def test_the_level_of_the_log_decides_as_verbose_does(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        small()
    assert not [record for record in caplog.records if record.name.startswith("pipeline.")]
    with caplog.at_level(logging.INFO, "pipeline.passes"):
        small()
    assert {record.name for record in caplog.records if record.name.startswith("pipeline.")} == {"pipeline.passes"}
    with caplog.at_level(logging.INFO, "pipeline.compile"):
        small()
    assert any(record.getMessage().startswith("simplify: ") for record in caplog.records)


def test_the_environment_may_ask_for_it() -> None:
    code = "import torch, pipeline\nfor _ in range(2): pipeline.compile(torch.nn.ReLU(), (torch.ones(3),), cache=False)"
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PIPELINE_VERBOSE": "1"}, capture_output=True, text=True
    )
    assert run.returncode == 0
    assert run.stderr.count("pipeline.compile: simplify: ") == 2  # and not twice the second time


def test_torch_compile_says_it_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), torch.no_grad():
        torch.compile(nn.ReLU(), backend="pipeline", options={"verbose": True, "cache": False})(torch.ones(3))
    said = [record.getMessage() for record in caplog.records if record.name == "pipeline.compile"]
    assert sum(line.startswith("simplify: ") for line in said) == 1


def children(process: int) -> list[int]:
    """The processes that a process has started and not waited for."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it may be gone by now
            parent = status.read_text().rpartition(")")[2].split()[1]
            found += [int(status.parent.name)] if int(parent) == process else []
    return found


@pytest.mark.parametrize("stage", ["torch.export", "import", "fuse", "vectorize", "to LLVM IR"])
def test_ctrl_c_leaves_no_process_and_no_half_file(stage: str, tmp_path: Path) -> None:
    """Sent when a stage has ended, so that it comes in the one behind it."""
    env = {**os.environ, "PIPELINE_VERBOSE": "1", "PIPELINE_CACHE_DIR": str(tmp_path), "PIPELINE_CACHE_SIZE": "1G"}
    code = NET + "pipeline.compile(net, (x,))"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, env=env)
    assert process.stderr is not None
    for line in process.stderr:
        if line.removeprefix("pipeline.compile:").strip().startswith(f"{stage}: "):
            break
    time.sleep(0.02)
    others = children(process.pid)
    process.send_signal(signal.SIGINT)
    begun = time.monotonic()
    rest = process.stderr.read()
    assert process.wait() == -signal.SIGINT and "KeyboardInterrupt" in rest
    while any(Path(f"/proc/{child}").exists() for child in others):
        assert time.monotonic() - begun < 10
        time.sleep(0.05)
    assert time.monotonic() - begun < 10
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
