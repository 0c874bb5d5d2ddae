"""Shortening a program that fails, as long as it fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from script_programs import ScriptProgram, script
from tensor_programs import LARGE, Program, is_valid


def reduced(program: Any, fails: Callable[[Any], bool]) -> Any:
    """The program with everything left out that `fails` does not need; nets and samples of ops stay as they are."""
    candidates = {ScriptProgram: _shorter_scripts, Program: _simpler}.get(type(program), lambda _: iter(()))
    while (shorter := next(filter(fails, candidates(program)), None)) is not None:
        program = shorter
    return program


def _simpler(program: Program) -> Iterator[Program]:
    """The program with less of one thing each, if eager accepts it."""
    for candidate in _candidates(program):
        if is_valid(candidate, LARGE.most_elements):
            yield candidate


def _candidates(program: Program) -> Iterator[Program]:
    if len(program.results) > 1:
        for number in range(len(program.results)):
            yield replace(program, results=program.results[:number] + program.results[number + 1 :])
    for number in reversed(range(len(program.steps))):
        yield from _without_step(program, number)
    for number, one in enumerate(program.inputs):
        for simpler in (
            replace(one, layout="contiguous"),
            replace(one, dtype=torch.float32),
            *(replace(one, shape=one.shape[:dim] + one.shape[dim + 1 :]) for dim in range(len(one.shape))),
        ):
            if simpler != one:
                yield replace(program, inputs=(*program.inputs[:number], simpler, *program.inputs[number + 1 :]))


def _without_step(program: Program, number: int) -> Iterator[Program]:
    """The program without one step: what it made is replaced by one of its operands."""
    values = list(program.arguments())
    made: list[tuple[int, int]] = []
    for step in program.steps:
        first = len(values)
        values += step.run(values)
        made.append((first, len(values)))
    first, last = made[number]
    for operand in dict.fromkeys(program.steps[number].operands):

        def moved(value: int, operand: int = operand) -> int:
            return operand if first <= value < last else value - (last - first if value >= last else 0)

        steps = [
            replace(step, operands=tuple(map(moved, step.operands)))
            for place, step in enumerate(program.steps)
            if place != number
        ]
        yield replace(program, steps=tuple(steps), results=tuple(map(moved, program.results)))


def _shorter_scripts(program: ScriptProgram) -> Iterator[ScriptProgram]:
    """The source without one line and the block that it opens, if there is one."""
    head, *lines = program.source.rstrip().split("\n")
    for start, line in enumerate(lines[:-1]):
        deeper = [len(one) - len(one.lstrip()) > len(line) - len(line.lstrip()) for one in lines[start + 1 :]]
        end = start + 1 + (deeper.index(False) if False in deeper else len(deeper))
        shorter = replace(program, source="\n".join([head, *lines[:start], *lines[end:]]) + "\n")
        if _is_valid_script(shorter):
            yield shorter


def _is_valid_script(program: ScriptProgram) -> bool:
    """Whether Python and TorchScript both take the source; TorchScript wants a variable to be set on every way."""
    try:
        program.python()(*program.arguments())
        script([program])
    except (SyntaxError, NameError, RuntimeError):
        return False
    return True
