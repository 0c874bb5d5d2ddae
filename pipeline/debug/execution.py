"""Runs code in a child, and compares what it gives with the interpreter."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.debug.judgement import ROUNDED, RunResults, difference, largest_error, tolerance_of
from pipeline.debug.program_call import ProgramCall
from pipeline.debug.tracing import outcome
from pipeline.debug.trail import in_child
from pipeline.errors import PipelineError
from pipeline.mlir import ir
from pipeline.runtime.device.device_code import DeviceCode
from pipeline.runtime.interface.code import Code
from pipeline.supervised import Lost

#: How many times as far from exact results as the interpreter's, in the IR's types, those of code may be.
_TIMES_ROUNDING = 16


class NoDevice(PipelineError):
    """Code cannot be run, since the device that it is for is not here."""


def compared(
    called: ProgramCall, code: Code | DeviceCode, module: ir.Module, stages: Mapping[str, str] | None = None
) -> tuple[str | None, RunResults, RunResults]:
    """How a call of the code differs from the interpretation of a module, in words; what was expected, and what came.

    The interpretation in the IR's types says how far rounding takes results from those in float64; code may overflow
    and underflow as that does.

    Raises:
        NoDevice: the code is for a device that is not here.
    """
    wide = outcome(module, called.call)
    try:
        results = in_child(module.context, lambda: called.executed(called.executable(code, stages)))
    except (Lost, PipelineError) as error:
        if isinstance(code, DeviceCode) and not isinstance(error, Lost):
            raise NoDevice(f"the passes on tensors are right, but the code cannot be run here: {error}") from None
        got = RunResults(failure=f"the call failed: {error}")
        return difference(wide, got, 0.0), wide, got
    if wide.failure is not None:
        return f"no error, expected {wide.failure}", wide, RunResults(tuple(results.values()))
    numbers = sorted(results)
    expected, got = wide.chosen(numbers), RunResults(tuple(results[number] for number in numbers))
    tolerance = tolerance_of(module, ROUNDED)
    problem = difference(expected, got, tolerance)
    if problem is not None:
        exact = outcome(module, called.call, exact=True).chosen(numbers)
        rounding = largest_error(expected, exact)
        problem = difference(exact, got, tolerance) and difference(
            expected, got, max(tolerance, _TIMES_ROUNDING * rounding)
        )
    return problem, expected, got
