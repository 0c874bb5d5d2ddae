"""What the machine that runs the tests can do: code for other CPUs can be looked at there, and not called."""

from __future__ import annotations

import torch

from pipeline.runtime.native.cpu_features import host_features, why_foreign
from pipeline.targets.cpu.isa import isa

#: How long a vector is.
VECTOR_BYTES = isa("native").vector_bytes

#: Dot products of bytes, which code for this machine uses.
DOTS = {"avx512f", "avx512vnni"} <= host_features()

#: Those of bf16, likewise.
BF16_DOTS = isa("native").bf16_dots

#: Whether eager has an LSTM of one direction in bf16, which is oneDNN's, and needs AVX-512; what it says where not.
EAGERS_LSTM_IN_BF16 = torch.ops.mkldnn._is_mkldnn_bf16_supported()
NO_LSTM = "could not create a primitive descriptor for the LSTM forward propagation primitive"


def runs(cpu: str) -> bool:
    """Whether this machine runs code for a CPU."""
    known = isa(cpu)
    return why_foreign(known.machine, known.cpu, known.required) is None


#: The largest CPU without dot products of bytes for which this machine runs code.
WITHOUT_DOTS = "skylake-avx512" if runs("skylake-avx512") else "x86-64-v3"
