"""outline-dispatches: what works on buffers becomes functions of its own, one launch of a device each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipeline import remarks
from pipeline.ir.attributes import DISPATCH, GEMM, LINES, PARALLEL, STREAMED, THREADS
from pipeline.ir.matchers import is_fill
from pipeline.ir.rewriting import before
from pipeline.mlir import captured_values, clone, func, ir, is_inside, refusal, symbol_name, terminator, walk
from pipeline.passes.gpu.backward_slice import slice_of
from pipeline.passes.gpu.dispatch_thread_count import dynamic_threads
from pipeline.passes.gpu.flash_attention.pattern import read_attention
from pipeline.passes.gpu.matmul.strided_gemm import cast_behind
from pipeline.passes.gpu.thread.launch_patterns import VIEWS, block_nest, epilogues_of, is_pure
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class OutlineDispatches(Pass):
    """Turn each op that works on buffers into a call of a new function marked `pipeline.dispatch`.

    Such an op is a linalg.generic, a copy, a store, or a loop or branch of nothing but those; the fill that an op
    starts from goes with it, and so do elementwise ops behind it that run over the same loops, and the buffers that
    nothing else touches. The function takes the buffers and numbers that the op reads; views of buffers and
    arithmetic on numbers go into it. What is left in the functions of the model is the plan: allocations, calls,
    control flow and arithmetic on sizes. Where the number of threads depends on sizes that are known at run time only,
    the function's first argument, marked `pipeline.threads`, is that number: of loops of
    tile-groups-to-blocks, it is the number of blocks. Equal dispatches share a function. A product that
    mark-library-gemm has marked is alone but for a cast of its result.
    """

    name: ClassVar[str] = "outline-dispatches"
    mandatory: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Splits every function of the module."""
        functions = [function for function in walk(op, "func.func") if function.regions[0].blocks]
        outliner = _Outliner(op, {symbol_name(f) for f in walk(op, "func.func")})
        for function in functions:
            name = symbol_name(function)
            if STREAMED in function.attributes and _split_whole(function, name, outliner):
                continue
            _split(function.regions[0].blocks[0], name, outliner)


def _split_whole(function: ir.Operation, name: str, outliner: _Outliner) -> bool:
    """Makes one dispatch of all ops of a kernel that is an attention on buffers, too."""
    attention = read_attention(function)
    if isinstance(attention, str):
        remarks.missed(OutlineDispatches.name, function, f"its scores are stored after all: {attention}")
        return False
    ops = [op.operation for op in function.regions[0].blocks[0].operations]
    work = [op for op in ops if op.name.startswith("linalg.")]
    place = work.index(attention.weighted.view.op)
    outliner.outline(work[:place], work[place], work[place + 1 :], name, whole=True)
    return True


def _split(block: ir.Block, name: str, outliner: _Outliner) -> None:
    ops = [op.operation for op in block.operations]
    fills: list[ir.Operation] = []
    taken: set[int] = set()  # numbers, for the ops are gone
    for number, op in enumerate(ops):
        if number in taken:
            continue
        if is_fill(op) and _starts_next(op, ops[number + 1 :]):
            fills.append(op)
        elif _is_dispatch(op):
            if PARALLEL in op.attributes and not block_nest(op):
                remarks.missed(
                    OutlineDispatches.name, op, "one thread does all iterations: their bodies are no block's"
                )
            behind = _behind(op)
            taken |= {later for later in range(number + 1, len(ops)) if later not in taken and ops[later] in behind}
            outliner.outline(fills, op, behind, name)
            fills = []
        else:
            for region in op.regions:
                for inner in region.blocks:
                    _split(inner, name, outliner)


def _behind(op: ir.Operation) -> list[ir.Operation]:
    """What a launch does behind `op`: all that is elementwise; of a library's product, a cast of its result."""
    if GEMM not in op.attributes:
        return epilogues_of(op)
    cast = cast_behind(op)
    return [] if cast is None else [cast.op]


def _starts_next(fill: ir.Operation, following: list[ir.Operation]) -> bool:
    """Whether the next op that works on buffers is a linalg op that updates what `fill` has filled.

    Ops in between touch no memory, or are fills of the same kind.
    """
    for op in following:
        if is_fill(op) and op.operands[1] != fill.operands[1]:
            continue
        if op.name == "linalg.generic":
            inputs = len(op.operands) - _outputs(op)
            operands = list(op.operands)
            captured = captured_values(op)[len(set(operands)) :]
            filled = fill.operands[1]
            return not is_fill(op) and filled in operands[inputs:] and filled not in operands[:inputs] + captured
        if not is_pure(op) and op.name not in ("memref.alloc", "memref.dim", *VIEWS):
            return False
    return False


def _outputs(op: ir.Operation) -> int:
    block = op.regions[0].blocks[0]
    return len(terminator(block).operands)


def _is_dispatch(op: ir.Operation) -> bool:
    if op.name.startswith("linalg.") or op.name in ("memref.copy", "memref.store"):
        return True
    if not op.name.startswith("scf.") or op.results or op.name in ("scf.yield", "scf.condition"):
        return False
    return bool(walk(op, "memref.store", "memref.copy") or _linalg_inside(op)) and not walk(op, "func.call")


def _linalg_inside(op: ir.Operation) -> bool:
    found: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner.operation.name.startswith("linalg."):
            found.append(inner.operation)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return bool(found)


@dataclass
class _Outliner:
    """Makes the functions; knows those made so far by their text, and the names that are taken."""

    module: ir.Operation
    taken: set[str]
    by_text: dict[str, str] = field(default_factory=dict)

    def outline(
        self,
        fills: list[ir.Operation],
        root: ir.Operation,
        behind: list[ir.Operation],
        kernel: str,
        whole: bool = False,
    ) -> None:
        """Moves `root`, its fills and what is done with its results to a function and calls it instead.

        With `whole`, blocks of threads do all of these ops together.
        """
        ops = [*fills, root, *behind]
        if not block_nest(root):
            _hoist_allocations(root)
        inside = slice_of(ops, may_have_buffers=root.name == "linalg.generic" or bool(block_nest(root)))
        made = {result for op in inside for result in op.results}
        read = [value for op in inside for value in captured_values(op) if value not in made]
        arguments = list(dict.fromkeys(read))
        with before(ops[-1]):
            threads = dynamic_threads(root)
        function = self._create(inside, arguments, threads is not None, kernel, root)
        if whole:
            function.attributes[STREAMED] = ir.UnitAttr.get()
        name = self._share(function, kernel)
        with before(ops[-1]):
            extra = [] if threads is None else [threads]
            func.CallOp([], ir.FlatSymbolRefAttr.get(name), extra + arguments)
        for op in reversed(ops):
            op.erase()

    def _create(
        self, ops: list[ir.Operation], arguments: list[ir.Value], dynamic: bool, kernel: str, root: ir.Operation
    ) -> ir.Operation:
        types = [value.type for value in arguments]
        with root.location, ir.InsertionPoint.at_block_begin(self.module.regions[0].blocks[0]):
            if dynamic:
                types.insert(0, ir.IndexType.get())
            function = func.FuncOp("dispatch", ir.FunctionType.get(types, []), visibility="private").operation
            function.attributes[DISPATCH] = ir.StringAttr.get(kernel)
            if GEMM in root.attributes:
                function.attributes[GEMM] = root.attributes[GEMM]
            entry = ir.Block.create_at_start(function.regions[0], types)
            if dynamic:
                marks = [ir.DictAttr.get({THREADS: ir.UnitAttr.get()})] + [ir.DictAttr.get({})] * (len(types) - 1)
                function.attributes["arg_attrs"] = ir.ArrayAttr.get(marks)
        known: dict[ir.Value, ir.Value] = dict(zip(arguments, list(entry.arguments)[int(dynamic) :], strict=True))
        with root.location, ir.InsertionPoint(entry):
            for op in ops:
                clone(op, known)
            func.ReturnOp([])
        return function

    def _share(self, function: ir.Operation, kernel: str) -> str:
        text = function.get_asm(enable_debug_info=False, use_local_scope=True)
        if text in self.by_text:
            function.erase()
            return self.by_text[text]
        name, count = f"{kernel}_dispatch", 0
        while name in self.taken:
            count += 1
            name = f"{kernel}_dispatch_{count}"
        self.taken.add(name)
        function.attributes["sym_name"] = ir.StringAttr.get(name)
        self.by_text[text] = name
        return name


def _hoist_allocations(root: ir.Operation) -> None:
    """Moves buffers that a loop allocates in each iteration in front of it; its iterations are one thread's then."""
    for alloc in walk(root, "memref.alloc"):
        if any(is_inside(size, root) for size in alloc.operands):
            raise refusal(
                alloc,
                "a temporary whose size changes in a loop is not supported on GPUs; compile it for the target cpu",
            )
        alloc.move_before(root)
        loops = [root, *walk(root, "scf.for")]
        for loop in loops:
            if LINES in loop.attributes:
                del loop.attributes[LINES]
