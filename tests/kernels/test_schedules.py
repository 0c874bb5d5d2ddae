"""Every schedule on every CPU that this machine can run: programs of drawn sizes against float64.

The sizes are odd and random, 0 and 1 among them; inputs are contiguous or not. What is drawn depends on the schedule
and the CPU alone. Programs of one schedule are compiled together, which takes a third of the time.
"""

from __future__ import annotations

import pytest
from schedule_checks import SCHEDULES, compare, decisions, draw, missing, together

import pipeline
from pipeline.targets.cpu.isa import CPUS, isa
from pipeline.targets.cpu.target import CpuTarget

RUN_HERE = [name for name in ("native", *CPUS) if CpuTarget(name).runs_here]


def seen_by_passes(cpu):
    """What schedules depend on. Those of bf16 are on `native`, and elsewhere, with what all CPUs of a kind have."""
    one = isa(cpu)
    return one.vector_bytes, one.vector_registers, one.masked_bits, one.fma, one.scalef


#: One CPU for all that passes see as one; the others, whose machine code LLVM makes in another way, share programs.
FIRST = list({seen_by_passes(cpu): cpu for cpu in reversed(RUN_HERE)}.values())
OTHERS = [cpu for cpu in RUN_HERE if cpu not in FIRST]
PAIRS = [(name, cpu) for name, one in SCHEDULES.items() for cpu in FIRST if one.exists(isa(cpu))]


def check(made, cpu, **options):
    """Compiles programs for a CPU, and compares their results; returns the decisions.

    Args:
        made: (schedule, what was drawn, program) for each.
    """
    model, inputs = together(made)
    executable = pipeline.compile(model, inputs, cpu=cpu, cache=False, num_threads=2, **options)
    results = executable(*inputs)
    executable.num_threads = 1
    compare(made, results, executable(*inputs))
    return decisions(executable)


@pytest.mark.parametrize(("name", "cpu"), PAIRS)
def test_schedule(monkeypatch, name, cpu):
    schedule = SCHEDULES[name]
    if schedule.layouts:
        monkeypatch.setattr(CpuTarget, "layouts", schedule.layouts)
    decided = check(draw(schedule, cpu, schedule.count), cpu, **schedule.options)
    assert missing(schedule, decided) == [], "\n".join(decided)


@pytest.mark.parametrize("cpu", OTHERS)
def test_machine_code_for_other_cpus(cpu):
    """A program of each third schedule that needs no options, others for each CPU: passes treat it like a first one."""
    usual = [one for one in SCHEDULES.values() if not (one.options or one.layouts) and one.exists(isa(cpu))]
    check([draw(one, cpu, 2)[-1] for one in usual[OTHERS.index(cpu) % 3 :: 3]], cpu)
