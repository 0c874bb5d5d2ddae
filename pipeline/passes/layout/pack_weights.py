"""pack-weights: products read their weights in the order in which @prepare has put them for that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import ClassVar

from pipeline.analysis.dot_product import DotProduct, dot_product_of, multiplies_bf16
from pipeline.analysis.op_naming import is_product
from pipeline.ir.attributes import KERNEL
from pipeline.ir.element_types import element_bytes
from pipeline.ir.indexing_maps import bounded_loops
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.rewriting import read_by, update_signature
from pipeline.ir.schedule import schedule_of
from pipeline.mlir import calls_of, ir, symbol_name, walk
from pipeline.passes.layout.prepared_weights import PreparedWeights, is_weight
from pipeline.passes.layout.weight_panels import Packing, PanelLayout
from pipeline.passes.tensor.loop_splitting import SplitLoops
from pipeline.passes.tensor.propagate_reshapes import PropagateReshapes
from pipeline.passes.tensor.reshape_splits import Splits
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class PackWeights(Pass):
    """Give kernels of matrix products their weights in panels of some columns, row after row.

    w[k, n]  ->  packed[n / 32, k, n % 32]

    A tile of the product runs over the columns of one panel, whose elements follow each other then: the rows of a large
    weight are a page of memory apart, and each would take an entry of the address translation. The columns of the
    kernel's result, and of what its epilogue reads, are seen as panels, too, which costs nothing. @prepare packs the
    weights, once. Where the last panel is not full, the kernel's columns stay as they are, and the rest of the panel is
    never read. For dot products each two rows of bf16, or four of bytes, lie side by side, if that comes out even and
    panels are full:

    w[k, n]  ->  packed[n / 32, k / 2, 2 * (n % 32) + k % 2]

    Only where all calls of a kernel hand it a weight of the model. One row gains most, since it is bound by the reading
    of the weight.
    """

    name: ClassVar[str] = "pack-weights"

    columns: int = field(default=32, metadata={"help": "how many columns a panel has"})
    bf16_dots: bool = field(default=False, metadata={"help": "put each two rows of bf16 side by side"})
    int8_dots: bool = field(default=False, metadata={"help": "put each four rows of bytes side by side"})
    least_bytes: int = field(default=1 << 16, metadata={"help": "a smaller weight stays as it is"})

    def run(self, op: ir.Operation) -> None:
        """Packs the weights of all kernels of a module."""
        functions = {symbol_name(function): function for function in walk(op, "func.func")}
        if "main" not in functions:
            return
        prepared, packing = PreparedWeights(op), Packing(op, set(functions))
        calls = calls_of(op)
        with op.location:
            for name, kernel in functions.items():
                for product in _products(kernel):
                    self._pack(product, calls.get(name, []), prepared, packing)
            prepared.finish()

    def _pack(self, product: _Product, calls: list[ir.Operation], prepared: PreparedWeights, packing: Packing) -> None:
        handed = [call.operands[product.weight.arg_number] for call in calls]
        if not any(map(is_weight, handed)):
            return
        columns = schedule_of(product.weight.owner.owner.operation).columns or self.columns
        sums = [product.view.reductions[loop] for loop in product.loops]
        fills_panels = product.columns <= columns or product.columns % columns == 0
        dot = self._dot(product.view) if fills_panels else None
        row = None if dot is None else product.row_in_groups(dot.steps)
        steps = 1 if dot is None else dot.steps
        layout = PanelLayout(ir.RankedTensorType(product.weight.type), sums, columns, row, steps)
        reason = self._why_not(product, layout, columns, handed)
        if reason:
            self.missed(product.view.op, f"its weight is not packed: {reason}")
            return
        groups = {1: "", 2: " of pairs", 4: " of quads"}[layout.steps]
        self.passed(product.view.op, f"reads its weight in panels of {layout.columns} columns{groups}")
        number = product.weight.arg_number
        kernel = packing.kernel(layout)
        for call in calls:
            call.operands[number] = prepared.computed(call.operands[number], kernel, layout.packed)
        _read_packed(product, layout)

    def _dot(self, view: LinalgOp) -> DotProduct | None:
        """The instruction that sums several products at once, if the processor has it."""
        dot = dot_product_of(view.body)
        if dot is None or not (self.bf16_dots if dot.unsigned is None else self.int8_dots):
            return None
        return dot

    def _why_not(self, product: _Product, layout: PanelLayout, columns: int, handed: list[ir.Value]) -> str | None:
        """Why a weight stays as it is; None if it is to be packed."""
        kind, view = ir.RankedTensorType(product.weight.type), product.view
        if not all(map(is_weight, handed)):
            return "some call hands the kernel something else than a weight of the model"
        if any(view.sizes[loop] is None for loop in product.loops):
            return "its sizes are not known"
        size = prod(kind.shape) * element_bytes(product.weight)
        if size < self.least_bytes:
            return f"it has {size} bytes, fewer than {self.least_bytes}"
        if layout.missing * 4 > product.columns:
            return f"its {product.columns} columns would fill too little of {layout.panels} panels of {columns}"
        return "it lies as it is read" if layout.is_plain else None


@dataclass(frozen=True)
class _Product:
    """A matrix product in a kernel, one operand of which is an argument of the kernel that nothing else reads.

    Attributes:
        operand: the number of that operand, the weight. Its innermost dim is the innermost one of the result.
    """

    view: LinalgOp
    operand: int

    @cached_property
    def weight(self) -> ir.BlockArgument:
        """The kernel's argument."""
        return ir.BlockArgument(self.view.op.operands[self.operand])

    @cached_property
    def loops(self) -> list[int]:
        """The loop of each dim of the weight; that of the columns is the last."""
        return self.view.loops_read(self.operand)

    @property
    def columns(self) -> int:
        """How many columns lie side by side; a negative number where that is not known."""
        return ir.RankedTensorType(self.weight.type).shape[-1]

    def row_in_groups(self, steps: int) -> int | None:
        """The dim of the weight whose rows go in groups, in which dot products run; None if there is none.

        A loop has to be an index of some operand. That of the rows no longer is one of the weight: a convolution whose
        innermost sum runs along a window (`x[2 * i + k]`) has it nowhere else.
        """
        loop = self.view.summed[-1]
        if loop not in self.loops[:-1]:
            return None
        others = [indexing for operand, indexing in enumerate(self.view.maps) if operand != self.operand]
        if loop not in bounded_loops(others):
            return None
        row = self.loops.index(loop)
        return row if ir.RankedTensorType(self.weight.type).shape[row] % steps == 0 else None


def _products(kernel: ir.Operation) -> Iterator[_Product]:
    """The products in a kernel, each with the operand that may be a weight.

    A convolution in f32 is none: propagate-layouts has put its weight into blocks.
    """
    kind = ir.StringAttr(kernel.attributes[KERNEL]).value if KERNEL in kernel.attributes else ""
    if kind not in ("matmul", "conv"):
        return
    for generic in walk(kernel, "linalg.generic"):
        view = structured(generic)
        if view is None or not is_product(generic) or (kind == "conv" and not multiplies_bf16(view.body)):
            continue
        column = view.loops_read(view.inputs)[-1:]
        for operand in (1, 0):
            value, loops = generic.operands[operand], view.loops_read(operand)
            plain = len(set(loops)) == len(view.maps[operand].results)
            alone = isinstance(value.owner, ir.Block) and len(list(value.uses)) == 1
            if plain and alone and column and loops[-1:] == column:
                yield _Product(view, operand)
                break


def _read_packed(product: _Product, layout: PanelLayout) -> None:
    """Has a kernel take the packed weight: its loop over columns is split, and that of the ops behind it."""
    view, weight = product.view, product.weight
    kernel = weight.owner.owner.operation
    generic = view.op
    if layout.panels > 1 and not layout.missing:
        generic = SplitLoops(view, Splits({product.loops[-1]: (layout.panels, layout.columns)})).run()
    read = generic.operands[product.operand]
    weight.set_type(layout.packed)
    split = structured(generic)
    assert split is not None
    places = layout.places(list(split.maps[product.operand].results))
    read_by(generic, product.operand, weight, ir.AffineMap.get(split.loops, 0, places))
    if read != weight:
        read.owner.erase()
    update_signature(kernel)
    PropagateReshapes().run(kernel)
