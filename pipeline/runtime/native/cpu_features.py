"""What the CPU of this machine has, by LLVM's names, as far as the code of ordinary programs uses it.

Linux says it by names of its own in /proc/cpuinfo on x86-64, and by bits that each process is given on AArch64. What
only systems and special functions use (`sgx`, `rdrnd`, `sha`) is left out: LLVM generates none of it for a model.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import re
from collections.abc import Collection

from pipeline.errors import PipelineError

#: The words of bits that Linux gives a process, by their numbers for `getauxval`.
HWCAP, HWCAP2 = 16, 26

#: The features of AArch64 that code may rely on: (word, bits that are all set), from Linux' asm/hwcap.h. SVE is not
#: among them: code is for vectors of 16 bytes.
AARCH64_BITS = {
    "fp-armv8": (HWCAP, 1 << 0),
    "neon": (HWCAP, 1 << 1),
    "lse": (HWCAP, 1 << 8),
    "fullfp16": (HWCAP, 1 << 9 | 1 << 10),
    "rdm": (HWCAP, 1 << 12),
    "jsconv": (HWCAP, 1 << 13),
    "complxnum": (HWCAP, 1 << 14),
    "rcpc": (HWCAP, 1 << 15),
    "dotprod": (HWCAP, 1 << 20),
    "fp16fml": (HWCAP, 1 << 23),
    "flagm": (HWCAP, 1 << 27),
    "altnzcv": (HWCAP2, 1 << 7),
    "fptoint": (HWCAP2, 1 << 8),
    "i8mm": (HWCAP2, 1 << 13),
    "bf16": (HWCAP2, 1 << 14),
}

#: LLVM's name of each feature of x86-64 that code may rely on, where it is not Linux' name.
_LINUX_NAMES = {
    "64bit": "lm",
    "amx-bf16": "amx_bf16",
    "amx-int8": "amx_int8",
    "amx-tile": "amx_tile",
    "avx512bf16": "avx512_bf16",
    "avx512bitalg": "avx512_bitalg",
    "avx512fp16": "avx512_fp16",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512vnni": "avx512_vnni",
    "avx512vp2intersect": "avx512_vp2intersect",
    "avx512vpopcntdq": "avx512_vpopcntdq",
    "avxifma": "avx_ifma",
    "avxvnni": "avx_vnni",
    "avxvnniint16": "avx_vnni_int16",
    "avxvnniint8": "avx_vnni_int8",
    "avxneconvert": "avx_ne_convert",
    "bmi": "bmi1",
    "crc32": "sse4_2",
    "lzcnt": "abm",
    "prfchw": "3dnowprefetch",
    "sahf": "lahf_lm",
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
}

#: What a process has to ask Linux for: arch_prctl(ARCH_REQ_XCOMP_PERM, TILE_DATA), from its asm/prctl.h.
AMX = frozenset({"amx-bf16", "amx-int8", "amx-tile"})
ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, TILE_DATA = 158, 0x1023, 18

#: The features of x86-64 that code may rely on.
FEATURES = frozenset(
    {
        *_LINUX_NAMES,
        *("adx", "aes", "avx", "avx2", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512ifma", "avx512vbmi"),
        *("avx512vl", "bmi2", "cmov", "cx16", "cx8", "f16c", "fma", "fma4", "fxsr", "gfni", "mmx", "movbe"),
        *(
            "movdir64b",
            "movdiri",
            "pclmul",
            "popcnt",
            "sse",
            "sse2",
            "sse4a",
            "ssse3",
            "tbm",
            "vaes",
            "vpclmulqdq",
            "xop",
        ),
    }
)
_LINUX_NAMES["pclmul"] = "pclmulqdq"


def why_foreign(machine: str, cpu: str, required: Collection[str]) -> str | None:
    """Why this machine cannot run code for a CPU, as the end of a sentence; None if it can.

    Args:
        machine: the kind of machine, as `platform.machine` has it.
        required: the features that the code takes for granted.
    """
    if machine != platform.machine():
        return f"is for {machine} machines, this one is {platform.machine()}"
    missing = sorted(set(required) - host_features())
    return f"is for the CPU {cpu}; this one lacks {', '.join(missing)}" if missing else None


@functools.cache
def host_features() -> frozenset[str]:
    """Those of `FEATURES`, or of `AARCH64_BITS`, that this machine's CPU has, and its system allows."""
    return _of_aarch64() if platform.machine() == "aarch64" else _of_x86_64()


def _of_aarch64() -> frozenset[str]:
    function = ctypes.CDLL(None).getauxval
    function.argtypes, function.restype = [ctypes.c_ulong], ctypes.c_ulong
    words = {word: int(function(word)) for word in (HWCAP, HWCAP2)}
    return frozenset(name for name, (word, bits) in AARCH64_BITS.items() if words[word] & bits == bits)


def _of_x86_64() -> frozenset[str]:
    try:
        with open("/proc/cpuinfo") as file:
            text = file.read()
    except OSError as error:
        raise PipelineError(f"what this CPU has cannot be found out: {error}; is /proc mounted?") from None
    found = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    flags = set(found[1].split()) if found else set()
    names = frozenset(name for name in FEATURES if _LINUX_NAMES.get(name, name) in flags)
    return names if names.isdisjoint(AMX) or _allow_tiles() else names - AMX


def _allow_tiles() -> bool:
    """Asks Linux for the registers of AMX, which a process has to; whether it may use them."""
    return int(ctypes.CDLL(None).syscall(ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, TILE_DATA)) == 0
