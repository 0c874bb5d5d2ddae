"""LLVM IR to object files: split into units, in several processes, and errors from there."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest
import torch
from torch import nn

import pipeline
from pipeline.errors import CompileError
from pipeline.llvm import host_cpu
from pipeline.runtime.interface.call_record import CALL
from pipeline.runtime.native import linker
from pipeline.runtime.native.object_loader import NativeCode
from pipeline.targets.cpu import build, codegen, machine_code, tensor_entry
from pipeline.targets.cpu.machine_code import Machine, Unit, compile_units
from pipeline.targets.cpu.split_module import split
from pipeline.targets.cpu.vector_functions import entries_need_no_more, vector_functions

TEXT = """source_filename = "LLVMDialectModule"

@seven = private constant i64 7, align 8
@unused = private constant i64 8, align 8

declare i64 @llvm.smax.i64(i64, i64) #0

define i64 @plus_seven(i64 %0) {
  %2 = load i64, ptr @seven, align 8
  %3 = add i64 %0, %2
  ret i64 %3
}

define void @entry(ptr %0) {
  %2 = load i64, ptr %0, align 8
  %3 = call i64 @plus_seven(i64 %2)
  store i64 %3, ptr %0, align 8
  ret void
}

attributes #0 = { nounwind }
"""


def machine():
    return Machine(*host_cpu())


def units(parts):
    return [Unit(part.text, "", part.functions, ()) for part in parts]


def run(objects):
    slots = (ctypes.c_int64 * 1)(35)
    native = NativeCode(objects)
    native.entry("entry")(ctypes.addressof(slots))
    return slots[0]


def test_every_part_declares_what_others_define_and_copies_what_it_uses():
    first, second = split(TEXT, 10)
    assert (first.functions, second.functions) == (("plus_seven",), ("entry",))
    assert "declare i64 @plus_seven(i64 %0)" in second.text
    assert "@seven = private" in first.text and "@seven" not in second.text
    assert "@unused" not in first.text and "@entry" not in first.text
    assert run(compile_units(units([first, second]), machine())) == 42


def test_a_small_module_is_left_whole():
    (part,) = split(TEXT, 10_000)
    assert part.text == TEXT
    assert run(compile_units(units([part]), machine())) == 42


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("private constant i64 7", "private global i64 7"),
        TEXT.replace("private constant i64 7", "constant i64 7"),
        TEXT.replace("define i64", "define internal i64"),
    ],
)
def test_what_only_one_part_can_own_is_left_whole(text):
    (part,) = split(text, 10)
    assert part.text == text


def test_processes_make_the_same_objects(monkeypatch):
    monkeypatch.setattr(machine_code, "WORTH_A_PROCESS", 0)
    made = units(split(TEXT, 10))
    monkeypatch.setattr(machine_code.os, "sched_getaffinity", lambda _: {0})
    alone = compile_units(made, machine())
    monkeypatch.setattr(machine_code.os, "sched_getaffinity", lambda _: {0, 1})
    assert compile_units(made, machine()) == alone


TILE = "\n".join(f"  %a{n} = call <4 x float> @llvm.fma.v4f32(<4 x float> %x)" for n in range(8))
COPY = "  %1 = load <4 x float>, ptr %0\n  store <4 x float> %1, ptr %0"

#: name: (the body of a function that main calls, whether it is vectors)
BODIES = {
    "tile": (TILE, True),
    "tile of fewer products": (TILE[: TILE.rindex("%a7")], False),
    "tile that reads numbers": ("  %1 = load float, ptr %0\n" + TILE, True),
    "tile with a function of a number": (TILE + "\n  %2 = call float @expf(float %b)", False),
    "vectors moved": (COPY, True),
    "numbers moved, too": (COPY + "\n  %2 = load i32, ptr %0", False),
    "vectors moved in part": (COPY.replace("load <4 x float>,", "call <4 x float> @llvm.masked.load.v4f32.p0("), True),
    "pointers read": (COPY + "\n  %2 = load ptr, ptr %0", True),
    "vectors mixed": (COPY + "\n  %2 = shufflevector <4 x float> %1, <4 x float> %1, <4 x i32> zeroinitializer", False),
    "one number everywhere": (COPY + "\n  %2 = shufflevector <4 x float> %1, <4 x float> poison, <4 x i32> x", True),
    "a number moved": ("  %1 = load i32, ptr %0\n  store i32 %1, ptr %0", True),
    "numbers moved": ("  br label %1\n1:\n  %2 = load i32, ptr %0\n  store i32 %2, ptr %0\n  br label %1", False),
    "a number computed": ("  %1 = load float, ptr %0\n  %2 = fadd float %1, %1\n  store float %2, ptr %0", False),
    "arguments handed on": ("  %1 = load i64, ptr %0\n  call void @other(ptr %0, i64 %1)", True),
    "a number handed on": ("  %1 = load i64, ptr %0\n  call void @other(float %b, i64 %1)", True),
    "a choice": ("  br i1 %c, label %1, label %2\n1:\n  call void @other(ptr %0)\n  br label %2\n2:\n  ret void", True),
    "a loop": ("  br label %2\n2:\n  call void @other(ptr %0)\n  br label %2", False),
}


@pytest.mark.parametrize("name", BODIES)
def test_functions_that_are_vectors(name):
    body, is_vectors = BODIES[name]
    main = "  call void @kernel(ptr %0)"
    assert vector_functions({"main": main, "kernel": body}) == ({"kernel"} if is_vectors else set())


def test_what_runs_once_may_move_numbers_as_well():
    functions = {"main": "", "prepare": "  call void @pack()", "pack": COPY + "\n  %2 = load i32, ptr %0"}
    assert vector_functions(functions) == {"pack", "prepare"}


def test_what_runs_once_may_mix_vectors():
    pack = COPY + "\n  %3 = shufflevector <4 x float> %1, <4 x float> %2, <4 x i32> <i32 0, i32 4, i32 1, i32 5>"
    assert vector_functions({"main": "", "prepare": "  call void @pack()", "pack": pack}) == {"pack", "prepare"}
    assert vector_functions({"main": "  call void @pack()", "prepare": "", "pack": pack}) == {"prepare"}


@pytest.mark.parametrize(
    ("main", "kernel", "is_enough"),
    [
        ("  br label %2\n2:\n  store i64 1, ptr %0", COPY, True),
        ("  br label %2\n2:\n  store i64 1, ptr %0", "  br label %1\n1:\n  store i8 1, ptr %0\n  br label %1", False),
        (COPY, COPY, True),
        ("  br label %2\n2:\n  %1 = load float, ptr %0\n  br label %2", COPY, False),
    ],
)
def test_entries_that_choose_and_hand_on_are_taken_in_by_few_passes(main, kernel, is_enough):
    assert entries_need_no_more({"main": main, "kernel": kernel}, ["main", "prepare"]) == is_enough


def test_what_entries_take_in_is_gone():
    text = "define i64 @main(i64 %0) {\n  %2 = add i64 %0, 7\n  ret i64 %2\n}"
    entry = (
        "declare i64 @main(i64)\ndefine void @entry(ptr %0) {\n  %2 = load i64, ptr %0\n"
        "  %3 = call i64 @main(i64 %2)\n  store i64 %3, ptr %0\n  ret void\n}"
    )
    (code,) = compile_units([Unit(text, entry, ("entry",), ("main", "entry"), is_vectors=True)], machine())
    assert run([code]) == 42 and b"main" not in code


@pytest.fixture
def counts(monkeypatch):
    """How many object files each shared object was linked of."""
    counts = []

    def counting(objects):
        counts.append(len(objects))
        return linker.link(objects)

    monkeypatch.setattr(build, "link", counting)
    return counts


def test_register_tiles_are_compiled_apart(counts):
    """By few of LLVM's passes, to what all of them make of it."""
    torch.manual_seed(0)
    net, x = nn.Linear(256, 512).requires_grad_(False), torch.randn(96, 256)
    executable = pipeline.compile(net, (x,), cache=False)
    assert counts == [3]  # tiles, entries, and the entry that takes tensors, which is the same for all code
    torch.testing.assert_close(executable(x), net(x), rtol=1e-4, atol=1e-5)


def test_the_entry_that_takes_tensors_is_compiled_once(monkeypatch):
    first = pipeline.compile(nn.ReLU(), (torch.randn(3),), cache=False)
    compiled = []

    def compiling(unit, *machine):
        compiled.append(unit.text + unit.entries)
        return object_file(unit, *machine)

    object_file = machine_code.object_file
    for module in (machine_code, tensor_entry):
        monkeypatch.setattr(module, "object_file", compiling)
    second = pipeline.compile(nn.Tanh(), (torch.randn(5),), cache=False)
    assert compiled and not any(CALL in text for text in compiled)
    assert all(CALL.encode() in exe.objects[0] for exe in (first, second))
    for_c = pipeline.compile(nn.Tanh(), (torch.randn(5),), linked=True)
    assert CALL.encode() not in for_c.objects[0]
    x = torch.randn(5)
    torch.testing.assert_close(second(x), x.tanh())


@pytest.mark.parametrize("bad", [0, 1])
def test_a_unit_that_llvm_refuses(bad, monkeypatch):
    monkeypatch.setattr(machine_code, "WORTH_A_PROCESS", 0)
    monkeypatch.setattr(machine_code.os, "sched_getaffinity", lambda _: {0, 1})
    made = units(split(TEXT, 10))
    made[bad] = Unit("define void @f( {", "", ("f",), ())
    with pytest.raises(CompileError, match="LLVM refused the generated code"):
        compile_units(made, machine())


def test_a_model_in_several_objects(monkeypatch, tmp_path, counts):
    for module in (codegen, machine_code):
        monkeypatch.setattr(module, "WORTH_A_PROCESS", 0)
    monkeypatch.setattr(codegen, "UNIT_SIZE", 1000)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(9, 17), nn.LayerNorm(17), nn.GELU(), nn.Linear(17, 3)).requires_grad_(False)
    x = torch.randn(5, 9)
    executable = pipeline.compile(net, (x,), cache=False)
    assert counts[0] > 3
    torch.testing.assert_close(executable(x), net(x))
    executable.save(tmp_path / "net")
    assert pipeline.load(tmp_path / "net")(x.numpy()).shape == (5, 3)
    assert len(pipeline.compile(net, (x,), linked=True).objects) == 1


def test_workers_import_what_they_need_alone():
    """NumPy alone would double the time that a worker takes to start."""
    names = "numpy", "torch", "torch_mlir", "yaml", "rich"
    code = f"import sys; from pipeline.targets.cpu.machine_code import work; print({set(names)} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
