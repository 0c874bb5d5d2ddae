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


class Worker:
    """A process that compiles and runs programs, one after the other; another one takes its place when it dies."""

    def __init__(self) -> None:
        self._start()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def outcomes(self, programs: Sequence[Program], unfused_every: int = 0) -> Iterator[tuple[str, str]]:
        """(what happened, details) for each program: `right`, `wrong`, `refused`, `defect`, `crashed` or `hung`.

        One of `unfused_every` programs, if not 0, is compiled with each op in a kernel of its own, too.
        """
        for number, program in enumerate(programs):
            outcome = self._run(program, bool(unfused_every) and number % unfused_every == 0)
            if outcome[0] in ("crashed", "hung"):
                self._stop()
                self._start()
            yield outcome

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def _run(self, program: Program, unfused: bool) -> tuple[str, str]:
        try:
            self._pipe.send((program, unfused))
            if not self._pipe.poll(LIMIT):
                return "hung", f"no answer after {LIMIT} s"
            return self._pipe.recv()
        except (EOFError, BrokenPipeError):
            self._process.join()
            return "crashed", f"exit code {self._process.exitcode}"

    def _stop(self) -> None:
        self._process.kill()
        self._process.join()


def _serve(pipe: Connection) -> None:
    torch.set_num_threads(1)
    while True:
        program, unfused = pipe.recv()
        outcome = attempt(program)
        if unfused and outcome[0] == "right":
            what, details = attempt(program, fusion_rules=pipeline.load_rules("cpu").apart())
            outcome = what, details and f"unfused: {details}"
        pipe.send(outcome)


def attempt(program: Program, **options: Any) -> tuple[str, str]:
    """Compiles and runs a program in this process and compares results and arguments with eager's."""
    model = ProgramModel(program)
    try:
        executable = pipeline.compile(model, program.arguments(), **options)
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
