"""Every kind of kernel on AArch64: programs of drawn sizes against float64, with one thread and with two.

They are those of tests/kernels for this machine's CPUs. Many are compiled together and run at once.
"""

from __future__ import annotations

import itertools

import pytest
import torch
from emulator import Emulator
from schedule_checks import SCHEDULES, compare, draw, together
from schedules import Program, Several
from test_int8_products import SIGNS, SIZES, Quantizing, said

import pipeline
from pipeline.targets.cpu.isa import isa
from pipeline.targets.cpu.target import CpuTarget

#: What needs no options of the compilation.
PLAIN = [name for name, one in SCHEDULES.items() if not (one.options or one.layouts)]

#: Parts of those, about equally long to compile, and the CPU that each is for.
PARTS = [("neoverse-n1", PLAIN[0::3]), ("cortex-a72", PLAIN[1::3]), ("apple-m1", PLAIN[2::3])]

OTHERS = [name for name in SCHEDULES if name not in PLAIN]
BF16 = [name for name in OTHERS if "bf16" in name]


def check(folder, cpu, *parts):
    """Compiles programs for a CPU, a part at a time, and compares the results of all.

    Args:
        parts: ([(schedule, what was drawn, program), ..], options, passes that choose layouts).
    """
    emulator, threads = Emulator(folder, cpu), (1, 2)
    for made, options, layouts in parts:
        with pytest.MonkeyPatch.context() as patch:
            if layouts:
                patch.setattr(CpuTarget, "layouts", layouts)
            model, inputs = together(made)
            executable = pipeline.compile(model, inputs, cpu=cpu, linked=True, num_threads=2, **options)
        eager = model(*inputs)
        for number in threads:
            emulator.add(executable, inputs, eager, number)
    results = emulator.run()
    for (made, *_), alone, shared in zip(parts, results[0::2], results[1::2], strict=True):
        compare(made, shared, alone)


@pytest.mark.parametrize(("cpu", "names"), PARTS, ids=[cpu for cpu, _ in PARTS])
def test_schedules(tmp_path, cpu, names):
    made = [draw(SCHEDULES[name], cpu, 1)[-1] for name in names if SCHEDULES[name].exists(isa(cpu))]
    check(tmp_path, cpu, (made, {}, None))


@pytest.mark.parametrize(
    ("cpu", "names"),
    [("neoverse-n1", [name for name in OTHERS if name not in BF16]), ("neoverse-v1", BF16)],
    ids=["others", "bf16"],
)
def test_schedules_with_options(tmp_path, cpu, names):
    chosen = [SCHEDULES[name] for name in names if SCHEDULES[name].exists(isa(cpu))]
    check(tmp_path, cpu, *((draw(one, cpu, 2), one.options, one.layouts) for one in chosen))


@pytest.mark.parametrize("cpu", ["cortex-a76", "neoverse-n2"])
def test_products_of_bytes(tmp_path, cpu):
    """Of all signs, with zero points of data and weights: by sdot and udot, and by matrices of dot products."""
    torch.manual_seed(0)
    zeros = ["none", "data", "weight", "data and weight"]
    made = [
        Program(Quantizing(data, weight, length, columns, zero), (torch.randn(rows, length),))
        for (data, weight), (rows, length, columns), zero in zip(
            2 * list(itertools.product(SIGNS, SIGNS)), itertools.cycle(SIZES), itertools.cycle(zeros), strict=False
        )
    ]
    model = Several(made).eval().requires_grad_(False)
    inputs = tuple(x for program in made for x in program.inputs)
    executable = pipeline.compile(model, inputs, cpu=cpu, linked=True, num_threads=1)
    assert said(executable, "contract-in-int8") == ["adds up products of bytes"] * len(made)
    emulator = Emulator(tmp_path, cpu)
    emulator.add(executable, inputs, model(*inputs))
    (results,) = emulator.run()
    for program, (got,) in zip(made, results, strict=True):
        layer, (x,) = program.model, program.inputs
        exact = layer.dequantized(layer.quantized(x), torch.float64) @ layer.weight(torch.float64).T
        assert (got.double() - exact).abs().max() < 1e-6 * exact.abs().max(), (layer.data, layer.q.shape)
