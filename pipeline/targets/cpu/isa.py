"""The CPUs that code can be generated for, and what each must have to run it."""

from __future__ import annotations

import platform
from dataclasses import dataclass

from pipeline.errors import OptionError
from pipeline.ir.byte_products import ANY, MIXED, NONE, SAME
from pipeline.llvm import host_cpu
from pipeline.runtime.native.cpu_features import host_features

# The x86-64 psABI's levels, each with what it adds (LLVM's feature names).
_V2 = ("cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")

# What LLVM takes instructions from for the CPUs below, for shifts of small integers, shuffles and conversions of f16.
_ICELAKE = ("avx512bitalg", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512vpopcntdq", "gfni")
_SAPPHIRE_RAPIDS = ("amx-bf16", "amx-int8", "amx-tile", "avx512bf16", "avx512fp16", "avxvnni")

#: The features that each CPU of x86-64 must have, by LLVM's name for it.
X86_64 = {
    "x86-64": (),
    "x86-64-v2": _V2,
    "x86-64-v3": _V3,
    "x86-64-v4": _V4,
    "haswell": _V3,
    "znver3": (*_V3, "sse4a"),
    "skylake-avx512": _V4,
    "icelake-server": (*_V4, *_ICELAKE),
    "znver4": (*_V4, *_ICELAKE, "avx512bf16", "sse4a"),
    "sapphirerapids": (*_V4, *_ICELAKE, *_SAPPHIRE_RAPIDS),
}

# Armv8.2 with the extensions that all of the larger cores of its time have; then what Armv8.6 adds.
_ARM_V82 = ("neon", "dotprod", "fullfp16", "rdm")
_ARM_V86 = (*_ARM_V82, "bf16", "i8mm", "fp16fml", "fptoint")

#: Those of AArch64.
AARCH64 = {
    "cortex-a72": ("neon",),
    "cortex-a76": _ARM_V82,
    "neoverse-n1": _ARM_V82,
    "apple-m1": (*_ARM_V82, "fp16fml", "fptoint"),
    "apple-m2": _ARM_V86,
    "neoverse-v1": _ARM_V86,
    "neoverse-n2": _ARM_V86,
}

#: All of them.
CPUS = X86_64 | AARCH64

#: What LLVM is to leave alone: code for vectors whose length is known when it runs.
_NO_SVE = "-sve,-sve2"

#: The shortest vectors, in bytes, that are loaded under masks by an instruction: those of AVX2.
LEAST_MASKED = 32


@dataclass(frozen=True)
class Isa:
    """A CPU as LLVM knows it.

    Attributes:
        cpu: LLVM's name for it.
        features: LLVM's feature string on top of what the name implies.
        required: the features that a machine must have to run the code.
        machine: the kind of machine, as Python's `platform.machine` has it.
    """

    cpu: str
    features: str
    required: tuple[str, ...]
    machine: str = "x86_64"

    @property
    def is_arm(self) -> bool:
        """Whether it is AArch64."""
        return self.machine == "aarch64"

    @property
    def vector_bytes(self) -> int:
        """The width of a vector register."""
        return 64 if "avx512f" in self.required else 32 if "avx2" in self.required else 16

    @property
    def fma(self) -> bool:
        """Whether there are instructions that multiply and add with one rounding."""
        return self.is_arm or "fma" in self.required

    @property
    def bf16_dots(self) -> bool:
        """Whether there is an instruction that adds two products of bf16 to each f32 of a vector."""
        return ({"bf16"} if self.is_arm else {"avx512f", "avx512bf16"}) <= set(self.required)

    @property
    def int8_dots(self) -> str:
        """Which instructions there are that add four products of bytes to each 32-bit integer of a vector.

        See `pipeline.ir.byte_products`.
        """
        if self.is_arm:
            return ANY if "i8mm" in self.required else SAME if "dotprod" in self.required else NONE
        return MIXED if {"avx512f", "avx512vnni"} <= set(self.required) else NONE

    @property
    def dot_matrices(self) -> bool:
        """Whether there are instructions that multiply two rows with two columns by dot products."""
        return self.is_arm and {"bf16", "i8mm"} <= set(self.required)

    @property
    def amx(self) -> bool:
        """Whether there are instructions that multiply tiles of bf16 and of bytes."""
        return {"avx512bf16", "avx512vnni", "amx-tile", "amx-bf16", "amx-int8"} <= set(self.required)

    @property
    def tables(self) -> bool:
        """Whether there is an instruction that looks each f32 of a vector up in a table of 16."""
        return "avx512f" in self.required

    @property
    def scalef(self) -> bool:
        """Whether there is an instruction for x * 2 ** n."""
        return "avx512f" in self.required

    @property
    def rounds(self) -> bool:
        """Whether there are instructions that round to integers: down, up, and to the nearest, or even one."""
        return self.is_arm or "sse4.1" in self.required

    @property
    def masked_bits(self) -> int:
        """The smallest elements of which some in a vector can be loaded and stored, others left alone."""
        return 8 if "avx512bw" in self.required else 32

    @property
    def vector_registers(self) -> int:
        """How many vector registers tiles go by: all, less those that AArch64 loads what it multiplies by to.

        It has 32. On x86-64 a factor that is the same for all lanes is read from memory by the multiply-add.
        """
        return 26 if self.is_arm else 32 if "avx512f" in self.required else 16

    @property
    def lane_factors(self) -> bool:
        """Whether a multiply-add can take the lane of a vector for a factor of all lanes."""
        return self.is_arm


def isa(cpu: str) -> Isa:
    """The ISA of a CPU by name, or of this machine for `native`; raises `OptionError` for a name that isn't known."""
    if cpu == "native":
        name, features = host_cpu()
        machine = platform.machine()
        features = f"{features},{_NO_SVE}" if machine == "aarch64" else features
        return Isa(name, features, tuple(sorted(host_features())), machine)
    if cpu in AARCH64:
        return Isa(cpu, _NO_SVE, AARCH64[cpu], "aarch64")
    if cpu not in CPUS:
        raise OptionError(f"cpu={cpu!r}: expected native or one of {', '.join(CPUS)}")
    return Isa(cpu, "", CPUS[cpu])
