"""Runs executables for AArch64 on this machine: linked by the cross compiler, run by QEMU's user mode.

There is neither torch nor Python on the other side: a program in C calls the functions of the headers that
`--emit=so` and `obj` write, once for each executable and number of threads, and tensors go through files. Each tensor
ends where memory begins that cannot be touched.
"""

from __future__ import annotations

import io
import math
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from pipeline.runtime.executable import Executable
from pipeline.runtime.interface.signature import Result, TensorType
from pipeline.tools.c_interface.call import Output, _code_of
from pipeline.tools.c_interface.header import _inputs, _outputs
from pipeline.tools.c_interface.names import Names
from pipeline.tools.c_interface.program import program_files

#: The CPUs that QEMU knows; for others it is one that has all features that there are.
_EMULATED = ("cortex-a72", "cortex-a76", "neoverse-n1")

_ROOT = "/usr/aarch64-linux-gnu"

_PROGRAM = """
/* So many bytes, behind which nothing may be touched. */
static char *place(size_t size) {
  size_t whole = (size + 4095) / 4096 * 4096;
  char *data = (char *)mmap(NULL, whole + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED || mprotect(data + whole, 4096, PROT_NONE)) exit(3);
  return data + whole - size;
}

static void take(FILE *file, DLTensor *tensor, size_t size) {
  tensor->data = place(size);
  if (file && size && fread(tensor->data, size, 1, file) != 1) exit(4);
}

static void give(FILE *file, const DLTensor *tensor) {
  size_t size = tensor->dtype.bits / 8;
  for (int dim = 0; dim < tensor->ndim; ++dim) size *= (size_t)tensor->shape[dim];
  fwrite(tensor->shape, 8, (size_t)tensor->ndim, file);
  fwrite((char *)tensor->data + tensor->byte_offset, 1, size, file);
}
"""


@dataclass(frozen=True)
class _Job:
    """One executable, the tensors that it is called with, and results like those that it gives."""

    executable: Executable
    inputs: list[torch.Tensor]
    wanted: Any
    threads: int

    def outputs(self) -> list[tuple[Output, Result, torch.Tensor]]:
        """The tensors that a call writes, each with the result that it is, and with one like that."""
        code, signature, _ = self.executable.contents()
        names = Names()
        _inputs(signature, names)
        pairs = zip(signature.results, pytree.tree_leaves(self.wanted), strict=True)
        computed = [(result, like) for result, like in pairs if result.kind in ("computed", "number")]
        return [(made, *pair) for made, pair in zip(_outputs(code, signature, names), computed, strict=True)]

    def results(self, file: io.BufferedReader) -> Any:
        """The results of a call, whose outputs a file has."""
        given = iter([_read(file, like, result.permutation) for _, result, like in self.outputs()])
        leaves: list[Any] = []
        for result in self.executable.signature.results:
            same = {"argument": lambda one: self.inputs[one.index], "constant": lambda one: one.value}.get(result.kind)
            leaves.append(next(given) if same is None else same(result))
        return pytree.tree_unflatten(leaves, pytree.tree_structure(self.wanted))


class Emulator:
    """Some executables for one CPU, which are linked and run together.

    Args:
        folder: for files; has none of an emulator yet.
        is_shared: whether each becomes a shared object, not an object file.
    """

    def __init__(self, folder: Path, cpu: str, *, is_shared: bool = False):
        self._folder, self._cpu, self._suffix = folder, cpu, "so" if is_shared else "o"
        self._jobs: list[_Job] = []

    def add(self, executable: Executable, inputs: Any, wanted: Any, threads: int = 1) -> None:
        """Has an executable, compiled with `linked=True`, run on the tensors among `inputs`.

        Args:
            wanted: what eager gives; the results are of these shapes and dtypes.
        """
        tensors = [x for x in pytree.tree_leaves(inputs) if isinstance(x, torch.Tensor)]
        self._jobs.append(_Job(executable, tensors, wanted, threads))

    def run(self) -> list[Any]:
        """The results of each executable, in the structure of those that were wanted."""
        for number, job in enumerate(self._jobs):
            path = self._folder / f"model{number}.{self._suffix}"
            is_shared = self._suffix == "so"
            contents = job.executable.contents()
            for file, data in program_files(path, *contents, "a test", is_shared=is_shared, is_beside=False):
                file.write_bytes(data)
        (self._folder / "main.c").write_text(self._main())
        with (self._folder / "in").open("wb") as file:
            file.writelines(_bytes(x) for job in self._jobs for x in job.inputs)
        code = [f"model{number}.{self._suffix}" for number in range(len(self._jobs))]
        libraries = ["-lm", "-lgcc_s", "-Wl,-rpath,$ORIGIN"]
        self._call("aarch64-linux-gnu-gcc", "-std=c11", "-Wall", "-Werror", "main.c", *code, *libraries, "-o", "main")
        cpu = self._cpu if self._cpu in _EMULATED else "max"
        self._call("qemu-aarch64", "-cpu", cpu, "-L", _ROOT, "./main")
        with (self._folder / "out").open("rb") as file:
            return [job.results(file) for job in self._jobs]

    def _call(self, *command: str) -> None:
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, f"{command[0]} ended with {done.returncode}: {done.stdout}{done.stderr}"

    def _main(self) -> str:
        numbers = range(len(self._jobs))
        includes = "".join(f'#include "model{number}.h"\n' for number in numbers)
        runs = "".join(_run_of(number, job) for number, job in enumerate(self._jobs))
        calls = " || ".join(f"run{number}(in, out)" for number in numbers)
        files = '  FILE *in = fopen("in", "rb"), *out = fopen("out", "wb");\n'
        main = f"int main(void) {{\n{files}  if ({calls}) return 1;\n  return fclose(out);\n}}\n"
        return "#define _GNU_SOURCE\n" + includes + _PROGRAM + runs + main


def _run_of(number: int, job: _Job) -> str:
    """The function in C that runs one executable."""
    signature = job.executable.signature
    lines = [f"static model{number} model;"]
    passed = ["&model"]
    for place, x in zip(_inputs(signature, Names()), job.inputs, strict=True):
        lines += _tensor(f"in{place}", signature.arguments[place].type, list(x.shape), "in")
        passed.append(f"&in{place}")
    for place, (output, result, like) in enumerate(job.outputs()):
        file = None if output.is_allocated else "NULL"
        lines += _tensor(f"out{place}", output.type, _in_memory(like.shape, result.permutation), file)
        passed.append(f"&out{place}")
    lines += [f"int failed = model{number}_open(&model);", f"model.threads = {job.threads};"]
    lines += [f"failed = failed || model{number}_run({', '.join(passed)});"]
    lines += ['if (failed) fprintf(stderr, "%s\\n", model.error);', f"model{number}_close(&model);"]
    lines += [f"if (!failed) give(out, &{name[1:]});" for name in passed if name.startswith("&out")]
    body = "".join(f"  {line}\n" for line in [*lines, "return failed;"])
    return f"\nstatic int run{number}(FILE *in, FILE *out) {{\n{body}}}\n"


def _in_memory(shape: Sequence[int], permutation: tuple[int, ...] | None) -> list[int]:
    """The shape of a result as it lies in memory."""
    sizes = dict(zip(permutation or range(len(shape)), shape, strict=True))
    return [sizes[dim] for dim in range(len(shape))]


def _tensor(name: str, kind: TensorType | None, shape: list[int], file: str | None) -> list[str]:
    """The declaration of a tensor, whose data comes from a file; None: the code brings it."""
    assert kind is not None
    element = torch.empty(0, dtype=getattr(torch, kind.dtype)).element_size()
    dtype = f"{{{_code_of(kind)}, {8 * element}, 1}}"
    lines = [f"int64_t {name}_shape[] = {{{', '.join(map(str, [*shape, 1]))}}};"]
    lines += [f"DLTensor {name} = {{NULL, {{1, 0}}, {len(shape)}, {dtype}, {name}_shape, NULL, 0}};"]
    return lines if file is None else [*lines, f"take({file}, &{name}, {math.prod(shape) * element});"]


def _bytes(x: torch.Tensor) -> bytes:
    x = x.detach().resolve_conj().contiguous()
    return x.reshape(-1).view(torch.uint8).numpy().tobytes() if x.numel() else b""


def _read(file: io.BufferedReader, like: torch.Tensor, permutation: tuple[int, ...] | None) -> torch.Tensor:
    """The next tensor of a file."""
    sizes = torch.frombuffer(bytearray(file.read(8 * like.dim()) or b"\0" * 8), dtype=torch.int64).tolist()
    shape = sizes[: like.dim()]
    count = math.prod(shape)
    data = bytearray(file.read(count * like.element_size()))
    flat = torch.frombuffer(data, dtype=like.dtype) if count else torch.empty(0, dtype=like.dtype)
    return flat.reshape(shape) if permutation is None else flat.reshape(shape).permute(permutation)
