"""Matrix products in kernels whose operand is to lie in panels; for pack-weights and pack-operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from pipeline.analysis.dot_product import dot_product_of
from pipeline.analysis.op_naming import is_product
from pipeline.analysis.scaled_dot import scaled_dot_of
from pipeline.analysis.transposed_conv import renumber_taps
from pipeline.ir.byte_products import HELP, NONE
from pipeline.ir.element_types import element_bytes
from pipeline.ir.indexing_maps import bounded_loops, loop_of
from pipeline.ir.kernels import kernel_kind
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.nibbles import WORD_BYTES, nibble_of
from pipeline.ir.rewriting import before, read_by, update_signature
from pipeline.ir.schedule import schedule_of
from pipeline.mlir import has_one_use, ir, tensor, walk
from pipeline.passes.layout.weight_panels import PanelLayout
from pipeline.passes.tensor.loop_splitting import SplitLoops
from pipeline.passes.tensor.propagate_reshapes import PropagateReshapes
from pipeline.passes.tensor.reshape_splits import Splits
from pipeline.passmanager.base import Pass

_ATTENTION = "attention"


@dataclass(frozen=True)
class PacksPanels(Pass):
    """What passes share that pack operands of products: which panels a CPU's kernels read best."""

    columns: int = field(default=32, metadata={"help": "how many columns a panel has"})
    bf16_dots: bool = field(default=False, metadata={"help": "put each two rows of bf16 side by side"})
    int8_dots: str = field(default=NONE, metadata={"help": f"put each four rows of bytes side by side: {HELP}"})
    dot_matrices: bool = field(default=False, metadata={"help": "put twice as many rows side by side for dots"})
    nibble_words: bool = field(default=False, metadata={"help": "put each four bytes of nibbles side by side"})
    least_bytes: int = field(default=1 << 16, metadata={"help": "a smaller operand stays as it is"})

    def layout(self, product: PackedProduct, memory: Sequence[int] | None = None) -> PanelLayout:
        """How the operand of a product is to lie in panels; `memory`: the order in which its dims lie now."""
        columns = schedule_of(product.kernel).columns or self.columns
        if kernel_kind(product.kernel) == _ATTENTION:  # not only products read rows of its results, which stay whole
            columns = max(1, product.columns)
        sums = [loop is not None and product.view.reductions[loop] for loop in product.loops]
        fills_panels = 1 < product.columns <= columns or product.columns % columns == 0
        rows = {steps: product.row_in_groups(steps) for steps in self._steps(product.view) if fills_panels}
        steps = next((steps for steps, row in rows.items() if row is not None), 1)
        return PanelLayout(product.kind, sums, columns, rows.get(steps), steps, memory)

    def _steps(self, view: LinalgOp) -> tuple[int, ...]:
        """How many rows are read at once, the best first: by a dot product that there is, or as a word of nibbles."""
        if nibble_of(view) is not None:
            return (WORD_BYTES,) if self.nibble_words else ()
        scaled = scaled_dot_of(view)
        if scaled is not None:
            return (scaled.dot.steps,) if scaled.dot.exists(self.bf16_dots, self.int8_dots) else ()
        dot = dot_product_of(view.body)
        if dot is None or not dot.exists(self.bf16_dots, self.int8_dots):
            return ()
        return (2 * dot.steps, dot.steps) if self.dot_matrices else (dot.steps,)

    def why_not(self, product: PackedProduct, layout: PanelLayout) -> str | None:
        """Why an operand stays as it is, whoever hands it over; None if it may be packed."""
        if not product.has_known_sizes:
            return "its sizes are not known"
        size = prod(product.kind.shape) * element_bytes(product.weight)
        if size < self.least_bytes and layout.steps == 1:
            return f"it has {size} bytes, fewer than {self.least_bytes}"
        if layout.missing * 2 > product.columns:
            return f"its {product.columns} columns would fill too little of {layout.panels} panels of {layout.columns}"
        return "it lies as it is read" if layout.is_plain else None


@dataclass(frozen=True)
class PackedProduct:
    """A matrix product in a kernel, one operand of which is an argument of the kernel that nothing else reads.

    Attributes:
        operand: the number of that operand, the weight. Its innermost dim is the innermost one of the result.
    """

    view: LinalgOp
    operand: int

    @property
    def kernel(self) -> ir.Operation:
        """The function that the product is in."""
        return self.weight.owner.owner.operation

    @property
    def kind(self) -> ir.RankedTensorType:
        """The type of the operand."""
        return ir.RankedTensorType(self.weight.type)

    @property
    def has_known_sizes(self) -> bool:
        """Whether the sizes of the operand are known."""
        return all(loop is None or self.view.sizes[loop] is not None for loop in self.loops)

    @cached_property
    def weight(self) -> ir.BlockArgument:
        """The kernel's argument."""
        return self.argument(self.operand)

    def argument(self, operand: int) -> ir.BlockArgument:
        """The argument of the kernel that an operand is."""
        return ir.BlockArgument(self.view.op.operands[operand])

    @cached_property
    def loops(self) -> list[int | None]:
        """The loop of each dim of the weight, None for one of size 1; that of the columns is the last."""
        return loops_of_dims(self.view, self.operand)

    @property
    def rows(self) -> int | None:
        """How many rows of results each column of the operand is read for; None if that is not known."""
        view = self.view
        sizes = [view.sizes[loop] for loop, sums in enumerate(view.reductions) if not sums and loop not in self.loops]
        return None if None in sizes else prod(size or 0 for size in sizes)

    @property
    def columns(self) -> int:
        """How many columns lie side by side; a negative number where that is not known."""
        return self.kind.shape[-1]

    def row_in_groups(self, steps: int) -> int | None:
        """The dim of the weight whose rows go in groups, in which dot products run; None if there is none.

        A loop has to be an index of some operand. That of the rows no longer is one of the weight: a convolution whose
        innermost sum runs along a window (`x[2 * i + k]`) has it nowhere else.
        """
        loop = self.view.summed[-1 if nibble_of(self.view) is None else -2]
        if loop not in self.loops[:-1]:
            return None
        others = [indexing for operand, indexing in enumerate(self.view.maps) if operand != self.operand]
        if loop not in bounded_loops(others):
            return None
        row = self.loops.index(loop)
        return row if self.kind.shape[row] % steps == 0 else None


def products(kernel: ir.Operation) -> Iterator[PackedProduct]:
    """The products in a kernel, each with the operand that may be a weight; convolutions, too.

    The weight of a convolution whose channels fill blocks is in these already, as propagate-layouts has put it.
    """
    kind = kernel_kind(kernel)
    if kind not in ("matmul", "conv", _ATTENTION):
        return
    for generic in walk(kernel, "linalg.generic"):
        view = structured(generic)
        if view is None or not is_product(generic):
            continue
        column = view.loops_read(view.inputs)[-1:]
        for operand in (1, 0):
            if is_alone(view, operand) and column and view.loops_read(operand)[-1:] == column:
                yield PackedProduct(view, operand)
                break


def is_alone(view: LinalgOp, operand: int) -> bool:
    """Whether an operand is an argument of the kernel that nothing else reads, along loops of its own."""
    value, loops = view.op.operands[operand], loops_of_dims(view, operand)
    sizes = zip(loops, ir.ShapedType(value.type).shape, strict=True)
    plain = len(set(view.loops_read(operand))) + loops.count(None) == len(loops)
    plain = plain and all(size == 1 for loop, size in sizes if loop is None)
    return plain and isinstance(value.owner, ir.Block) and has_one_use(value)


def _join_blocks(view: LinalgOp, loop: int) -> None:
    """Has an op read what lies in blocks along a loop as one dim: x[i / 8, i % 8] of a tensor that holds no others."""
    counter = ir.AffineDimExpr.get(loop)
    for operand in range(view.inputs):
        value, places = view.op.operands[operand], list(view.maps[operand].results)
        for dim in range(len(places) - 1):
            blocks, block = ir.RankedTensorType(value.type).shape[dim : dim + 2]
            parts = [ir.AffineExpr.get_floor_div(counter, block), ir.AffineExpr.get_mod(counter, block)]
            if block < 2 or blocks * block != view.sizes[loop] or places[dim : dim + 2] != parts:
                continue
            with before(view.op):
                joined = _collapsed(value, dim)
            indexing = ir.AffineMap.get(view.loops, 0, [*places[:dim], counter, *places[dim + 2 :]])
            read_by(view.op, operand, joined, indexing)
            break


def _collapsed(value: ir.Value, dim: int) -> ir.Value:
    """A tensor with a dim and the one behind it as one."""
    kind = ir.RankedTensorType(value.type)
    shape = list(kind.shape)
    shape[dim : dim + 2] = [shape[dim] * shape[dim + 1]]
    groups = [[at] for at in range(dim)] + [[dim, dim + 1]] + [[at] for at in range(dim + 2, kind.rank)]
    return tensor.CollapseShapeOp(ir.RankedTensorType.get(shape, kind.element_type), value, groups).result


def loops_of_dims(view: LinalgOp, operand: int) -> list[int | None]:
    """The loop that each dim of an operand is read along, None for another place."""
    return [loop_of(place) for place in view.maps[operand].results]


def read_packed(product: PackedProduct, layouts: Mapping[int, PanelLayout]) -> None:
    """Has a kernel take what is packed: its loop over columns is split, and that of the ops behind it."""
    view, layout, column = product.view, layouts[product.operand], product.loops[-1]
    kernel = product.kernel
    assert column is not None
    arguments = {operand: product.argument(operand) for operand in layouts}
    generic = view.op
    if layout.panels > 1 and not layout.missing:
        _join_blocks(view, column)
        view = structured(generic) or view
        generic = SplitLoops(view, Splits({column: (layout.panels, layout.columns)})).run()
    split = structured(generic)
    assert split is not None
    for operand, argument in arguments.items():
        read = generic.operands[operand]
        argument.set_type(layouts[operand].packed)
        places = layouts[operand].places(list(split.maps[operand].results))
        read_by(generic, operand, argument, ir.AffineMap.get(split.loops, 0, places))
        if operand == 1:
            renumber_taps(generic, layouts[operand].moved)
        if read != argument:
            read.owner.erase()
    update_signature(kernel)
    PropagateReshapes().run(kernel)
