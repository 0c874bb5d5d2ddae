"""Every schedule on every CPU that this machine can run: programs of drawn sizes against float64.

The sizes are odd and random, 0 and 1 among them, inputs are contiguous or not. What is drawn depends on the schedule and
the CPU alone. Programs of one schedule are compiled together, which takes a third of the time.
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
from pipeline.targets.cpu.isa import isa
from pipeline.targets.cpu.target import CpuTarget

SCHEDULES = {one.name: one for one in (*PRODUCTS, *WINDOWS, *ROWS, *MOVES)}
CPUS = [name for name in ("x86-64", "x86-64-v3", "x86-64-v4", "native") if CpuTarget(name).runs_here]
PAIRS = [(name, cpu) for name, one in SCHEDULES.items() for cpu in CPUS if one.exists(isa(cpu))]


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


def check(schedule, cpu, number, count):
    """Compiles programs of a schedule for a CPU, and compares; returns the decisions."""
    made = schedule.programs(number, count)
    programs = [program for _, program in made]
    model = Several(programs).eval().requires_grad_(False)
    inputs = tuple(x for program in programs for x in program.inputs)
    executable = pipeline.compile(model, inputs, cpu=cpu, cache=False, num_threads=2, **schedule.options)
    results = executable(*inputs)
    executable.num_threads = 1
    alone = executable(*inputs)
    for (drawn, program), got, single in zip(made, results, alone, strict=True):
        eager = pytree.tree_leaves(program.model(*program.inputs))
        wanted = pytree.tree_leaves(exact(program.model, program.inputs))
        sizes = [1 + one.double().abs() for one in wanted]
        if schedule.linear:
            sizes = pytree.tree_leaves(magnitude(program.model, program.inputs))
        for place, (one, other) in enumerate(zip(got, single, strict=True)):
            problem = wrong(one, eager[place], wanted[place], sizes[place], schedule.units)
            assert problem is None, f"{schedule.name} {drawn}, result {place}: {problem}"
            same = one.view(torch.uint8) if one.dtype == torch.bool else one
            assert torch.equal(same.nan_to_num(), other.nan_to_num()), f"{drawn}: other bits with one thread"
    return decisions(executable)


@pytest.mark.parametrize(("name", "cpu"), PAIRS, ids=lambda one: str(one))
def test_schedule(monkeypatch, name, cpu):
    schedule = SCHEDULES[name]
    if schedule.layouts:
        monkeypatch.setattr(CpuTarget, "layouts", schedule.layouts)
    decided = check(schedule, cpu, zlib.crc32(f"{name} {cpu}".encode()), schedule.count)
    assert any(re.search(schedule.proof, one) for one in decided), "\n".join(decided)
