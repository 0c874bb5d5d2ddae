"""LLVM IR text → object files, by llvmlite alone: optimization and machine code, in this process or in workers.

Imports neither MLIR nor torch, so that a worker process starts in 60 ms. Workers are processes and not threads because
llvmlite holds one lock around every call of LLVM.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

from llvmlite import binding

from pipeline.errors import CompileError
from pipeline.llvm import initialize_llvm
from pipeline.targets.common.llvm_text import to_llvm22

#: Below so many characters of LLVM IR a second process takes longer to start than it saves.
WORTH_A_PROCESS = 150_000

#: LLVM's passes for code that is vectors already; the code generator has some for addresses itself.
_FOR_VECTORS = ("sroa", "instruction_combine", "simplify_cfg", "loop_rotate", "instruction_combine", "simplify_cfg")

#: What goes before these where there are entries, which take in the functions that they call.
_FOR_ENTRIES = ("always_inliner", "global_dead_code_eliminate")

#: The exit code of a worker that says on stderr what LLVM refused.
_REFUSED = 3

_WORKER = "import sys; sys.path[:] = {path!r}; from pipeline.targets.cpu.machine_code import work; work()"


@dataclass(frozen=True)
class Unit:
    """What becomes one object file.

    Attributes:
        text: LLVM IR as MLIR prints it.
        entries: LLVM IR, as llvmlite prints it, of the functions that are called from outside; may be empty.
        public: the functions that code outside of this unit calls; LLVM may drop and specialize all others.
        inlined: those of the functions that may be inlined into others and have others inlined.
        is_vectors: whether the functions are vectors already, or glue, for which `_FOR_VECTORS` is enough.
        vectors: LLVM IR of further functions, which are.
    """

    text: str
    entries: str
    public: tuple[str, ...]
    inlined: tuple[str, ...]
    is_vectors: bool = False
    vectors: str = ""


@dataclass(frozen=True)
class Machine:
    """What code is generated for.

    Attributes:
        cpu, features: as LLVM calls them.
        kind: the kind of machine, as Python's `platform.machine` has it.
    """

    cpu: str
    features: str
    kind: str = field(default_factory=platform.machine)

    def create(self) -> binding.TargetMachine:
        """LLVM's code generator for it, of code that may lie anywhere."""
        initialize_llvm(native=self.kind == platform.machine())
        target = binding.Target.from_triple(f"{self.kind}-unknown-linux-gnu")
        return target.create_target_machine(cpu=self.cpu, features=self.features, opt=3, reloc="pic", codemodel="small")


def compile_units(
    units: Sequence[Unit], machine: Machine, finished: Callable[[Sequence[Unit]], None] = lambda units: None
) -> tuple[bytes, ...]:
    """An object file for each unit; several are made in as many processes as there are processors.

    This process only waits for those: LLVM leaves tens of megabytes behind where it ran. `finished` is told of units
    whose object files are there.

    Raises:
        CompileError: LLVM refuses a unit.
    """
    jobs = min(len(units), len(os.sched_getaffinity(0)))
    if jobs < 2 or not sys.executable or sum(len(unit.text) for unit in units) < WORTH_A_PROCESS:
        alone = []
        for unit in units:
            alone.append(object_file(unit, machine))
            finished([unit])
        return tuple(alone)
    shares = _shares([len(unit.text) for unit in units], jobs)
    workers = [_start([units[number] for number in share], machine) for share in shares]
    try:
        objects: dict[int, bytes] = {}
        for share, worker in zip(shares, workers, strict=True):
            objects |= zip(share, _finish(worker), strict=True)
            finished([units[number] for number in share])
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    return tuple(objects[number] for number in range(len(units)))


def object_file(unit: Unit, machine: Machine) -> bytes:
    """The unit's machine code."""
    generator = machine.create()
    return generator.emit_object(_optimized(unit, generator))


def assembly(unit: Unit, machine: Machine) -> str:
    """The unit's machine code as text."""
    generator = machine.create()
    return generator.emit_assembly(_optimized(unit, generator))


def work() -> None:
    """A worker's main: units as JSON on stdin, lengths and object files on stdout."""
    request = json.load(sys.stdin)
    machine = Machine(**request["machine"])
    try:
        objects = [object_file(Unit(**unit), machine) for unit in request["units"]]
    except CompileError as error:
        sys.stderr.write(str(error))
        sys.exit(_REFUSED)
    sys.stdout.buffer.write(json.dumps([len(code) for code in objects]).encode() + b"\n" + b"".join(objects))


def _shares(sizes: Sequence[int], jobs: int) -> list[list[int]]:
    """The numbers of the units that each process compiles: the largest first, each to who has least to do."""
    shares: list[list[int]] = [[] for _ in range(jobs)]
    load = [0] * jobs
    for number in sorted(range(len(sizes)), key=lambda unit: -sizes[unit]):
        least = load.index(min(load))
        shares[least].append(number)
        load[least] += sizes[number]
    return shares


def _start(units: Sequence[Unit], machine: Machine) -> subprocess.Popen[bytes]:
    worker = subprocess.Popen(
        [sys.executable, "-c", _WORKER.format(path=sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert worker.stdin is not None
    request = {"machine": asdict(machine), "units": [asdict(unit) for unit in units]}
    try:
        worker.stdin.write(json.dumps(request).encode())
        worker.stdin.close()
    except BrokenPipeError:  # it has failed already; `_finish` says how
        pass
    worker.stdin = None
    return worker


def _finish(worker: subprocess.Popen[bytes]) -> list[bytes]:
    said, error = worker.communicate()
    if worker.returncode == _REFUSED:
        raise CompileError(error.decode())
    if worker.returncode:
        reason = error.decode(errors="replace").strip().splitlines()
        last = reason[-1] if reason else f"ended by signal {-worker.returncode}"
        raise CompileError(f"a process that generates machine code failed: {last}")
    header, _, code = said.partition(b"\n")
    objects = []
    for length in json.loads(header):
        objects.append(code[:length])
        code = code[length:]
    return objects


def _optimized(unit: Unit, generator: binding.TargetMachine) -> binding.ModuleRef:
    module = _parsed(unit.text, unit.entries, generator)
    if not unit.vectors:
        _internalize(module, unit)
    _optimize(module, generator, unit, is_vectors=unit.is_vectors)
    if unit.vectors:
        vectors = _parsed(unit.vectors, "", generator)
        _optimize(vectors, generator, unit, is_vectors=True)
        module.link_in(vectors)
        _internalize(module, unit)
    return module


def _parsed(text: str, entries: str, generator: binding.TargetMachine) -> binding.ModuleRef:
    try:
        module = binding.parse_assembly(to_llvm22(text, keep_vectors=True))
        if entries:
            module.link_in(binding.parse_assembly(entries))
        module.triple = generator.triple
        module.data_layout = str(generator.target_data)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM refused the generated code: {error}") from error
    return module


def _internalize(module: binding.ModuleRef, unit: Unit) -> None:
    """What no other unit calls may be dropped and specialized."""
    for function in module.functions:
        if not function.is_declaration and function.name not in unit.public:
            function.linkage = binding.Linkage.internal


def _optimize(module: binding.ModuleRef, generator: binding.TargetMachine, unit: Unit, *, is_vectors: bool) -> None:
    """Runs LLVM's passes on a module, which is all of a unit or its vectors."""
    for function in module.functions:
        if function.is_declaration:
            continue
        if function.name not in unit.inlined:
            function.add_function_attribute("noinline")  # one huge function would win nothing and compile slowly
        elif is_vectors and function.name not in unit.public:
            function.add_function_attribute("alwaysinline")
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    options.loop_unrolling = False  # tiles are unrolled as far as it pays; more of it took minutes on some odd sizes
    builder = binding.create_pass_builder(generator, options)
    (_for_vectors(unit) if is_vectors else builder.getModulePassManager()).run(module, builder)


def _for_vectors(unit: Unit) -> binding.ModulePassManager:
    """A tenth of the passes, and of their time: register tiles become the same code by them, and so do entries."""
    manager = binding.create_new_module_pass_manager()
    for name in (*(_FOR_ENTRIES if unit.entries else ()), *_FOR_VECTORS):
        getattr(manager, f"add_{name}_pass")()
    return manager
