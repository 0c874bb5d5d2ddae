"""Object files → shared objects: what code may hold and call, compared with what LLVM runs; what is refused."""

from __future__ import annotations

import ctypes
import gc
import math
import pickle
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from linked_programs import FIRST, SECOND, call
from llvmlite import binding

import pipeline
from pipeline.errors import ArtifactError, CompileError
from pipeline.llvm import host_cpu, initialize_llvm
from pipeline.runtime.native import cpu_features, elf
from pipeline.runtime.native.linker import link
from pipeline.runtime.native.object_loader import NativeCode


def object_file(text):
    initialize_llvm()
    machine = binding.Target.from_default_triple().create_target_machine(opt=2, reloc="pic", codemodel="small")
    return machine.emit_object(binding.parse_assembly(text))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_what_code_holds_and_calls(order):
    objects = [(object_file(FIRST), object_file(SECOND))[number] for number in order]
    code = NativeCode([link(objects)])
    count = 40
    for x in range(8):
        cosine = int((math.cos(x) + math.fmod(x, 7)) * 1e6)
        chosen = {0: 1, 1: 2, 2: 6, 3: None, 4: 5}.get(x, 7)
        count = (9 if x == 4 else count) + 1
        got = call(code, x)
        assert got[1] == chosen or (chosen is None and abs(got[1] - cosine) <= 1)
        assert abs(got[2] - (2 * x, 3 * x, cosine)[x % 3]) <= 1
        assert got[3:] == [count, (1, 2, 3)[x % 3], ord("a")]
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(
        ctypes.CFUNCTYPE(ctypes.c_uint64)(code._address("address_of_cos"))()
    )(0.5) == pytest.approx(math.cos(0.5))


def test_each_load_has_variables_of_its_own():
    data = link([object_file(FIRST), object_file(SECOND)])
    first, second = NativeCode([data]), NativeCode([data])
    assert [call(first, 0)[3], call(first, 0)[3], call(second, 0)[3]] == [41, 42, 41]


def test_tools_read_it(tmp_path):
    (tmp_path / "code.so").write_bytes(link([object_file(FIRST), object_file(SECOND)], "code.so"))
    assert {name for name, _, _ in elf.functions((tmp_path / "code.so").read_bytes())} >= {"entry", "cos_of", "thrice"}
    if shutil.which("readelf") is None:
        return
    done = subprocess.run(["readelf", "-aW", "code.so"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    for said in ("[code.so]", "[libm.so.6]", "GNU_STACK", "R_X86_64_GLOB_DA", "R_X86_64_RELATIVE"):
        assert said in done.stdout
    assert "RWE" not in done.stdout
    code = subprocess.run(["objdump", "-d", "code.so"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "<cos_of>:" in code and "(bad)" not in code


CALLS_BACK = """
declare void @_mlir_ciface_back(i64)
define void @entry(ptr %slots) uwtable {
  %x = load i64, ptr %slots
  call void @_mlir_ciface_back(i64 %x)
  store i64 1, ptr %slots
  ret void
}
"""


def test_imports_and_unwinding():
    """A function that the loader of the code gives it; from there debuggers find the way back through the code."""
    frames = (ctypes.c_void_p * 60)()
    found = []

    def back(number):
        count = ctypes.CDLL(None).backtrace(frames, 60)
        found.append((number, [frames[index] for index in range(count)]))

    function = ctypes.CFUNCTYPE(None, ctypes.c_int64)(back)
    address = ctypes.cast(function, ctypes.c_void_p).value
    code = NativeCode([object_file(CALLS_BACK)], {"_mlir_ciface_back": address})
    assert call(code, 5)[0] == 1
    ((number, addresses),) = found
    start = code._address("entry")
    inside = [place for place, address in enumerate(addresses) if start <= address < start + 64]
    assert number == 5 and len(inside) == 1 and inside[0] < len(addresses) - 3


def test_an_import_that_nothing_has():
    with pytest.raises(ArtifactError, match="the code calls the function _mlir_ciface_back, which nothing has"):
        NativeCode([object_file(CALLS_BACK)])


def test_two_definitions():
    with pytest.raises(CompileError, match="two object files define thrice"):
        link([object_file(FIRST), object_file(SECOND), object_file(SECOND)])


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"no object" * 20, bytes(1000)])
def test_what_is_no_object(data):
    with pytest.raises(ArtifactError, match="not an object file for this machine"):
        NativeCode([data])


@pytest.mark.parametrize(("number", "name"), [(183, "aarch64 machines, this one is"), (8, "ELF's machine 8")])
def test_an_object_for_another_machine(number, name):
    data = bytearray(object_file(SECOND))
    data[18] = number
    with pytest.raises(ArtifactError, match=f"it is for {name}"):
        NativeCode([bytes(data)])


def test_absolute_code_is_refused():
    machine = binding.Target.from_default_triple().create_target_machine(opt=0, reloc="static", codemodel="small")
    data = machine.emit_object(binding.parse_assembly(FIRST))
    with pytest.raises(CompileError, match="relocations of the kind|not writable"):
        link([data])


def test_a_system_without_files_in_memory(monkeypatch):
    def refuse(name):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr("os.memfd_create", refuse)
    assert call(NativeCode([object_file(FIRST), object_file(SECOND)]), 1)[1] == 2
    monkeypatch.delattr("os.memfd_create")  # as in a Python that was built for an old C library
    assert call(NativeCode([object_file(FIRST), object_file(SECOND)]), 1)[1] == 2
    executable = pipeline.compile(lambda x: x + 1, (torch.ones(3),))
    assert pickle.loads(pickle.dumps(executable))(torch.ones(3)).tolist() == [2] * 3


def mapped():
    return Path("/proc/self/maps").read_text().count("memfd:pipeline code")


def test_code_is_unloaded_with_its_executable():
    x = torch.ones(3)
    pipeline.compile(lambda x: x + 1, (x,))
    gc.collect()
    before = mapped()
    kept = pipeline.compile(lambda x: x * 5, (x,))
    for number in range(3):
        exe = pipeline.compile(lambda x, number=number: x * (number + 2), (x,))
        assert exe(x).tolist() == [number + 2] * 3
    del exe
    gc.collect()
    assert kept(x).tolist() == [5] * 3
    assert mapped() <= before + 4  # one executable: constants, code, variables


_NAMES = """
    cldemote clflushopt clwb clzero enqcmd fsgsbase hreset invpcid kl lwp mwaitx pconfig pku prefetchi ptwrite rdpid
    rdpru rdrnd rdseed rtm serialize sgx sha sha512 shstk sm3 sm4 tsxldtrk uintr usermsr waitpkg wbnoinvd widekl xsave
    xsavec xsaveopt xsaves amx-fp16 amx-complex cmpccxadd raoint avx10.1
"""

#: What LLVM uses for functions of its own names alone, or in systems.
SPECIAL = frozenset(_NAMES.split())


def test_features_are_those_that_llvm_sees():
    """All that LLVM may use of this CPU is known by name, but for what programs ask for by name alone.

    AVX10.1 is a name for features that have names of their own.
    """
    for feature in host_cpu()[1].split(","):
        sign, name = feature[0], feature[1:]
        if name in cpu_features.FEATURES:
            assert (sign == "+") == (name in cpu_features.host_features()), feature
        elif sign == "+":
            assert name in SPECIAL, feature


def test_hashes_of_names():
    """As the loader looks for them, whatever the number of names."""
    for count in (0, 1, 2, 37):
        names = [f"function_{number}_{'x' * number}" for number in range(count)]
        table = np.frombuffer(elf.hash_table(names), "<u4")
        buckets, chain = table[2 : 2 + table[0]], table[2 + table[0] :]
        for number, name in enumerate(names, 1):
            at = buckets[elf._hash(name) % table[0]]
            while at not in (0, number):
                at = chain[at]
            assert at == number
