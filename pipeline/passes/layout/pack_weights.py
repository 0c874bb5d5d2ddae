"""pack-weights: products read their weights in the order in which @prepare has put them for that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import ClassVar

from pipeline.analysis.dot_product import dot_product_of, multiplies_bf16
from pipeline.analysis.op_naming import is_product
from pipeline.ir.attributes import KERNEL
from pipeline.ir.byte_products import HELP, NONE
from pipeline.ir.element_types import element_bytes
from pipeline.ir.indexing_maps import bounded_loops
from pipeline.ir.linalg_op import LinalgOp, structured
from pipeline.ir.nibbles import WORD_BYTES, nibble_of
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
    panels are full; so do four of bytes that hold two numbers each, which are read as words of eight:

    w[k, n]  ->  packed[n / 32, k / 2, 2 * (n % 32) + k % 2]

    Scales and zero points of groups of rows lie in panels, too.

    Only where all calls of a kernel hand it a weight of the model. One row gains most, since it is bound by the reading
    of the weight.
    """

    name: ClassVar[str] = "pack-weights"

    columns: int = field(default=32, metadata={"help": "how many columns a panel has"})
    bf16_dots: bool = field(default=False, metadata={"help": "put each two rows of bf16 side by side"})
    int8_dots: str = field(default=NONE, metadata={"help": f"put each four rows of bytes side by side: {HELP}"})
    dot_matrices: bool = field(default=False, metadata={"help": "put twice as many rows side by side for dots"})
    nibble_words: bool = field(default=False, metadata={"help": "put each four bytes of nibbles side by side"})
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
        rows = {steps: product.row_in_groups(steps) for steps in self._steps(product.view) if fills_panels}
        steps = next((steps for steps, row in rows.items() if row is not None), 1)
        layout = PanelLayout(ir.RankedTensorType(product.weight.type), sums, columns, rows.get(steps), steps)
        reason = self._why_not(product, layout, columns, handed)
        if reason:
            self.missed(product.view.op, f"its weight is not packed: {reason}")
            return
        groups = {1: "", 2: " of pairs", 4: " of quads", 8: " of eights"}[layout.steps]
        layouts = {product.operand: layout, **_layouts_of_scales(product, layout, calls)}
        scales = ", its scales, too" if len(layouts) > 1 else ""
        self.passed(product.view.op, f"reads its weight in panels of {layout.columns} columns{groups}{scales}")
        for operand, chosen in layouts.items():
            number, kernel = product.argument(operand).arg_number, packing.kernel(chosen)
            for call in calls:
                call.operands[number] = prepared.computed(call.operands[number], kernel, chosen.packed)
        _read_packed(product, layouts)

    def _steps(self, view: LinalgOp) -> tuple[int, ...]:
        """How many rows are read at once, the best first: by a dot product that there is, or as a word of nibbles."""
        if nibble_of(view) is not None:
            return (WORD_BYTES,) if self.nibble_words else ()
        dot = dot_product_of(view.body)
        if dot is None or not dot.exists(self.bf16_dots, self.int8_dots):
            return ()
        return (2 * dot.steps, dot.steps) if self.dot_matrices else (dot.steps,)

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
        return self.argument(self.operand)

    def argument(self, operand: int) -> ir.BlockArgument:
        """The argument of the kernel that an operand is."""
        return ir.BlockArgument(self.view.op.operands[operand])

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
        loop = self.view.summed[-1 if nibble_of(self.view) is None else -2]
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
            if _is_alone(view, operand) and column and view.loops_read(operand)[-1:] == column:
                yield _Product(view, operand)
                break


def _is_alone(view: LinalgOp, operand: int) -> bool:
    """Whether an operand is an argument of the kernel that nothing else reads, along loops of its own."""
    value = view.op.operands[operand]
    plain = len(set(view.loops_read(operand))) == len(view.maps[operand].results)
    return plain and isinstance(value.owner, ir.Block) and len(list(value.uses)) == 1


def _layouts_of_scales(product: _Product, layout: PanelLayout, calls: list[ir.Operation]) -> dict[int, PanelLayout]:
    """How scales and zero points of groups lie in panels like those of their weight: each row is a page apart, too."""
    view, found = product.view, dict[int, PanelLayout]()
    for operand in range(2, view.inputs):
        loops = view.loops_read(operand)
        if not _is_alone(view, operand) or loops[-1:] != product.loops[-1:]:
            continue
        argument = product.argument(operand)
        sums = [view.reductions[loop] for loop in loops]
        panels = PanelLayout(ir.RankedTensorType(argument.type), sums, layout.columns)
        weights = all(is_weight(call.operands[argument.arg_number]) for call in calls)
        if weights and any(sums) and not panels.is_plain:
            found[operand] = panels
    return found


def _read_packed(product: _Product, layouts: Mapping[int, PanelLayout]) -> None:
    """Has a kernel take what is packed: its loop over columns is split, and that of the ops behind it."""
    view, layout = product.view, layouts[product.operand]
    kernel = product.weight.owner.owner.operation
    arguments = {operand: product.argument(operand) for operand in layouts}
    generic = view.op
    if layout.panels > 1 and not layout.missing:
        generic = SplitLoops(view, Splits({product.loops[-1]: (layout.panels, layout.columns)})).run()
    split = structured(generic)
    assert split is not None
    for operand, argument in arguments.items():
        read = generic.operands[operand]
        argument.set_type(layouts[operand].packed)
        places = layouts[operand].places(list(split.maps[operand].results))
        read_by(generic, operand, argument, ir.AffineMap.get(split.loops, 0, places))
        if read != argument:
            read.owner.erase()
    update_signature(kernel)
    PropagateReshapes().run(kernel)
