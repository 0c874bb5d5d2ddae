"""Kernels on tensors → LLVM dialect, for CPUs: where results go, bufferization, loops, LLVM.

The stages are flat lists of passes, to be read from top to bottom.
"""

from __future__ import annotations

from math import prod

from pipeline.ir.kernels import has_control_flow
from pipeline.ir.rewriting import add_argument, branch_on_selects
from pipeline.mlir import bufferization, func, function, ir, memref, run_pipeline, terminator, walk
from pipeline.passes.bufferization.destinations import begin_in, place_of, put, shape_of, start_of
from pipeline.passes.bufferization.plan_kernel_scratch import THREAD_BYTES
from pipeline.passes.bufferization.plan_memory import WORKSPACE
from pipeline.passes.bufferization.updated_arguments import IN_PLACE, updates_of
from pipeline.passmanager.pass_pipeline import PassPipeline
from pipeline.runtime.interface.aligned_memory import ALIGNMENT
from pipeline.runtime.interface.entry_point import Where
from pipeline.targets.cpu.isa import Isa

_DYNAMIC = ir.ShapedType.get_dynamic_size()

BUFFERIZE = f"""builtin.module(
    one-shot-bufferize{{
      bufferize-function-boundaries=1
      allow-return-allocs-from-loops=1
      function-boundary-type-conversion=identity-layout-map
      buffer-alignment={ALIGNMENT}
    }},
    canonicalize,
    drop-equivalent-buffer-results,
    canonicalize,
    cse
)"""

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
    compute-lines,
    tile-and-vectorize{{
      vector-bytes={vector_bytes} registers={registers} fma={fma} masked-bits={masked_bits} bf16-dots={bf16_dots}
    }},
    ignore-zero-signs,
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
PLACE = "update-in-place, share-branch-destinations, rotate-carries, share-branch-destinations, align-carries"


def place_results(module: ir.Module, disable: frozenset[str]) -> None:
    """Branches and loops write their results to memory of known places, before buffers are made for everything else."""
    PassPipeline.parse(PLACE).run(module, disable=disable)


def results_to_arguments(module: ir.Module, name: str) -> list[Where]:
    """@f(...) -> tensor<4xf32>  =>  @f(..., %out: memref<4xf32>): the caller says where results of known size go.

    New values of arguments that are `pipeline.in_place` are written to these. Returns for each result where it goes.
    """
    entry = function(module, name)
    block = entry.regions[0].blocks[0]
    end = terminator(block)
    own = {update.number: _as_memory(update.argument, block) for update in updates_of(entry, IN_PLACE)}
    values, inputs = list(end.operands), [argument.type for argument in block.arguments]
    kept: list[ir.Value] = []
    where: list[Where] = []
    with entry.location, ir.InsertionPoint(end):
        for number, value in enumerate(values):
            if number in own:
                where.append("argument")
            elif not isinstance(value.type, ir.RankedTensorType) or not value.type.has_static_shape:
                kept.append(value)
                where.append("result")
            else:
                inputs.append(ir.MemRefType.get(value.type.shape, value.type.element_type))
                destination = block.add_argument(inputs[-1], entry.location)
                _compute_into(value, destination, block)
                bufferization.MaterializeInDestinationOp(None, value, destination, restrict=True, writable=True)
                where.append("parameter")
        for number, memory in own.items():  # last, since the results above may still read what was there
            bufferization.MaterializeInDestinationOp(None, values[number], memory, restrict=True, writable=True)
        func.ReturnOp(kept)
    end.erase()
    entry.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, [value.type for value in kept]))
    _mark_read_only(entry, block)
    return where


def _as_memory(argument: ir.BlockArgument, block: ir.Block) -> ir.Value:
    """Makes an argument memory that is read and written: a tensor over it takes its place."""
    kind = ir.RankedTensorType(argument.type)
    with block.owner.location, ir.InsertionPoint.at_block_begin(block):
        argument.set_type(ir.MemRefType.get(kind.shape, kind.element_type))
        tensor = bufferization.ToTensorOp(kind, argument, restrict=True, writable=True)
    argument.replace_all_uses_except(tensor.result, tensor.operation)
    return argument


def _compute_into(value: ir.Value, destination: ir.Value, block: ir.Block) -> None:
    """Has the kernel that computes `value` write it to `destination` right away, so that the copy there goes.

    Where kernels write parts of an argument of the caller's, that is copied to `destination` first.
    """
    place, shape = place_of(value), list(ir.MemRefType(destination.type).shape)
    wanted = None if place is None else shape_of(place)
    if place is not None and wanted is not None and (wanted == shape or (wanted and shape)):
        put(place, _reshaped(destination, wanted, block))
    start = start_of(value, block)
    if start is not None and list(ir.RankedTensorType(start[0].operands[start[1]].type).shape) == shape:
        begin_in(start, destination)


def _reshaped(memory: ir.Value, shape: list[int], block: ir.Block) -> ir.Value:
    """An argument of `block` that is memory, seen in another shape of as many elements; neither has no dims."""
    kind = ir.MemRefType(memory.type)
    if list(kind.shape) == shape:
        return memory
    with block.owner.location, ir.InsertionPoint.at_block_begin(block):
        flat = ir.MemRefType.get([prod(shape)], kind.element_type)
        if kind.rank > 1:
            memory = memref.CollapseShapeOp(flat, memory, [list(range(kind.rank))]).result
        if len(shape) == 1:
            return memory
        seen = ir.MemRefType.get(shape, kind.element_type)
        return memref.ExpandShapeOp(seen, memory, [list(range(len(shape)))], [], shape).result


def _mark_read_only(entry: ir.Operation, block: ir.Block) -> None:
    """The caller's other tensors and the weights are never written in place."""
    read_only = {"bufferization.writable": ir.BoolAttr.get(False, entry.context)}
    marks = [ir.DictAttr(mark) for mark in entry.attributes["arg_attrs"]] if "arg_attrs" in entry.attributes else []
    marks += [ir.DictAttr.get({}, entry.context)] * (len(block.arguments) - len(marks))
    for number, argument in enumerate(block.arguments):
        if isinstance(argument.type, ir.RankedTensorType):
            marks[number] = ir.DictAttr.get(read_only, entry.context)
    entry.attributes["arg_attrs"] = ir.ArrayAttr.get(marks, entry.context)


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
    run_pipeline(module.operation, BUFFERIZE)
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
    PassPipeline.parse(f"plan-scratch{{alignment={ALIGNMENT}}}").run(module, disable=disable)


def to_llvm(module: ir.Module) -> None:
    """Buffers, vectors and what is left of linalg become LLVM dialect."""
    run_pipeline(module.operation, TO_LOOPS)
    run_pipeline(module.operation, TO_LLVM)
    PassPipeline.parse("spawn-chunks").run(module)
