"""Functions of a thread → LLVM IR with NVVM's intrinsics."""

from __future__ import annotations

from pipeline.errors import CompileError
from pipeline.ir.attributes import BLOCK, DISPATCH, SHARED
from pipeline.mlir import clone, ir, run_pipeline, symbol_name, to_llvm_ir, walk
from pipeline.passmanager.pass_pipeline import PassPipeline
from pipeline.targets.cuda import shared_memory
from pipeline.targets.gpu.scalars import passed_type, unpack

#: bf16 and f16 are computed in f32 and rounded after each op, as on CPUs and in PyTorch.
LEGALIZE = """
    func.func(
      arith-expand,
      math-expand-ops{{ops=fpowi}},
      math-extend-to-supported-types,
      arith-emulate-unsupported-floats{{source-types=bf16,f16 target-type=f32}}
    ),
    keep-rounding,
    convert-through-f32,
    {rounding}
    func.func(arith-expand{{include-bf16=1}}),
    expand-remainders,
    canonicalize,
    cse
"""

#: From sm_80 on.
ROUND = "func.func(round-to-bf16),"

#: For compilers without libdevice.
EXPAND_MATH = """
    expand-scalar-math{
      ops=exp,exp2,expm1,log,log2,log10,log1p,tanh,erf,powf,sinh,cosh,asinh,acosh,atanh,asin,acos,atan,atan2
    }
"""

TO_NVVM = """builtin.module(
    convert-math-to-nvvm,
    convert-nvgpu-to-nvvm,
    gpu.module(
      arith-expand{include-bf16=1},
      convert-math-to-llvm,
      convert-scf-to-cf,
      expand-strided-metadata,
      lower-affine,
      convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=true},
      convert-index-to-llvm,
      convert-arith-to-llvm,
      convert-nvvm-to-llvm,
      reconcile-unrealized-casts,
      canonicalize,
      cse
    )
)"""

#: What PTX has instructions for, and `pipeline.targets.cuda.ptx` functions in the place of libdevice's.
_INSTRUCTIONS = {
    *("math.absf", "math.ceil", "math.copysign", "math.ctlz", "math.floor", "math.fma", "math.rsqrt"),
    *("math.roundeven", "math.sqrt", "math.trunc"),
}

#: What the buffers that a launch gets start at a multiple of, in bytes.
_ALIGNMENT = 16

#: A number of elements that no buffer has: bare pointers are for memrefs of known size only.
_ANY_SIZE = 2**40


def legalize(device: ir.Module, libdevice: bool, rounds: bool, disable: frozenset[str]) -> None:
    """Rewrites what PTX does not have; `rounds` says whether it rounds float32 to bfloat16.

    Raises:
        CompileError: without libdevice, a function is left that only it has.
    """
    PassPipeline.parse(LEGALIZE.format(rounding=ROUND if rounds else "")).run(device, disable=disable)
    if libdevice:
        return
    PassPipeline.parse(EXPAND_MATH).run(device, disable=disable)

    def visit(op: ir.Operation) -> ir.WalkResult:
        name = op.operation.name
        if name.startswith("math.") and name not in _INSTRUCTIONS:
            missing.add(name)
        return ir.WalkResult.ADVANCE

    missing: set[str] = set()
    device.operation.walk(visit)
    if missing:
        raise CompileError(f"{', '.join(sorted(missing))}: needs libdevice; pip install nvidia-nvvm, or set CUDA_HOME")


def to_llvm(device: ir.Module) -> str:
    """The dispatches of a module as LLVM IR of one module, with a kernel of the same name for each."""
    module = ir.Module.parse("module attributes {gpu.container_module} { gpu.module @kernels {} }")
    (kernels,) = walk(module, "gpu.module")
    for function in walk(device, "func.func"):
        if DISPATCH in function.attributes:
            _add_kernel(kernels, function)
    run_pipeline(module.operation, TO_NVVM)
    shared_memory.make_external(module)
    inner = ir.Module.create(ir.Location.unknown())
    (kernels,) = walk(module, "gpu.module")
    for op in kernels.regions[0].blocks[0].operations:
        inner.body.append(op.operation.clone())
    return to_llvm_ir(inner)


def _add_kernel(kernels: ir.Operation, function: ir.Operation) -> None:
    block = function.regions[0].blocks[0]
    name = symbol_name(function)
    size = ir.IntegerAttr(function.attributes[BLOCK]).value
    takes = ", ".join(f"%a{n}: {_taken(argument.type)}" for n, argument in enumerate(block.arguments))
    allocations = list(walk(function, "memref.alloc"))
    dynamic = shared_memory.dynamic_bytes(allocations)
    if dynamic:
        function.attributes[SHARED] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dynamic)
    workgroup = "" if dynamic else shared_memory.declared(allocations)
    source = ir.Module.parse(
        f"""module {{ gpu.module @m {{
          gpu.func @{name}({takes}) {workgroup} kernel attributes {{known_block_size = array<i32: {size}, 1, 1>}} {{
            gpu.return
          }}
        }} }}"""
    )
    (kernel,) = walk(source, "gpu.func")
    kernel = kernel.clone()
    kernels.regions[0].blocks[0].append(kernel)
    entry = kernel.regions[0].blocks[0]
    known: dict[ir.Value, ir.Value] = {}
    with function.location, ir.InsertionPoint(entry.operations[0]):
        own = shared_memory.views(allocations) if dynamic else list(entry.arguments)[len(block.arguments) :]
        known.update(zip((op.results[0] for op in allocations), own, strict=True))
        for argument, passed in zip(block.arguments, entry.arguments, strict=False):
            is_buffer = isinstance(argument.type, ir.MemRefType)
            known[argument] = passed if is_buffer else unpack(passed, argument.type)
        for op in list(block.operations)[:-1]:
            if op.operation.name == "memref.alloc":
                continue
            clone(op.operation, known)


def _taken(kind: ir.Type) -> str:
    """The type of a kernel's parameter for an argument of a dispatch, and of a buffer what it starts at."""
    if isinstance(kind, ir.MemRefType):
        return f"memref<{_ANY_SIZE}x{kind.element_type}> {{llvm.align = {_ALIGNMENT}}}"
    return str(passed_type(kind))
