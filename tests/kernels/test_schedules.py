"""Every schedule on every CPU that this machine can run: programs of drawn sizes against float64.

The sizes are odd and random, 0 and 1 among them; inputs are contiguous or not. What is drawn depends on the schedule
and the CPU alone. Programs of one schedule are compiled together, which takes a third of the time.
"""

from __future__ import annotations

import re
import zlib

import pytest
import torch
from schedules import Several, exact, magnitude
from schedules_of_moves import MOVES
from schedules_of_products import PRODUCTS
from schedules_of_rows import ROWS
from schedules_of_windows import WINDOWS
from torch.utils import _pytree as pytree

import pipeline
from pipeline.targets.cpu.isa import CPUS, isa
from pipeline.targets.cpu.target import CpuTarget

SCHEDULES = {one.name: one for one in (*PRODUCTS, *WINDOWS, *ROWS, *MOVES)}
RUN_HERE = [name for name in ("native", *CPUS) if CpuTarget(name).runs_here]


def seen_by_passes(cpu):
    """What schedules depend on. Those of bf16 are on `native`, and elsewhere, with what all CPUs of a kind have."""
    one = isa(cpu)
    return one.vector_bytes, one.vector_registers, one.masked_bits, one.fma, one.scalef


#: One CPU for all that passes see as one; the others, whose machine code LLVM makes in another way, share programs.
FIRST = list({seen_by_passes(cpu): cpu for cpu in reversed(RUN_HERE)}.values())
OTHERS = [cpu for cpu in RUN_HERE if cpu not in FIRST]
PAIRS = [(name, cpu) for name, one in SCHEDULES.items() for cpu in FIRST if one.exists(isa(cpu))]


def decisions(executable):
    """What was decided about a program, a line each: what passes said, the kinds of its kernels."""
    said = [f"{one.pass_name}: {one.reason}" for one in executable.remarks]
    return said + [f"kernel: {one.kind}" for one in executable.kernels]


def wrong(got, eager, wanted, size, units):
    """How a result differs from what it has to be; None if it does not."""
    if got.dtype != eager.dtype or got.shape != eager.shape:
        return f"{got.dtype} {tuple(got.shape)}, expected {eager.dtype} {tuple(eager.shape)}"
    if not (units and got.dtype.is_floating_point):
        right = (got == eager) | ((got != got) & (eager != eager))
    else:
        bound = units * torch.finfo(got.dtype).eps * size
        right = ((got.double() - wanted).abs() <= bound) | (got.double() == wanted) | (got.isnan() & wanted.isnan())
    if right.all():
        return None
    where = tuple((~right).nonzero()[0].tolist())
    bad = f"{int((~right).sum())} of {right.numel()} elements, first {list(where)}"
    return f"{bad}: {got[where]}, expected {wanted[where]}"


def bits(x):
    """The bytes of a tensor."""
    return x.contiguous().reshape(-1).view(torch.uint8)


def check(made, cpu, **options):
    """Compiles programs for a CPU, and compares their results; returns the decisions.

    Args:
        made: (schedule, what was drawn, program) for each.
    """
    programs = [program for *_, program in made]
    model = Several(programs).eval().requires_grad_(False)
    inputs = tuple(x for program in programs for x in program.inputs)
    executable = pipeline.compile(model, inputs, cpu=cpu, cache=False, num_threads=2, **options)
    results = executable(*inputs)
    executable.num_threads = 1
    alone = executable(*inputs)
    for (schedule, drawn, program), got, single in zip(made, results, alone, strict=True):
        eager = pytree.tree_leaves(program.model(*program.inputs))
        wanted = pytree.tree_leaves(exact(program.model, program.inputs))
        sizes = [1 + one.double().abs() for one in wanted]
        if schedule.linear:
            sizes = pytree.tree_leaves(magnitude(program.model, program.inputs))
        for place, (one, other) in enumerate(zip(got, single, strict=True)):
            problem = wrong(one, eager[place], wanted[place], sizes[place], schedule.units)
            assert problem is None, f"{schedule.name} {drawn}, result {place}: {problem}"
            assert torch.equal(bits(one), bits(other)), f"{schedule.name} {drawn}: other bits with one thread"
    return decisions(executable)


def draw(schedule, cpu, count, salt=""):
    """Programs of a schedule, always the same ones for a CPU."""
    number = zlib.crc32(f"{schedule.name} {cpu} {salt}".encode())
    return [(schedule, *one) for one in schedule.programs(number, count)]


def missing(schedule, decided):
    """What of the proof that a schedule was chosen is not among the decisions."""
    return [one for one in schedule.proof if not any(re.search(one, text) for text in decided)]


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
