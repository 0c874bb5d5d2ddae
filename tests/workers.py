"""Running compiled programs in another process, so that a crash there is a result like any other."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

import torch
from numerics import differences
from programs import Program, ProgramModel

import pipeline

#: Seconds that one program may take to compile and run.
LIMIT = 60


def outcomes(programs: Sequence[Program]) -> Iterator[tuple[str, str]]:
    """(what happened, details) for each program: `right`, `wrong`, `refused`, `defect`, `crashed` or `hung`."""
    worker = _Worker()
    for program in programs:
        outcome = worker.run(program)
        if outcome[0] in ("crashed", "hung"):
            worker.stop()
            worker = _Worker()
        yield outcome
    worker.stop()


class _Worker:
    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def run(self, program: Program) -> tuple[str, str]:
        self._pipe.send(program)
        if not self._pipe.poll(LIMIT):
            return "hung", f"no answer after {LIMIT} s"
        try:
            return self._pipe.recv()
        except EOFError:
            self._process.join()
            return "crashed", f"exit code {self._process.exitcode}"

    def stop(self) -> None:
        self._process.kill()
        self._process.join()


def _serve(pipe: Connection) -> None:
    torch.set_num_threads(1)
    while True:
        pipe.send(attempt(pipe.recv()))


def attempt(program: Program) -> tuple[str, str]:
    """Compiles and runs a program in this process and compares results and arguments with eager's."""
    model = ProgramModel(program)
    try:
        executable = pipeline.compile(model, program.arguments())
    except pipeline.PipelineError as error:
        return "refused", f"{type(error).__name__}: {error}"
    except Exception as error:  # what is not a PipelineError is the finding
        return "defect", f"{type(error).__name__}: {error}"
    expected_arguments, arguments = program.arguments(), program.arguments()
    expected: Any = model(*expected_arguments)
    try:
        got = executable(*arguments)
    except Exception as error:  # a call that eager accepts
        return "defect", f"{type(error).__name__} at the call: {error}"
    found = [f"result{path}: {text}" for path, text in differences(got, expected)]
    found += [f"argument{path}: {text}" for path, text in differences(arguments, expected_arguments)]
    return ("wrong", "; ".join(found)) if found else ("right", "")
