"""Linalg ops seen as what they all are: loops, indexing maps, and a body that runs for each iteration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pipeline.ir.indexing_maps import coefficient, loop_of, loops_in
from pipeline.ir.iteration_space import IterationSpace, iteration_space
from pipeline.mlir import ir, linalg, terminator

_WIDENING = ("arith.extf", "arith.extsi", "arith.extui")
_ELEMENTWISE = ("linalg.generic", "linalg.transpose", "linalg.broadcast", "linalg.fill")


@dataclass(frozen=True)
class LinalgOp:
    """A linalg op on tensors or on buffers.

    Attributes:
        op: the op.
        space: the loops, and how each operand is read in them.
        anchor: the op whose loops these are, where that is another one.
    """

    op: ir.Operation
    space: IterationSpace
    anchor: LinalgOp | None = None

    @property
    def maps(self) -> tuple[ir.AffineMap, ...]:
        """From loops to the indices of each operand, inputs first."""
        return self.space.maps

    @property
    def reductions(self) -> tuple[bool, ...]:
        """Which loops are reductions."""
        return self.space.reductions

    @property
    def operands(self) -> ir.OpOperandList:
        """What is read and written: inputs first."""
        return self.op.operands

    @property
    def loops(self) -> int:
        """How many loops there are."""
        return len(self.reductions)

    @property
    def body(self) -> ir.Block:
        """What runs for each iteration; takes an element of each operand."""
        return self.op.regions[0].blocks[0]

    @cached_property
    def inputs(self) -> int:
        """How many operands are inputs."""
        return len(self.maps) - (len(self.op.results) or len(self.yielded))

    @property
    def outputs(self) -> range:
        """The numbers of the operands that are outputs."""
        return range(self.inputs, len(self.maps))

    @cached_property
    def yielded(self) -> list[ir.Value]:
        """What the body hands out for each result."""
        return list(terminator(self.body).operands)

    @cached_property
    def body_ops(self) -> list[ir.Operation]:
        """The ops of the body without its terminator."""
        return [op.operation for op in self.body.operations][:-1]

    @cached_property
    def is_elementwise(self) -> bool:
        """Whether each result element is computed once, from the inputs alone; never of what has no body."""
        return (
            len(self.op.regions) > 0
            and not self.space.has_reductions
            and all(self.space.permutations[output] for output in self.outputs)
            and self.ignores_outputs
        )

    @property
    def ignores_outputs(self) -> bool:
        """Whether the body reads nothing of what the outputs hold before."""
        arguments = self.body.arguments
        return not any(list(arguments[output].uses) for output in self.outputs)

    @property
    def bounds(self) -> dict[int, tuple[int, int]]:
        """For each loop an (operand, dim) that it runs along; without loops that are bounded by no dim alone."""
        return self.space.bounds if self.anchor is None else self.anchor.bounds

    @cached_property
    def sizes(self) -> tuple[int | None, ...]:
        """How often each loop runs: None where that is not known, 0 for a loop that is bounded by no dim alone."""
        if self.anchor is not None:
            return self.anchor.sizes
        return tuple(self._size(loop) if loop in self.bounds else 0 for loop in range(self.loops))

    def _size(self, loop: int) -> int | None:
        operand, dim = self.bounds[loop]
        kind = ir.ShapedType(self.op.operands[operand].type)
        return None if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim)

    @property
    def summed(self) -> list[int]:
        """The loops that are reductions."""
        return [loop for loop, reduces in enumerate(self.reductions) if reduces]

    def loops_read(self, operand: int) -> list[int]:
        """The loops that are an index of an operand."""
        loops = map(loop_of, self.maps[operand].results)
        return [loop for loop in loops if loop is not None]

    def moves(self, operand: int, loop: int) -> str:
        """How an operand moves with a loop, in the words of `indexing_maps.moves`."""
        return self.space.moves(operand, loop)

    def reads_once(self, operand: int) -> bool:
        """Whether every iteration reads another element of an operand."""
        return self.space.permutations[operand]


def structured(op: ir.Operation | None) -> LinalgOp | None:
    """A generic, transpose, broadcast or fill; None if it is another op."""
    if op is None or op.name not in _ELEMENTWISE:
        return None
    if op.name == "linalg.generic":
        attributes = op.attributes
        return LinalgOp(op, iteration_space(attributes["indexing_maps"], attributes["iterator_types"]))
    rank = ir.ShapedType(op.operands[len(op.operands) - 1].type).rank
    identity = ir.AffineMap.get_identity(rank)
    dims = identity.results
    if op.name == "linalg.fill":
        source = ir.AffineMap.get(rank, 0, [])
    elif op.name == "linalg.transpose":
        permutation = list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
        source = ir.AffineMap.get(rank, 0, [dims[permutation.index(dim)] for dim in range(rank)])
    else:
        added = list(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
        source = ir.AffineMap.get(rank, 0, [dims[dim] for dim in range(rank) if dim not in added])
    return LinalgOp(op, IterationSpace((source, identity), (False,) * rank))


def any_structured(op: ir.Operation | None) -> LinalgOp | None:
    """Like `structured`, for named ops too: matrix products, convolutions, pools; their bodies are read-only."""
    found = structured(op)
    if found is not None or op is None or not op.name.startswith("linalg."):
        return found
    attribute = linalg.get_indexing_maps(op)
    if attribute is None:
        return None
    maps = [ir.AffineMapAttr(entry).value for entry in attribute]
    outputs = len(op.results) or len(terminator(op.regions[0].blocks[0]).operands)
    written = {expression for indexing in maps[-outputs:] for expression in indexing.results}
    loops = [ir.AffineDimExpr.get(dim) for dim in range(maps[0].n_dims)]
    return LinalgOp(op, IterationSpace(tuple(maps), tuple(loop not in written for loop in loops)))


def bounded(generic: ir.Operation) -> LinalgOp | None:
    """A linalg.generic; None if one of its loops is bounded by no dim of an operand alone."""
    view = structured(generic)
    return view if view is not None and len(view.bounds) == view.loops else None


def moves_rows(view: LinalgOp) -> bool:
    """Whether an op only gives whole rows another place, repeats them, or makes their elements wider.

    The innermost dim stays the innermost: rows can be read where they are as fast as where they would be put.
    """
    if view.inputs != 1 or not view.is_elementwise or any(op.name not in _WIDENING for op in view.body_ops):
        return False
    if not view.body_ops and view.yielded != [view.body.arguments[0]]:
        return False
    read, wrote = view.loops_read(0), view.loops_read(1)
    return bool(read) and len(read) == len(view.maps[0].results) and read[-1] == wrote[-1]


def reads_input_again(view: LinalgOp) -> bool:
    """Whether a reduction reads an element of an input in several iterations, as contractions and pools do."""
    if not any(view.reductions):
        return False
    for indexing in view.maps[: view.inputs]:
        used = loops_in(indexing)
        if used and (len(used) < view.loops or len(indexing.results) < view.loops):
            return True
    return False


def slides(view: LinalgOp) -> bool:
    """Whether each reduction slides a window along a parallel loop, as in a depthwise convolution or a pool."""
    return bool(view.summed) and all(slid_along(view, loop) for loop in view.summed)


def slid_along(view: LinalgOp, loop: int) -> set[int]:
    """The parallel loops that an index of an input is the sum of together with a loop; none if it is not linear."""
    found: set[int] = set()
    for expression in (result for indexing in view.maps[: view.inputs] for result in indexing.results):
        steps = [coefficient(expression, other) for other in range(view.loops)]
        if None in steps:
            return set()
        if steps[loop]:
            found |= {other for other, step in enumerate(steps) if step and not view.reductions[other]}
    return {other for other in found if view.sizes[other] != 1}
