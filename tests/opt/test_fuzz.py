"""Mutated programs and mutated pipelines: pipeline-opt ends with exit code 0, or with 1 and one message."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from driver import ROOT

PROGRAMS = 1000
PIPELINES = 300
SEED = 20261120
WORDS = (
    "%0",
    "i32",
    "index",
    "tensor<4xf32>",
    "tensor<?x?xf32>",
    "-1",
    "0",
    "{",
    "}",
    "(",
    ")",
    "true",
    "dense<",
    "@f",
    "#map",
)
PASSES = (
    "",
    "canonicalize,cse",
    "func.func(remove-unused-results,inline-constant-regions)",
    "inline-constant-regions,canonicalize,linalg-fuse-elementwise-ops",
    "one-shot-bufferize{bufferize-function-boundaries=true},convert-linalg-to-loops",
)
PIPELINE_SEEDS = (
    "builtin.module(func.func(canonicalize{max-iterations=3 top-down=false},cse),inline-constant-regions)",
    "canonicalize,func.func(remove-unused-results,buffer-hoisting),symbol-dce",
    "builtin.module(inline{default-pipeline=canonicalize max-iterations=2},one-shot-bufferize{test-analysis-only})",
    "any(sparsifier,convert-scf-to-cf,func.func(scf-for-loop-canonicalization))",
    "torch-backend-to-linalg-on-tensors-backend-pipeline,gpu.module(cse),form-groups,outline-kernels",
)


class Server:
    """The fork server, started for one test."""

    def __init__(self, folder: Path):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
        command = [sys.executable, str(Path(__file__).with_name("fuzz_server.py"))]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder
        )

    def run(self, *arguments: str) -> dict:
        self.process.stdin.write(json.dumps(arguments) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"pipeline-opt hung or took its parent down: {arguments}"
        return json.loads(answer)


@pytest.fixture
def server(tmp_path):
    started = Server(tmp_path)
    yield started
    started.process.stdin.close()
    assert started.process.wait(timeout=30) == 0


def check(answer: dict, what: str) -> None:
    errors = answer["stderr"].count("pipeline-opt: error: ")
    assert answer["code"] in (0, 1), what
    assert errors == answer["code"], f"{what}\n{answer['stderr']}"
    assert "Traceback" not in answer["stderr"] and "internal error" not in answer["stderr"], (
        f"{what}\n{answer['stderr']}"
    )


def mutated(text: str, randomness: random.Random) -> str:
    """`text` with a few tokens dropped, doubled, swapped, replaced or cut off."""
    tokens = re.findall(r"\s+|[\w%@#^!.]+|.", text)
    for _ in range(randomness.choice((1, 1, 2, 4, 16))):
        if not tokens:
            break
        here, there = (randomness.randrange(len(tokens)) for _ in range(2))
        match randomness.randrange(7):
            case 0:
                del tokens[here]
            case 1:
                tokens.insert(here, tokens[there])
            case 2:
                tokens[here], tokens[there] = tokens[there], tokens[here]
            case 3:
                tokens[here] = randomness.choice(WORDS)
            case 4:
                del tokens[here : here + randomness.randrange(20)]
            case 5:
                tokens.insert(here, chr(randomness.choice((0, 10, 34, 39, 123, 125, 255, 0x1F600))))
            case 6 if randomness.random() < 0.2:
                tokens = tokens[:here]
    return "".join(tokens)


def test_mutated_programs(server, tmp_path):
    randomness = random.Random(SEED)
    files = sorted(path for folder in ("passes", "dialects") for path in (ROOT / "lit_tests" / folder).glob("*.mlir"))
    seeds = [chunk for path in files for chunk in path.read_text().split("// -----")]
    path = tmp_path / "in.mlir"
    accepted = 0
    for number in range(PROGRAMS):
        program = mutated(randomness.choice(seeds), randomness)
        path.write_text(program, encoding="utf-8")
        answer = server.run(str(path), "--allow-unregistered-dialect", f"--pass-pipeline={randomness.choice(PASSES)}")
        check(answer, f"program {number}:\n{program}")
        accepted += answer["code"] == 0
    assert PROGRAMS // 20 < accepted < PROGRAMS  # else the mutations are too wild, or too tame, to test anything


def test_mutated_pipelines(server, tmp_path):
    randomness = random.Random(SEED)
    path = tmp_path / "in.mlir"
    path.write_text("func.func @f(%a: i32) -> i32 { return %a : i32 }\nfunc.func @g() { return }", encoding="utf-8")
    accepted = 0
    for _ in range(PIPELINES):
        pipeline = mutated(randomness.choice(PIPELINE_SEEDS), randomness).replace("\0", "")
        answer = server.run(str(path), f"--pass-pipeline={pipeline}")
        check(answer, pipeline)
        accepted += answer["code"] == 0
    assert PIPELINES // 20 < accepted < PIPELINES
