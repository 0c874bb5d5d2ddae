"""Functions of a thread → SPIR-V for Vulkan, by MLIR's own serializer."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.ir.attributes import BLOCK, DISPATCH
from pipeline.ir.constants import as_index
from pipeline.mlir import (
    arith,
    gpu,
    ir,
    memref,
    ops_of,
    refusal,
    remap_operands,
    run_pipeline,
    symbol_name,
    walk,
)
from pipeline.passes.legalization.math.table import HAVE_INSTRUCTIONS
from pipeline.passmanager.pass_pipeline import PassPipeline, recorded
from pipeline.targets.gpu.scalars import passed_type, unpack

_CAPABILITIES = "Shader, Int64, Float64"
_EXTENSIONS = "SPV_KHR_storage_buffer_storage_class"
_TARGET = (
    f"#spirv.target_env<#spirv.vce<v1.3, [{_CAPABILITIES}], [{_EXTENSIONS}]>, api=Vulkan,"
    " #spirv.resource_limits<max_compute_workgroup_size = [1024, 1024, 64], max_compute_workgroup_invocations = 1024>>"
)

#: Narrow types, and math that Vulkan's instructions lack. Numbers that fit 32 bits are computed in 32: that is faster,
#: and saves most of the work of compare-in-32-bits.
LEGALIZE = """
    func.func(
      arith-expand,
      int-range-optimizations,
      arith-int-range-narrowing{int-bitwidths-supported=32},
      math-extend-to-supported-types
    ),
    convert-through-f32,
    widen-narrow-types,
    func.func(math-expand-ops{ops=fpowi,ctlz}),
    expand-scalar-math{
      ops=exp,exp2,expm1,log,log2,log10,log1p,tanh,erf,powf,sinh,cosh,asinh,acosh,atanh,sin,cos,tan,asin,acos,atan,atan2
      exact=false
    },
    round-doubles-by-floor,
    expand-remainders{integers=true},
    canonicalize,
    keep-nan,
    cse,
    compare-in-32-bits,
    saturate-index-casts
"""

#: The conversion, kernel by kernel; without canonicalization after it, which would undo what Vulkan needs. What a
#: device must have is stated when infinities have become integers.
TO_SPIRV = f"""
    gpu.module(lower-affine),
    spirv-attach-target{{ver=v1.3 caps={_CAPABILITIES.replace(" ", "")} exts={_EXTENSIONS} client_api=Vulkan}},
    gpu.module(map-memref-spirv-storage-class{{client-api=vulkan}}, convert-math-to-spirv),
    convert-gpu-to-spirv{{use-64bit-index=false}},
    spirv.module(spirv-lower-abi-attrs),
    spirv-infinities-to-bits,
    spirv.module(spirv-update-vce),
    spirv-signed-types
"""


def legalize(device: ir.Module, disable: frozenset[str]) -> None:
    """Rewrites what Vulkan does not have."""
    PassPipeline.parse(LEGALIZE).run(device, disable=disable)
    for op in ops_of(device.operation):
        double = op.name.startswith("math.") and any(isinstance(kind.type, ir.F64Type) for kind in op.operands)
        if double and op.name not in HAVE_INSTRUCTIONS:
            raise refusal(op, f"{op.name} of f64 is not supported on Vulkan; compile it for the target cpu, or in f32")


def serialize(device: ir.Module) -> dict[str, bytes]:
    """The SPIR-V of each dispatch, by name; its entry point is `main`."""
    with recorded():  # these pipelines run on a module of each kernel
        functions = [function for function in walk(device, "func.func") if DISPATCH in function.attributes]
        return {symbol_name(function): _binary(_gpu_module(function)) for function in functions}


def _gpu_module(function: ir.Operation) -> ir.Module:
    """A module with a gpu.func that takes the buffers and, where there are numbers, one buffer of 32-bit words."""
    block = function.regions[0].blocks[0]
    buffers = [argument for argument in block.arguments if isinstance(argument.type, ir.MemRefType)]
    numbers = [argument for argument in block.arguments if not isinstance(argument.type, ir.MemRefType)]
    types = [str(argument.type) for argument in buffers] + ["memref<?xi32>"] * bool(numbers)
    size = ir.IntegerAttr(function.attributes[BLOCK]).value
    takes = ", ".join(f"%a{number}: {kind}" for number, kind in enumerate(types))
    module = ir.Module.parse(
        f"""module attributes {{gpu.container_module}} {{
          gpu.module @kernel attributes {{spirv.target_env = {_TARGET}}} {{
            gpu.func @main({takes}) kernel attributes {{
                spirv.entry_point_abi = #spirv.entry_point_abi<workgroup_size = [{size}, 1, 1]>}} {{
              gpu.return
            }}
          }}
        }}"""
    )
    (kernel,) = walk(module, "gpu.func")
    entry = kernel.regions[0].blocks[0]
    arguments = list(entry.arguments)
    known = dict(zip(buffers, arguments, strict=False))
    with function.location, ir.InsertionPoint(entry.operations[0]):
        known |= _load_numbers(numbers, arguments[-1] if numbers else None)
        for op in list(block.operations)[:-1]:
            copy = op.operation.clone()
            remap_operands(copy, known)
            if copy.name == "memref.alloc":
                _share(copy.results[0])
            known.update(zip(op.operation.results, copy.results, strict=True))
    return module


def _share(buffer: ir.Value) -> None:
    """Says that a buffer belongs to the block, in the words that the conversion to SPIR-V knows."""
    kind = ir.MemRefType(buffer.type)
    shared = ir.Attribute.parse("#spirv.storage_class<Workgroup>")
    buffer.set_type(ir.MemRefType.get(kind.shape, kind.element_type, memory_space=shared))


def _load_numbers(numbers: Iterable[ir.Value], buffer: ir.Value | None) -> dict[ir.Value, ir.Value]:
    """What was passed in words, as values: two words for 64 bits, low one first."""
    known, word = {}, 0
    i32, i64 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(64)

    def load() -> ir.Value:
        nonlocal word
        place = as_index(word)
        word += 1
        return memref.LoadOp(buffer, [place]).result

    for number in numbers:
        kind = passed_type(number.type)
        if isinstance(kind, ir.IndexType):
            value = arith.IndexCastOp(kind, load()).result
        elif kind == i32:
            value = load()
        elif isinstance(kind, ir.F32Type):
            value = arith.BitcastOp(kind, load()).result
        else:
            low, high = arith.ExtUIOp(i64, load()).result, arith.ExtUIOp(i64, load()).result
            shifted = arith.ShLIOp(high, arith.ConstantOp(i64, 32).result).result
            value = arith.OrIOp(low, shifted).result
            value = value if kind == i64 else arith.BitcastOp(kind, value).result
        known[number] = unpack(value, number.type)
    return known


def _binary(module: ir.Module) -> bytes:
    """Converts and serializes; the serializer wants the spirv.module inside of a gpu.module."""
    PassPipeline.parse(TO_SPIRV).run(module)
    (converted,) = walk(module, "spirv.module")
    outer = ir.Module.parse(f"module attributes {{gpu.container_module}} {{ gpu.module @kernel [{_TARGET}] {{}} }}")
    (inner,) = walk(outer, "gpu.module")
    inner.regions[0].blocks[0].append(converted.clone())
    run_pipeline(outer.operation, "builtin.module(gpu-module-to-binary)")
    (binary,) = walk(outer, "gpu.binary")
    return bytes(gpu.ObjectAttr(binary.attributes["objects"][0]).object)
