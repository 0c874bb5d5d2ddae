"""Machine code for AArch64: what the linker makes of it, what programs that have it say, and its inner loops."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest
import torch
from inner_loops import inner_loops
from linked_programs import FIRST, SECOND, call
from llvmlite import binding
from torch import nn

import pipeline
from pipeline.errors import ArtifactError, CompileError
from pipeline.runtime.native import elf
from pipeline.runtime.native.linker import link
from pipeline.runtime.native.object_loader import NativeCode
from pipeline.runtime.native.relocations import RELOCATIONS
from pipeline.targets.cpu.isa import isa
from pipeline.targets.cpu.machine_code import Machine
from pipeline.tools import compile as compile_driver

GCC, QEMU = "aarch64-linux-gnu-gcc", ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")


def object_file(text, cpu="neoverse-n1"):
    known = isa(cpu)
    machine = Machine(known.cpu, known.features, known.machine).create()
    module = binding.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    return machine.emit_object(module)


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


PROGRAM = """
#include <stdint.h>
#include <stdio.h>
#include <math.h>
void entry(int64_t *slots);
double (*address_of_cos(void))(double);
int main(void) {
  for (int64_t x = 0; x < 8; ++x) {
    int64_t slots[6] = {x};
    entry(slots);
    for (int i = 1; i < 6; ++i) printf("%lld ", (long long)slots[i]);
  }
  printf("%d", address_of_cos()(0.5) == cos(0.5));
}
"""


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_what_code_holds_and_calls(tmp_path, order):
    """The same as on this machine: tables of addresses, jumps, libm, variables, constants; see tests/native."""
    texts = FIRST, SECOND
    (tmp_path / "code.so").write_bytes(link([object_file(texts[number]) for number in order], "code.so"))
    (tmp_path / "main.c").write_text(PROGRAM)
    assert run(tmp_path, GCC, "main.c", "code.so", "-lm", "-Wl,-rpath,$ORIGIN", "-o", "main") == (0, "")
    native = NativeCode([object_file(text, "native") for text in texts])
    wanted = [number for x in range(8) for number in call(native, x)[1:]]
    assert run(tmp_path, *QEMU, "./main") == (0, " ".join(map(str, [*wanted, 1])))


def test_pages_of_all_systems(tmp_path):
    """Some have pages of 64 KB; the file is no longer for that."""
    data = link([object_file(FIRST), object_file(SECOND)], "code.so")
    (tmp_path / "code.so").write_bytes(data)
    assert len(data) < 10_000
    code, said = run(tmp_path, "aarch64-linux-gnu-readelf", "-lW", "code.so")
    found = re.findall(r"LOAD +(0x\w+) (0x\w+) .* (R\w?|R E|RW) +0x10000$", said, re.MULTILINE)
    assert code == 0 and [flags for *_, flags in found] == ["R", "R E", "RW"]
    places = [(int(offset, 16), int(address, 16)) for offset, address, _ in found]
    assert all(address % 65536 == offset % 65536 for offset, address in places)
    pages = [address // 65536 for _, address in places]
    assert len(set(pages)) == 3


def test_code_that_is_far_away():
    image, place, call26 = np.zeros(8, np.uint8), np.array([0]), np.array([283])
    fill_in = RELOCATIONS[elf.AARCH64].fill_in
    fill_in(image, place, call26, place + (1 << 27) - 4)
    assert image[:4].view("<u4")[0] == (1 << 25) - 1
    with pytest.raises(CompileError, match="128 MB"):
        fill_in(image, place, call26, place + (1 << 27))


def test_it_is_not_loaded_here():
    with pytest.raises(ArtifactError, match="it is for aarch64 machines, this one is x86_64"):
        NativeCode([object_file(SECOND)])


NET = """
import torch

def model():
    torch.manual_seed(0)
    return torch.nn.Linear(40, 24).requires_grad_(False), (torch.linspace(-1, 1, 120).view(3, 40),)
"""

MAIN = """
#include "net.h"
int main(void) {
  float x[3][40], y[3][24];
  for (int i = 0; i < 120; ++i) (&x[0][0])[i] = -1 + 2 * (float)i / 119;
  int64_t xs[] = {3, 40}, ys[] = {3, 24};
  DLTensor input = {x, {1, 0}, 2, {2, 32, 1}, xs, NULL, 0}, output = {y, {1, 0}, 2, {2, 32, 1}, ys, NULL, 0};
  net model;
  if (net_open(&model) || net_run(&model, &input, &output)) return puts(model.error) & 0;
  for (int i = 0; i < 72; ++i) printf("%.7g ", (&y[0][0])[i]);
  net_close(&model);
}
"""


def emit(folder, cpu, *options):
    (folder / "net.py").write_text(NET)
    (folder / "main.c").write_text(MAIN)
    assert compile_driver.main([str(folder / "net.py"), f"--cpu={cpu}", *options]) == 0


def test_the_command_line(tmp_path):
    """Shared object, object file, both with weights inside; an artifact, which is not for this machine."""
    scope = {}
    exec(NET, scope)
    net, (x,) = scope["model"]()
    for kind, name in (("so", "net.so"), ("obj", "net.o")):
        emit(tmp_path, "neoverse-n1", f"--emit={kind}", "-o", str(tmp_path / name))
        command = [GCC, "main.c", name, "-lm", "-lgcc_s", "-Wl,-rpath,$ORIGIN", "-o", "main"]
        assert run(tmp_path, *command) == (0, "")
        code, said = run(tmp_path, *QEMU, "-cpu", "neoverse-n1", "./main")
        assert code == 0, said
        torch.testing.assert_close(torch.tensor(list(map(float, said.split()))).view(3, 24), net(x))
    emit(tmp_path, "neoverse-n1", "--emit=exe", "-o", str(tmp_path / "net.pipeline"))
    with pytest.raises(ArtifactError, match=r"net\.pipeline: is for aarch64 machines, this one is x86_64$"):
        pipeline.load(tmp_path / "net.pipeline")


def test_a_cpu_that_lacks_instructions(tmp_path):
    emit(tmp_path, "neoverse-v1", "--emit=obj", "-o", str(tmp_path / "net.o"))
    assert run(tmp_path, GCC, "main.c", "net.o", "-lm", "-lgcc_s", "-o", "main") == (0, "")
    said = "this CPU: lacks what the code needs, which was compiled for neoverse-v1\n"
    assert run(tmp_path, *QEMU, "-cpu", "neoverse-n1", "./main") == (0, said)
    assert len(run(tmp_path, *QEMU, "-cpu", "max", "./main")[1].split()) == 72
    code, said = run(tmp_path, "gcc", "-fsyntax-only", "main.c")
    assert code == 1 and "net.o was compiled for aarch64 machines" in said


def assembly(model, args, cpu, **options):
    return pipeline.compile(model, args, cpu=cpu, assembly=True, cache=False, **options).ir("asm")


def convolution():
    torch.manual_seed(0)
    return nn.Conv2d(64, 64, 3, padding=1).requires_grad_(False), (torch.randn(1, 64, 28, 28),)


def linear():
    return nn.Linear(256, 512).requires_grad_(False), (torch.randn(96, 256),)


#: What is compiled, for which CPU, how; the instruction of its inner loop, how many there are, and for how many vectors
#: that are loaded. docs/aarch64.md has these, beside XNNPACK's.
LOOPS = {
    "product": (linear, "neoverse-n1", {}, "fmla", 64, 16),
    "convolution": (convolution, "neoverse-n1", {"winograd": 0}, "fmla", 56, 15),
    "Winograd's": (convolution, "neoverse-n1", {"winograd": 2}, "fmla", 56, 15),
    "product of bf16": (linear, "neoverse-v1", {"precision": "bf16"}, "bfmmla", 32, 16),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loads_of_inner_loops(name):
    """As many multiply-adds as the tile has room for, few loads, and nothing put aside."""
    make, cpu, options, instruction, count, loads = LOOPS[name]
    text = assembly(*make(), cpu, **options)
    found = max(inner_loops(text), key=lambda loop: loop.count(instruction))
    assert (found.count(instruction), found.loaded, found.stores) == (count, loads, 0)
