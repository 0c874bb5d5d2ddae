"""Functions of a thread → LLVM IR with NVVM's intrinsics."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pipeline.errors import CompileError
from pipeline.ir.attributes import BLOCK, DISPATCH, SHARED
from pipeline.ir.constants import as_index
from pipeline.mlir import clone, gpu, ir, memref, run_pipeline, symbol_name, to_llvm_ir, walk
from pipeline.passmanager.pass_pipeline import PassPipeline
from pipeline.targets.gpu.scalars import passed_type, unpack

#: bf16 and f16 are computed in f32 and rounded after each op, as on CPUs and in PyTorch.
LEGALIZE = """
    func.func(
      arith-expand,
      math-expand-ops{ops=fpowi},
      math-extend-to-supported-types,
      arith-emulate-unsupported-floats{source-types=bf16,f16 target-type=f32}
    ),
    keep-rounding,
    convert-through-f32,
    func.func(arith-expand{include-bf16=1}),
    canonicalize,
    cse
"""

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

#: What a kernel may share without asking the driver for more, and where each buffer of those that ask begins.
_STATIC_BYTES, _DYNAMIC_ALIGNMENT = 48 * 1024, 1024

#: A number of elements that no buffer has: bare pointers are for memrefs of known size only.
_ANY_SIZE = 2**40


def legalize(device: ir.Module, libdevice: bool, disable: frozenset[str]) -> None:
    """Rewrites what PTX does not have.

    Raises:
        CompileError: without libdevice, a function is left that only it has.
    """
    PassPipeline.parse(LEGALIZE).run(device, disable=disable)
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
    for memory in walk(module, "llvm.mlir.global"):
        if symbol_name(memory).startswith("__dynamic_shmem"):
            memory.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")
            memory.attributes["alignment"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _DYNAMIC_ALIGNMENT)
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
    buffers = [op.results[0] for op in allocations]
    dynamic = _dynamic_bytes(buffers)
    if dynamic:
        function.attributes[SHARED] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dynamic)
    shared = [] if dynamic else buffers
    aligned = [max(16, ir.IntegerAttr(op.attributes["alignment"]).value) for op in allocations if not dynamic]
    tiles = ", ".join(f"%s{n}: {buffer.type} {{llvm.align = {aligned[n]}}}" for n, buffer in enumerate(shared))
    workgroup = f"workgroup({tiles})" if shared else ""
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
        known.update(zip(shared, list(entry.arguments)[len(block.arguments) :], strict=True))
        if dynamic:
            known.update(zip(buffers, _views_of_dynamic(buffers), strict=True))
        for argument, passed in zip(block.arguments, entry.arguments, strict=False):
            is_buffer = isinstance(argument.type, ir.MemRefType)
            known[argument] = passed if is_buffer else unpack(passed, argument.type)
        for op in list(block.operations)[:-1]:
            if op.operation.name == "memref.alloc":
                continue
            clone(op.operation, known)


def _dynamic_bytes(buffers: Sequence[ir.Value]) -> int:
    """How much shared memory a kernel asks for at its launch; 0 where what each kernel has is enough."""
    if sum(_bytes_of(buffer) for buffer in buffers) <= _STATIC_BYTES:
        return 0
    return sum(_aligned_bytes(buffer) for buffer in buffers)


def _views_of_dynamic(buffers: Sequence[ir.Value]) -> list[ir.Value]:
    """The buffers one after the other in the memory that the launch asks for."""
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    whole = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], ir.IntegerType.get_signless(8), memory_space=space)
    memory = gpu.DynamicSharedMemoryOp(whole).result
    views, offset = [], 0
    for buffer in buffers:
        views.append(memref.ViewOp(buffer.type, memory, as_index(offset), []).result)
        offset += _aligned_bytes(buffer)
    return views


def _aligned_bytes(buffer: ir.Value) -> int:
    return -(-_bytes_of(buffer) // _DYNAMIC_ALIGNMENT) * _DYNAMIC_ALIGNMENT


def _bytes_of(buffer: ir.Value) -> int:
    kind = ir.MemRefType(buffer.type)
    return prod(kind.shape) * -(-kind.element_type.width // 8)


def _taken(kind: ir.Type) -> str:
    """The type of a kernel's parameter for an argument of a dispatch."""
    if isinstance(kind, ir.MemRefType):
        return f"memref<{_ANY_SIZE}x{kind.element_type}>"
    return str(passed_type(kind))
