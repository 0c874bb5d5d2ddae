"""What becomes of random programs: compiled several at once, and compared with eager PyTorch in several ways.

An outcome is (what happened, details): `right`, `refused` (one clear error before anything runs), `wrong` (another
result than eager's), or `defect` (an exception that is none of ours, or a call that fails where eager's does not).
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from drawing import Draw
from numerics import differences
from tensor_programs import SYMBOLIC, Program, aliases, is_valid
from torch.export import Dim

import pipeline
from pipeline.captured import Captured
from pipeline.errors import CheckError
from pipeline.passmanager import registry
from pipeline.runtime.executable import Executable

Outcome = tuple[str, str]

RIGHT: Outcome = ("right", "")

#: What becomes of the sizes of a symbolic program, and how often.
_OTHER_SIZES = (0, 1, 1, 2, 3, 4, 6, 7, 9)
_TIMES = 4

#: Compiles some programs that were captured together: an outcome for each of them.
Judge = Callable[[Captured, Sequence[Program]], list[Outcome]]


class Several(torch.nn.Module):
    """Programs side by side, which is cheaper to compile than one by one.

    Attributes:
        traced: how many of them torch.export has run to their ends.
    """

    def __init__(self, programs: Sequence[Program]):
        super().__init__()
        self._programs = torch.nn.ModuleList([program.model() for program in programs])
        self._counts = [len(program.arguments()) for program in programs]
        self.traced = 0

    def forward(self, *arguments: torch.Tensor) -> list[tuple[torch.Tensor, ...]]:
        rest, results = list(arguments), []
        for number, (model, count) in enumerate(zip(self._programs, self._counts, strict=True)):
            self._reach(number)
            results.append(model(*rest[:count]))
            rest = rest[count:]
        self._reach(len(results))
        return results

    def _reach(self, number: int) -> None:
        if not torch.compiler.is_dynamo_compiling():
            self.traced = number


def fused(programs: Sequence[Program]) -> list[Outcome]:
    """With the rules of the target."""
    return attempt(programs, lambda captured, some: compared(captured.compile(), some))


def fused_and_unfused(programs: Sequence[Program]) -> list[Outcome]:
    """With the rules of the target, and with each op in a kernel of its own."""

    def judge(captured: Captured, some: Sequence[Program]) -> list[Outcome]:
        together = compared(captured.compile(), some)
        unfused = compared(captured.compile(fusion_rules=pipeline.load_rules("cpu").apart()), some)
        return [first_problem(*pair) for pair in zip(together, unfused, strict=True)]

    return attempt(programs, judge)


def on_threads(programs: Sequence[Program]) -> list[Outcome]:
    """On one thread, and on two with the same bits."""

    def judge(captured: Captured, some: Sequence[Program]) -> list[Outcome]:
        executable = captured.compile()
        executable.num_threads = 1
        found, one = compared(executable, some), executable(*arguments_of(some))
        executable.num_threads = 2
        two = executable(*arguments_of(some))
        same = [RIGHT if _equal(*pair) else ("wrong", "two threads: other bits") for pair in zip(one, two, strict=True)]
        return [first_problem(*pair) for pair in zip(found, same, strict=True)]

    return attempt(programs, judge)


def resized(programs: Sequence[Program]) -> list[Outcome]:
    """With some of the sizes from 2 on symbolic, called with several sizes; equal sizes stay equal."""

    return attempt(programs, lambda captured, some: compared_resized(captured.compile(), some), open_sizes)


def without_passes(programs: Sequence[Program]) -> list[Outcome]:
    """As `resized`, with a random half of the passes left out that may be, and with the other half."""

    def judge(captured: Captured, some: Sequence[Program]) -> list[Outcome]:
        draw = Draw(sum(map(ord, str(some))))
        names = [name for name in registry.passes() if not registry.is_mandatory(name)]
        half = [name for name in names if draw.integer(0, 1)]
        halves = half, [name for name in names if name not in half]
        found = [compared_resized(captured.compile(disable=left_out), some) for left_out in halves]
        return [first_problem(*outcomes) for outcomes in zip(*found, strict=True)]

    return attempt(programs, judge, open_sizes)


def compared_resized(executable: Executable, some: Sequence[Program]) -> list[Outcome]:
    """What comes of calls with the sizes that programs were drawn with, and with several others."""
    pairs = list(zip(some, _specialized(executable, some), strict=True))
    calls = [some, *([_resized(*pair, number) for pair in pairs] for number in range(_TIMES))]
    found = [_compared_or_refused(executable, some, call) for call in calls]
    return [first_problem(*outcomes) for outcomes in zip(*found, strict=True)]


def _compared_or_refused(executable: Executable, some: Sequence[Program], call: Sequence[Program]) -> list[Outcome]:
    """As `compared`; programs whose other sizes are refused keep their own, so that the others are called with theirs.

    torch.export may have found out more about sizes than the signature says.
    """
    try:
        return compared(executable, call)
    except pipeline.ArgumentError:
        refusals = [_refusal(executable, some, call, number) for number in range(len(some))]
    taken = [own if refusal else other for own, other, refusal in zip(some, call, refusals, strict=True)]
    return [refusal or outcome for refusal, outcome in zip(refusals, compared(executable, taken), strict=True)]


def _refusal(executable: Executable, some: Sequence[Program], call: Sequence[Program], number: int) -> Outcome | None:
    """Why the sizes of one program alone are refused; None if they are not."""
    try:
        executable(*arguments_of([*some[:number], call[number], *some[number + 1 :]]))
    except pipeline.ArgumentError as error:
        return "refused", str(error)
    return None


def open_sizes(programs: Sequence[Program]) -> tuple[tuple[dict[int, Any], ...]]:
    """The `dynamic_shapes` of several programs."""
    inputs = [(one, _opened(program)) for program in programs for one in program.inputs]
    return (tuple({dim: Dim.AUTO for dim, size in enumerate(one.shape) if size in opened} for one, opened in inputs),)


def _opened(program: Program) -> set[int]:
    """The sizes of a program that are symbolic: what is known beside them decides how code is made."""
    draw = Draw(sum(map(ord, str(program))))
    several = [size for size in SYMBOLIC.sizes if size > 1]
    return {size for size in several if draw.integer(0, 2)} or set(several)


def _specialized(executable: Executable, programs: Sequence[Program]) -> list[set[int]]:
    """For each program the sizes that torch.export has not left open."""
    arguments, found = iter(executable.signature.arguments), []
    for program in programs:
        fixed: set[int] = set()
        for one in program.inputs:
            kind = next(arguments).type
            known = zip(one.shape, one.shape if kind is None else kind.shape, strict=True)
            fixed |= {size for size, known_size in known if not str(known_size).isidentifier()}
        found.append(fixed)
    return found


def _resized(program: Program, fixed: set[int], number: int) -> Program:
    """The program with other sizes of its arguments, if eager accepts it with them; else as it was.

    Whether `reshape` gives a view depends on sizes where a tensor is strided; torch.export captures one of both.
    """
    draw = Draw(sum(map(ord, str(program))) + number)
    sizes = {size: draw.choice(_OTHER_SIZES) for size in SYMBOLIC.sizes if size > 1 and size not in fixed}
    inputs = tuple(replace(one, shape=tuple(sizes.get(size, size) for size in one.shape)) for one in program.inputs)
    other = replace(program, inputs=inputs)
    return other if is_valid(other, SYMBOLIC.most_elements) and aliases(other) == aliases(program) else program


def attempt(
    programs: Sequence[Program], judge: Judge, sizes: Callable[[Sequence[Program]], Any] = lambda _: None
) -> list[Outcome]:
    """The outcome of each program; those that spoil capture, compilation or the call for all are tried alone."""
    model = Several(programs).eval()
    with torch.no_grad():
        try:
            return judge(pipeline.capture(model, arguments_of(programs), dynamic_shapes=sizes(programs)), programs)
        except pipeline.ArgumentError as error:  # torch.export has found out more about sizes than the signature says
            outcome = ("refused", str(error))
        except CheckError as error:
            outcome = ("wrong", str(error))
        except pipeline.PipelineError as error:
            at_the_call = any(frame.name == "__call__" for frame in traceback.extract_tb(error.__traceback__))
            outcome = ("defect" if at_the_call else "refused", f"{type(error).__name__}: {error}")
        except Exception as error:  # what is not a PipelineError is the finding
            outcome = ("defect", f"{type(error).__name__}: {error}")
    if len(programs) == 1:
        return [outcome]
    traced = model.traced
    if traced < len(programs):  # it did not get through capture
        rest = attempt([*programs[:traced], *programs[traced + 1 :]], judge, sizes)
        return [*rest[:traced], *attempt([programs[traced]], judge, sizes), *rest[traced:]]
    half = len(programs) // 2
    return [*attempt(programs[:half], judge, sizes), *attempt(programs[half:], judge, sizes)]


def compared(executable: Executable, programs: Sequence[Program]) -> list[Outcome]:
    """What differs from eager, in results and in arguments that were written to."""
    arguments = arguments_of(programs)
    results, found = executable(*arguments), []
    for program, result in zip(programs, results, strict=True):
        theirs = program.arguments()
        expected, count = program.model()(*theirs), len(theirs)
        problems = [f"result{path}: {text}" for path, text in differences(result, expected)]
        problems += [f"argument{path}: {text}" for path, text in differences(arguments[:count], theirs)]
        found.append(("wrong", f"{'; '.join(problems)} for {program}") if problems else RIGHT)
        arguments = arguments[count:]
    return found


def arguments_of(programs: Sequence[Program]) -> tuple[torch.Tensor, ...]:
    """Fresh arguments of all programs, one after the other."""
    return tuple(argument for program in programs for argument in program.arguments())


def _equal(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(torch.equal(a.nan_to_num(), b.nan_to_num()) and torch.equal(a.isnan(), b.isnan()) for a, b in pairs)


def first_problem(*outcomes: Outcome) -> Outcome:
    """What is wrong, or else what is refused: one call that is refused does not excuse another one's numbers."""
    problems = [outcome for outcome in outcomes if outcome != RIGHT]
    return next((outcome for outcome in problems if outcome[0] != "refused"), next(iter(problems), RIGHT))
