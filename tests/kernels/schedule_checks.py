"""All schedules, programs that have them, and whether results are what they have to be."""

from __future__ import annotations

import re
import zlib

import torch
from schedules import Several, exact, magnitude
from schedules_of_moves import MOVES
from schedules_of_products import PRODUCTS
from schedules_of_rows import ROWS
from schedules_of_windows import WINDOWS
from torch.utils import _pytree as pytree

SCHEDULES = {one.name: one for one in (*PRODUCTS, *WINDOWS, *ROWS, *MOVES)}


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


def together(made):
    """Programs as one model, and what it is called with; `made` has (schedule, what was drawn, program) for each."""
    programs = [program for *_, program in made]
    model = Several(programs).eval().requires_grad_(False)
    return model, tuple(x for program in programs for x in program.inputs)


def compare(made, results, alone):
    """Fails where results of programs are not what they have to be, or are others with one thread: `alone`."""
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


def draw(schedule, cpu, count, salt=""):
    """Programs of a schedule, always the same ones for a CPU."""
    number = zlib.crc32(f"{schedule.name} {cpu} {salt}".encode())
    return [(schedule, *one) for one in schedule.programs(number, count)]


def missing(schedule, decided):
    """What of the proof that a schedule was chosen is not among the decisions."""
    return [one for one in schedule.proof if not any(re.search(one, text) for text in decided)]
