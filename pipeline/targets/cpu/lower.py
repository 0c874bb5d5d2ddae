"""Kernels on tensors → LLVM dialect, for CPUs: where results go, bufferization, loops, LLVM.

The stages are flat lists of passes, to be read from top to bottom.
"""

from __future__ import annotations

from pipeline.ir.attributes import THREAD_BYTES, WORKSPACE
from pipeline.ir.kernels import has_control_flow
from pipeline.ir.rewriting import add_argument, branch_on_selects
from pipeline.mlir import function, ir, run_pipeline, walk
from pipeline.passmanager.pass_pipeline import PassPipeline
from pipeline.runtime.interface.entry_point import ALIGNMENT
from pipeline.targets.cpu.isa import Isa

_DYNAMIC = ir.ShapedType.get_dynamic_size()

BUFFERIZE = f"""
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
    cse
"""

#: What a kernel keeps between its ops, up to this many bytes, lies on its stack.
_STACK = 1 << 18

ON_STACK = f"""func.func(
    buffer-loop-hoisting,
    promote-buffers-to-stack{{max-alloc-size-in-bytes={_STACK} max-rank-of-allocated-memref=1}}
)"""

FREE = """builtin.module(
    buffer-deallocation-pipeline,
    canonicalize,
    func.func(optimize-allocation-liveness)
)"""

# Both 16-bit floats are computed in f32 and rounded after each op, as in eager.
VECTORIZE = """
    func.func(
      refback-munge-memref-copy,
      linalg-generalize-named-ops,
      math-extend-to-supported-types,
      arith-emulate-unsupported-floats{{source-types=bf16,f16 target-type=f32}}
    ),
    convert-through-f32,
    convert-through-i32,
    gathers-to-rows,
    hoist-index-computations,
    tile-and-vectorize{{
      vector-bytes={vector_bytes} registers={registers} fma={fma} masked-bits={masked_bits} bf16-dots={bf16_dots}
    }},
    relax-signed-zeros,
    expand-vector-math{{fma={fma} scalef={scalef}}}
"""

TO_LOOPS = """builtin.module(
    func.func(
      refback-munge-memref-copy,
      convert-linalg-to-loops
    ),
    fold-memref-alias-ops,
    convert-bufferization-to-memref,
    func.func(refback-munge-memref-copy, convert-linalg-to-loops),
    loop-invariant-code-motion,
    cse
)"""

TO_LLVM = """builtin.module(
    expand-strided-metadata,
    lower-affine,
    convert-scf-to-cf,
    arith-expand{include-bf16=1},
    math-expand-ops{ops=ceilf,floorf,roundeven,round},
    convert-math-to-llvm,
    convert-math-to-libm,
    convert-complex-to-standard,
    convert-vector-to-llvm,
    finalize-memref-to-llvm{use-aligned-alloc=1},
    convert-arith-to-llvm,
    convert-index-to-llvm,
    convert-ub-to-llvm,
    convert-func-to-llvm,
    convert-cf-to-llvm,
    reconcile-unrealized-casts,
    canonicalize,
    cse
)"""


#: Where the results of branches and loops lie.
PLACE = """
    update-in-place, share-branch-destinations, double-buffer-iter-args, share-branch-destinations,
    align-while-iter-args
"""


def place_results(module: ir.Module, disable: frozenset[str]) -> None:
    """Branches and loops write their results to memory of known places, before buffers are made for everything else."""
    PassPipeline.parse(PLACE).run(module, disable=disable)


def add_memory(module: ir.Module, mark: str, bits: int) -> None:
    """@main(...) => @main(..., %memory: memref<?xi8> {mark}): memory that the runtime lends, in elements of `bits`."""
    main = function(module, "main")
    add_argument(main, ir.MemRefType.get([_DYNAMIC], ir.IntegerType.get_signless(bits)), mark)


def workspace_bytes(module: ir.Module) -> tuple[int, int]:
    """How large @main's workspace is for one thread, and by how much more for each other one that shares its work.

    None where plan-memory did not run.
    """
    attributes = function(module, "main").attributes
    sizes = [ir.IntegerAttr(attributes[key]).value if key in attributes else 0 for key in (WORKSPACE, THREAD_BYTES)]
    return sizes[0], sizes[1]


def bufferize(module: ir.Module, disable: frozenset[str]) -> None:
    """Tensors become buffers; main's temporaries lie in its workspace, others are allocated and freed where needed."""
    # No cse after tile-groups: it would make one tensor of several scratch tensors, which bufferization has to copy.
    PassPipeline.parse("canonicalize, cse, divide-by-reciprocals, tile-groups").run(module, disable=disable)
    branch_on_selects(module.operation)
    PassPipeline.parse(BUFFERIZE).run(module, disable=disable)
    PassPipeline.parse("call-externals").run(module, disable=disable)
    for kernel in walk(module, "func.func"):
        if not has_control_flow(kernel):
            run_pipeline(kernel, ON_STACK)
    PassPipeline.parse("scratch-to-stack").run(module, disable=disable)
    run_pipeline(module.operation, FREE)
    PassPipeline.parse(f"plan-memory{{alignment={ALIGNMENT}}}").run(module, disable=disable)


def vectorize(module: ir.Module, isa: Isa, disable: frozenset[str], *, parallel: bool) -> None:
    """Linalg on buffers becomes loops over vectors, where it has that form; threads may share them if `parallel`.

    The scratch of kernels lies in the workspace from here on.
    """
    fma = str(isa.fma).lower()
    text = VECTORIZE.format(
        vector_bytes=isa.vector_bytes,
        registers=isa.vector_registers,
        fma=fma,
        masked_bits=isa.masked_bits,
        bf16_dots=str(isa.bf16_dots).lower(),
        scalef=str(isa.scalef).lower(),
    )
    PassPipeline.parse(text).run(module, disable=disable)
    if parallel:
        PassPipeline.parse("parallelize-kernels").run(module, disable=disable)
    PassPipeline.parse("inline-kernels").run(module, disable=disable)
    PassPipeline.parse(f"plan-kernel-scratch{{alignment={ALIGNMENT}}}").run(module, disable=disable)


def to_llvm(module: ir.Module) -> None:
    """Buffers, vectors and what is left of linalg become LLVM dialect."""
    run_pipeline(module.operation, TO_LOOPS)
    run_pipeline(module.operation, TO_LLVM)
    PassPipeline.parse("lower-chunks-to-libgomp").run(module)
