"""Kernels on tensors → LLVM dialect, for CPUs: where results go, bufferization, loops, LLVM.

The stages are flat lists of passes, to be read from top to bottom.
"""

from __future__ import annotations

from pipeline.ir.attributes import THREAD_BYTES, WORKSPACE
from pipeline.mlir import function, ir
from pipeline.runtime.interface.entry_point import ALIGNMENT
from pipeline.targets.cpu.isa import Isa

#: Where the results of branches and loops lie, before buffers are made for everything else.
PLACE = """
    update-in-place, share-branch-destinations, double-buffer-iter-args, share-branch-destinations,
    align-while-iter-args
"""

#: What @prepare computes takes little code. What it is, and by which kernels, has been told by then.
SHARE = "share-prepare-kernels"

#: What the caller of @main brings beside the model's arguments.
_CALLING_CONVENTION = "add-workspace{{profile={profile}}}"

#: Results that have memory of the caller's.
OUT_PARAMETERS = "results-to-out-params"

#: Tensors become buffers. No cse behind tile-groups: it would make one tensor of several scratch tensors, which
#: bufferization has to copy.
BUFFERIZE = f"""
    canonicalize,
    cse,
    divide-by-reciprocals,
    flush-softmax-underflow,
    clamp-before-rounding,
    collapse-group-loops,
    tile-groups,
    tensor-selects-to-branches,
    separate-empty-tensors,
    one-shot-bufferize{{
      bufferize-function-boundaries=1
      allow-return-allocs-from-loops=1
      function-boundary-type-conversion=identity-layout-map
      buffer-alignment={ALIGNMENT}
    }},
    reallocate-strided-casts,
    canonicalize,
    drop-equivalent-buffer-results,
    canonicalize,
    cse,
    call-externals,
    kernel-buffers-to-stack,
    scratch-to-stack,
    buffer-deallocation-pipeline,
    canonicalize,
    func.func(optimize-allocation-liveness),
    plan-memory{{alignment={ALIGNMENT}}}
"""

#: Clocks around the calls of kernels, where there is a record for what they say.
PROFILE_KERNELS = "profile-kernels"

#: Linalg on buffers becomes loops over vectors, where it has that form; threads may share them, inside of kernels.
#: Both 16-bit floats are computed in f32 and rounded after each op, as in eager.
VECTORIZE = """
    func.func(
      refback-munge-memref-copy,
      linalg-generalize-named-ops,
      lower-affine,
      math-extend-to-supported-types,
      arith-emulate-unsupported-floats{{source-types=bf16,f16 target-type=f32}}
    ),
    convert-through-f32,
    convert-through-i32,
    drop-unit-dims,
    gathers-to-rows,
    hoist-index-computations,
    vectorize-scans{{vector-bytes={vector_bytes}}},
    tile-and-vectorize{{
      vector-bytes={vector_bytes} registers={registers} fma={fma} masked-bits={masked_bits} bf16-dots={bf16_dots}
      int8-dots={int8_dots} lane-factors={lane_factors} dot-matrices={dot_matrices} amx={amx}
    }},
    relax-signed-zeros,
    expand-vector-math{{fma={fma} scalef={scalef} tables={tables}}},
    {threads}
    inline-kernels,
    plan-kernel-scratch{{alignment={alignment}}},
    outline-amx-blocks
"""

#: Buffers, vectors and what is left of linalg become LLVM dialect.
_TO_LLVM = """
    func.func(
      refback-munge-memref-copy,
      convert-linalg-to-loops
    ),
    func.func(reinterpret-collapsed-buffers),
    fold-memref-alias-ops,
    convert-bufferization-to-memref,
    func.func(refback-munge-memref-copy, convert-linalg-to-loops),
    loop-invariant-code-motion,
    cse,
    expand-strided-metadata,
    lower-affine,
    func.func(remove-single-iteration-loops),
    convert-scf-to-cf,
    arith-expand{{include-bf16=1}},
    math-expand-ops{{ops={expanded}}},
    convert-math-to-llvm,
    convert-math-to-libm,
    convert-complex-to-standard,
    convert-vector-to-llvm{{enable-x86={amx}}},
    finalize-memref-to-llvm{{use-aligned-alloc=1}},
    convert-arith-to-llvm,
    convert-index-to-llvm,
    convert-ub-to-llvm,
    convert-func-to-llvm,
    convert-cf-to-llvm,
    reconcile-unrealized-casts,
    canonicalize,
    cse,
    drop-unused-arguments,
    lower-chunks-to-libgomp
"""


def pipelines(isa: Isa, *, parallel: bool, profile: bool) -> list[str]:
    """All pipelines, in their order."""
    tensors = [PLACE, SHARE, calling_convention(profile=profile), OUT_PARAMETERS]
    return [*tensors, BUFFERIZE, PROFILE_KERNELS, vectorize(isa, parallel=parallel), to_llvm(isa)]


def calling_convention(*, profile: bool) -> str:
    """The pipeline `_CALLING_CONVENTION`; with `profile` the caller brings a record, too."""
    return _CALLING_CONVENTION.format(profile=_word(profile))


def vectorize(isa: Isa, *, parallel: bool) -> str:
    """The pipeline `VECTORIZE` for a CPU; threads share the loops of kernels if `parallel`."""
    return VECTORIZE.format(
        vector_bytes=isa.vector_bytes,
        registers=isa.vector_registers,
        fma=_word(isa.fma),
        masked_bits=isa.masked_bits,
        bf16_dots=_word(isa.bf16_dots),
        int8_dots=isa.int8_dots,
        lane_factors=_word(isa.lane_factors),
        dot_matrices=_word(isa.dot_matrices),
        amx=_word(isa.amx),
        scalef=_word(isa.scalef),
        tables=_word(isa.tables),
        threads="parallelize-kernels," if parallel else "",
        alignment=ALIGNMENT,
    )


def to_llvm(isa: Isa) -> str:
    """The pipeline `_TO_LLVM` for a CPU; what it has no instructions for is expanded."""
    expanded = "round" if isa.rounds else "ceilf,floorf,roundeven,round"
    return _TO_LLVM.format(expanded=expanded, amx=_word(isa.amx))


def workspace_bytes(module: ir.Module) -> tuple[int, int]:
    """How large @main's workspace is for one thread, and by how much more for each other one that shares its work.

    None where plan-memory did not run.
    """
    attributes = function(module, "main").attributes
    sizes = [ir.IntegerAttr(attributes[key]).value if key in attributes else 0 for key in (WORKSPACE, THREAD_BYTES)]
    return sizes[0], sizes[1]


def _word(flag: bool) -> str:
    return str(flag).lower()
