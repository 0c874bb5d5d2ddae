"""Reduces a program in which a pass goes wrong to the few ops of it that the pass needs for that."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from pipeline.debug.extraction import Part, extract, ops_to_keep, prepare_alone, unwrapped, without_prepare
from pipeline.debug.interpreter import FailedCheck
from pipeline.debug.judgement import RunResults, difference
from pipeline.debug.tracing import outcome, sources_in, trace
from pipeline.debug.trail import in_child, written
from pipeline.errors import PipelineError
from pipeline.mlir import ir
from pipeline.passmanager.pass_pipeline import PassPipeline, watched
from pipeline.supervised import Lost

#: How many letters of a message tell it from others.
_MUCH = 80

#: Ops are tried one by one when there are no more than these left.
_FEW = 40


@dataclass(frozen=True)
class Verdict:
    """What a pass does to a program.

    Attributes:
        problem: how the results differ, or how the pass failed; None if it does nothing wrong.
        expected, got: what became of the program before and after the pass.
        after: the module that the pass left; None if it failed.
    """

    problem: str | None
    expected: RunResults
    got: RunResults
    after: ir.Module | None = None


Judge = Callable[[Part], Verdict]


def judge_of(pipeline: str, tolerance: float, failure: str | None = None) -> Judge:
    """Judges a pass on programs; where it failed it is only asked whether it still does for the same reason."""

    def judge(part: Part) -> Verdict:
        expected = RunResults() if failure is not None else outcome(part.module, part.call)
        try:
            after = _after(part, pipeline)
        except (Lost, PipelineError) as error:
            got = RunResults(failure=str(error))
            return Verdict(got.failure if failure is not None and _alike(failure, str(error)) else None, expected, got)
        if failure is not None:
            return Verdict(None, expected, RunResults(), after)
        got = outcome(after, part.call, sources=sources_in(part.module))
        return Verdict(difference(expected, got, tolerance), expected, got, after)

    return judge


def _alike(one: str, other: str) -> bool:
    """Whether two messages say the same but for names, types and numbers."""
    first, second = (re.sub(r"'[^']*'|@\w+|\S*\d\S*", "", text)[:_MUCH] for text in (one, other))
    return first == second


def _after(part: Part, pipeline: str) -> ir.Module:
    """The program after the pass, which a child runs."""

    def work() -> bytes:
        with watched():  # who looks at the compilation is not to look at this
            PassPipeline.parse(pipeline).run(part.module)
        return written(part.module)

    context = part.module.context
    return ir.Module.parse(in_child(context, work), context)


def reduced(whole: Part, judge: Judge) -> Part:
    """The smallest part that is found in which the pass still does wrong; `whole` if none is."""
    try:
        part = next((entry for entry in _entries(whole) if _is_wrong(entry, judge)), whole)
        while True:
            part = _window(part, judge)
            inner = unwrapped(part, trace(part.module, part.call).values)
            if inner is None or not _is_wrong(inner, judge):
                return part
            part = inner
    except FailedCheck:  # there are no values that its parts could be called with
        return whole


def _window(whole: Part, judge: Judge) -> Part:
    """Some ops in a row of @main, without those of them that the pass does not need to go wrong."""
    values, numbers = trace(whole.module, whole.call).values, ops_to_keep(whole.module)

    def is_wrong(kept: Collection[int]) -> bool:
        return _is_wrong(extract(whole, kept, values), judge)

    numbers = _shortest_suffix(_shortest_prefix(numbers, is_wrong), is_wrong)
    for number in list(numbers) if 1 < len(numbers) <= _FEW else []:
        fewer = [other for other in numbers if other != number]
        if fewer and is_wrong(fewer):
            numbers = fewer
    part = extract(whole, numbers, values)
    return part if _is_wrong(part, judge) else whole


def _entries(whole: Part) -> Iterator[Part]:
    """@main and @prepare, each without the other."""
    alone = prepare_alone(whole)
    if alone is not None:
        yield alone
    yield without_prepare(whole, trace(whole.module, whole.call).prepared)


def _is_wrong(part: Part, judge: Judge) -> bool:
    try:
        return judge(part).problem is not None
    except PipelineError:  # what is left is no program that can be interpreted
        return False


def _shortest_prefix(numbers: list[int], is_wrong: Callable[[Collection[int]], bool]) -> list[int]:
    """The fewest first ones that are still wrong; all if wrong ones do not stay wrong when some are added."""
    low, high = 1, len(numbers)
    while low < high:
        middle = (low + high) // 2
        if is_wrong(numbers[:middle]):
            high = middle
        else:
            low = middle + 1
    return numbers[:high] if high == len(numbers) or is_wrong(numbers[:high]) else numbers


def _shortest_suffix(numbers: list[int], is_wrong: Callable[[Collection[int]], bool]) -> list[int]:
    """Likewise the fewest last ones."""
    low, high = 0, len(numbers) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if is_wrong(numbers[middle:]):
            low = middle
        else:
            high = middle - 1
    return numbers[low:] if low == 0 or is_wrong(numbers[low:]) else numbers
