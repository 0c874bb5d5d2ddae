"""What the CPU of this machine has, by LLVM's names, as far as the code of ordinary programs uses it.

Linux says it in /proc/cpuinfo, by names of its own. What only systems and special functions use (`sgx`, `rdrnd`, `sha`)
is left out: LLVM generates none of it for a model.
"""

from __future__ import annotations

import functools
import re

from pipeline.errors import PipelineError

#: LLVM's name of each feature that code may rely on, where it is not Linux' name.
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

#: The features that code may rely on.
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


@functools.cache
def host_features() -> frozenset[str]:
    """Those of `FEATURES` that this machine's CPU has, and its system allows."""
    try:
        with open("/proc/cpuinfo") as file:
            text = file.read()
    except OSError as error:
        raise PipelineError(f"what this CPU has cannot be found out: {error}; is /proc mounted?") from None
    found = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    flags = set(found[1].split()) if found else set()
    return frozenset(name for name in FEATURES if _LINUX_NAMES.get(name, name) in flags)
