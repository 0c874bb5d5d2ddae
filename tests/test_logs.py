"""The logs of pipeline: levels by PIPELINE_LOG, what each says, and that a program's own logging gets it."""

from __future__ import annotations

import logging
import os
import re
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

#: Loads no torch.
PROGRAM = """
import sys
import pipeline
if "own" in sys.argv:
    import logging
    logging.basicConfig(format="own %(name)s", stream=sys.stdout)
for _ in range(2):
    pipeline.compile(
        "func.func @main(%x: tensor<4xf32>, %y: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {"
        "  %e = math.exp %y : tensor<4x4xf32> %s = arith.addf %e, %e : tensor<4x4xf32>"
        "  %d = linalg.matmul ins(%s, %y : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>)"
        "  -> tensor<4x4xf32> return %d, %s : tensor<4x4xf32>, tensor<4x4xf32> }"
    )
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
    out, err = run(tmp_path, PIPELINE_LOG="passes,cache,remarks:debug")
    assert out == []
    said: dict[str, list[str]] = {}
    for line in err:
        name, _, message = line.partition(": ")
        said.setdefault(name.removeprefix("pipeline."), []).append(message)
    told = [re.sub(r"\d+", "N", message.partition(" ")[2]) for message in said["cache"]]
    assert told == ["is not there", "is kept, N bytes", "has N bytes"]
    assert any(message.startswith("form-groups: 0.") for message in said["passes"])
    assert said["remarks.fuse-elementwise"] and said["remarks.form-groups"]
    assert "compile" not in said


def test_a_programs_own_logging_gets_it(tmp_path):
    out, err = run(tmp_path, "own", PIPELINE_LOG="cache")
    assert (out, err) == (["own pipeline.cache"] * 3, [])


def test_weights_and_graphs(caplog):
    net, x = nn.Linear(4, 4), torch.ones(2, 4)
    exe = pipeline.compile(net, (x,))
    with caplog.at_level(logging.INFO, "pipeline.weights"), caplog.at_level(logging.INFO, "pipeline.dynamo"):
        exe(x)
        with torch.no_grad():
            net.weight.add_(1)
            exe(x)
            torch.compile(net, backend="pipeline")(x)
    said = [(record.name, record.getMessage()) for record in caplog.records if record.name.startswith("pipeline.")]
    (weights, changed), (dynamo, graph) = said
    assert (weights, dynamo) == ("pipeline.weights", "pipeline.dynamo")
    assert changed == "weights of Linear have changed: they are bound and prepared again"
    assert graph.startswith("a graph of ")
