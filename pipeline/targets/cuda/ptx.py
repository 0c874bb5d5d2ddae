"""LLVM IR with NVVM's intrinsics → PTX by llvmlite → machine code by ptxas."""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from pathlib import Path

from llvmlite import binding

from pipeline.errors import CompileError
from pipeline.targets.common.llvm_text import to_llvm22
from pipeline.targets.cuda.toolkit import libdevice, ptxas

_TRIPLE = "nvptx64-nvidia-cuda"

#: 90 for `sm_90`; `90a` for `sm_90a`, whose code runs on no other.
Architecture = int | str

#: The oldest PTX that knows each architecture: what old drivers understand best.
_VERSIONS = ((70, 63), (72, 63), (75, 63), (80, 70), (86, 71), (87, 74), (89, 78), (90, 80), ("90a", 80), (100, 86))
PTX_VERSIONS: dict[Architecture, int] = dict(_VERSIONS)


@functools.cache
def _initialize() -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()


def to_ptx(llvm: str, architecture: Architecture) -> str:
    """PTX for `sm_<architecture>`, with nothing left to be linked.

    Raises:
        CompileError: LLVM refuses the code, or a function is missing.
    """
    _initialize()
    machine = binding.Target.from_triple(_TRIPLE).create_target_machine(
        cpu=f"sm_{architecture}", features=f"+ptx{PTX_VERSIONS[architecture]}", opt=3
    )
    try:
        module = binding.parse_assembly(to_llvm22(llvm))
        module.triple, module.data_layout = _TRIPLE, str(machine.target_data)
        _link_libdevice(module)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM refused the generated code: {error}") from error
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = False
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    missing = sorted(f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm."))
    if missing:
        raise CompileError(
            f"{', '.join(missing)}: libdevice has this function; pip install nvidia-nvvm, or set CUDA_HOME"
        )
    return machine.emit_assembly(module)


def _link_libdevice(module: binding.ModuleRef) -> None:
    if not any(function.name.startswith("__nv_") for function in module.functions):
        return
    own = {function.name for function in module.functions if not function.is_declaration}
    path = libdevice()
    library = binding.parse_assembly(_instructions()) if path is None else binding.parse_bitcode(path.read_bytes())
    library.triple, library.data_layout = module.triple, module.data_layout
    module.link_in(library)
    for function in module.functions:
        if not function.is_declaration and function.name not in own:
            function.linkage = binding.Linkage.internal


def can_assemble(architecture: Architecture) -> bool:
    """Whether there is a ptxas that knows the architecture; new ones have forgotten old ones."""
    program = ptxas()
    return program is not None and _knows(program, architecture)


@functools.cache
def _knows(program: str, architecture: Architecture) -> bool:
    command = [program, f"-arch=sm_{architecture}", "/dev/null", "-o", "/dev/null"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    return "is not defined for option" not in said


def _instructions() -> str:
    """The functions of libdevice that are instructions, as LLVM IR."""
    text = ""
    for name, intrinsic, count in _INTRINSICS:
        for kind, suffix, width in (("float", "f", "f32"), ("double", "", "f64")):
            takes = ", ".join([f"{kind} %a{number}" for number in range(count)])
            text += f"declare {kind} @llvm.{intrinsic}.{width}({', '.join([kind] * count)})\n"
            text += f"define {kind} @__nv_{name}{suffix}({takes}) alwaysinline {{\n"
            text += f"  %r = call {kind} @llvm.{intrinsic}.{width}({takes})\n"
            text += (
                f"  %q = fdiv {kind} 1.0, %r\n  ret {kind} %q\n}}\n" if name == "rsqrt" else f"  ret {kind} %r\n}}\n"
            )
    return re.sub(r"^(declare .*\n)(?=[\s\S]*^\1)", "", text, flags=re.M)


_INTRINSICS = (
    ("fabs", "fabs", 1),
    ("ceil", "ceil", 1),
    ("floor", "floor", 1),
    ("trunc", "trunc", 1),
    ("rint", "roundeven", 1),
    ("sqrt", "sqrt", 1),
    ("rsqrt", "sqrt", 1),
    ("copysign", "copysign", 2),
    ("fma", "fma", 3),
)


def assemble(ptx: str, architecture: Architecture) -> tuple[bytes, str]:
    """The machine code and what ptxas says of registers and memory.

    Raises:
        CompileError: ptxas is missing or refuses the code.
    """
    program = ptxas()
    if program is None:
        raise CompileError("ptxas was not found; pip install nvidia-cuda-nvcc, or set CUDA_HOME")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "kernels.ptx"), Path(folder, "kernels.cubin")
        source.write_text(ptx)
        command = [program, "-v", f"-arch=sm_{architecture}", str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompileError(f"ptxas failed: {done.stderr.strip()}")
        return target.read_bytes(), done.stderr


def architecture(name: str) -> Architecture:
    """90 from `sm_90`, `90a` from `sm_90a`; raises `CompileError` for one that llvmlite cannot emit."""
    for known in PTX_VERSIONS:
        if name == f"sm_{known}":
            return known
    expected = ", ".join(f"sm_{known}" for known in PTX_VERSIONS)
    raise CompileError(f"target cuda:{name}: expected one of {expected}")


def generation(architecture: Architecture) -> int:
    """90 for 90 and for `90a`."""
    return int(str(architecture).rstrip("a"))
