"""The CPUs that code can be generated for, and what each must have to run it."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.errors import OptionError
from pipeline.llvm import host_cpu
from pipeline.runtime.native.cpu_features import host_features

# The x86-64 psABI's levels, each with what it adds (LLVM's feature names).
_V2 = ("cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")

# What LLVM takes instructions from for the CPUs below, for shifts of small integers, shuffles and conversions of f16.
_ICELAKE = ("avx512bitalg", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512vpopcntdq", "gfni")
_SAPPHIRE_RAPIDS = ("avx512bf16", "avx512fp16", "avxvnni")

#: The features that each must have, by LLVM's name for it.
CPUS = {
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

#: The shortest vectors, in bytes, that are loaded under masks by an instruction: those of AVX2.
LEAST_MASKED = 32


@dataclass(frozen=True)
class Isa:
    """A CPU as LLVM knows it.

    Attributes:
        cpu: LLVM's name for it.
        features: LLVM's feature string on top of what the name implies.
        required: the features that a machine must have to run the code.
    """

    cpu: str
    features: str
    required: tuple[str, ...]

    @property
    def vector_bytes(self) -> int:
        """The width of a vector register."""
        return 64 if "avx512f" in self.required else 32 if "avx2" in self.required else 16

    @property
    def fma(self) -> bool:
        """Whether there are instructions that multiply and add with one rounding."""
        return "fma" in self.required

    @property
    def bf16_dots(self) -> bool:
        """Whether there is an instruction that adds two products of bf16 to each f32 of a vector."""
        return {"avx512f", "avx512bf16"} <= set(self.required)

    @property
    def int8_dots(self) -> bool:
        """Whether there is an instruction that adds four products of bytes to each 32-bit integer of a vector."""
        return {"avx512f", "avx512vnni"} <= set(self.required)

    @property
    def tables(self) -> bool:
        """Whether there is an instruction that looks each f32 of a vector up in a table of 16."""
        return "avx512f" in self.required

    @property
    def scalef(self) -> bool:
        """Whether there is an instruction for x * 2 ** n."""
        return "avx512f" in self.required

    @property
    def masked_bits(self) -> int:
        """The smallest elements of which some in a vector can be loaded and stored, others left alone."""
        return 8 if "avx512bw" in self.required else 32

    @property
    def vector_registers(self) -> int:
        """How many vector registers there are."""
        return 32 if "avx512f" in self.required else 16


def isa(cpu: str) -> Isa:
    """The ISA of a CPU by name, or of this machine for `native`; raises `OptionError` for a name that isn't known."""
    if cpu == "native":
        name, features = host_cpu()
        return Isa(name, features, tuple(sorted(host_features())))
    if cpu not in CPUS:
        raise OptionError(f"cpu={cpu!r}: expected native or one of {', '.join(CPUS)}")
    return Isa(cpu, "", CPUS[cpu])
