"""The logs of pipeline: levels by PIPELINE_LOG, what each says, and that a program's own logging gets it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import pipeline
from pipeline import logs
from pipeline.errors import OptionError
from pipeline.tools import cache as cache_driver

PROGRAM = """
import sys
import torch, pipeline
if "own" in sys.argv:
    import logging
    logging.basicConfig(format="own %(name)s", stream=sys.stdout)
net, x = torch.nn.Linear(4, 4), torch.ones(2, 4)
exe = [pipeline.compile(net, (x,)) for _ in range(2)][0]
with torch.no_grad():
    net.weight.add_(1)
    exe(x)
    torch.compile(net, backend="pipeline")(x)
"""


def test_levels():
    assert logs.levels("") == {}
    assert logs.levels("passes, cache:debug") == {"passes": logging.INFO, "cache": logging.DEBUG}
    assert logs.levels("+cache,-passes") == {"cache": logging.DEBUG, "passes": logging.ERROR}
    everything = logs.levels("all,cache:ERROR")
    assert everything == dict.fromkeys(logs.LOGS, logging.INFO) | {"cache": logging.ERROR}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("passes,chache:debug", "there is no log 'chache'; there are all, compile, passes, cache, "),
        ("cache:loud", "there is no level 'loud'; there are debug, info, warning, error"),
    ],
)
def test_what_there_is_not_is_one_error(text, says, monkeypatch, capsys):
    with pytest.raises(OptionError, match=f"PIPELINE_LOG={text}: {says}"):
        logs.levels(text)
    monkeypatch.setenv("PIPELINE_LOG", text)
    logs.set_up.cache_clear()
    with pytest.raises(OptionError, match=says):
        pipeline.compile(nn.ReLU(), (torch.ones(2),))
    assert cache_driver.main(["size"]) == 1
    assert capsys.readouterr().err.startswith(f"pipeline-cache: error: PIPELINE_LOG={text}: {says}")


def run(tmp_path: Path, *argv: str, **environment: str) -> tuple[list[str], list[str]]:
    """The lines of stdout and stderr."""
    environment = {**os.environ, "PIPELINE_CACHE_DIR": str(tmp_path), "PIPELINE_CACHE_SIZE": "1G", **environment}
    command = [sys.executable, "-c", PROGRAM, *argv]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout.splitlines(), done.stderr.splitlines()


def test_what_each_log_says(tmp_path):
    out, err = run(tmp_path, PIPELINE_LOG="passes,cache,remarks,weights:debug,dynamo")
    assert out == []
    said: dict[str, list[str]] = {}
    for line in err:
        name, _, message = line.partition(": ")
        said.setdefault(name.removeprefix("pipeline."), []).append(message)
    kinds = [message.split()[1] for message in said["cache"]]
    assert kinds[:3] == ["is", "is", "has"] and "is not there" in said["cache"][0] and "is kept" in said["cache"][1]
    assert any(message.startswith("form-groups: 0.") for message in said["passes"])
    assert any(" in " in message or "missed: " in message for message in said["remarks.pack-weights"])
    assert said["weights"] == ["weights of Linear have changed: they are bound and prepared again"]
    assert len(said["dynamo"]) == 1 and said["dynamo"][0].startswith("a graph of ")
    assert "compile" not in said


def test_a_programs_own_logging_gets_it(tmp_path):
    out, err = run(tmp_path, "own", PIPELINE_LOG="weights")
    assert (out, err) == (["own pipeline.weights"], [])
    assert run(tmp_path) == ([], [])
