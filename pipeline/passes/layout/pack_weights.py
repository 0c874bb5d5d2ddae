"""pack-weights: products read their weights in the order in which @prepare has put them for that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.mlir import calls_of, ir, symbol_name, walk
from pipeline.passes.layout.packed_product import (
    PackedProduct,
    PacksPanels,
    is_alone,
    loops_of_dims,
    products,
    read_packed,
)
from pipeline.passes.layout.prepared_weights import PreparedWeights, is_weight
from pipeline.passes.layout.weight_panels import Packing, PanelLayout


@dataclass(frozen=True)
class PackWeights(PacksPanels):
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

    def run(self, op: ir.Operation) -> None:
        """Packs the weights of all kernels of a module."""
        functions = {symbol_name(function): function for function in walk(op, "func.func")}
        if "main" not in functions:
            return
        prepared, packing = PreparedWeights(op), Packing(op, set(functions))
        calls = calls_of(op)
        with op.location:
            for name, kernel in functions.items():
                for product in products(kernel):
                    self._pack(product, calls.get(name, []), prepared, packing)
            prepared.finish()

    def _pack(
        self, product: PackedProduct, calls: list[ir.Operation], prepared: PreparedWeights, packing: Packing
    ) -> None:
        handed = [call.operands[product.weight.arg_number] for call in calls]
        if not any(map(is_weight, handed)):
            return
        layout = self.layout(product)
        reason = self._why_not(product, layout, handed)
        if reason:
            self.missed(product.view.op, f"its weight is not packed: {reason}")
            return
        layouts = {product.operand: layout, **_layouts_of_scales(product, layout, calls)}
        scales = ", its scales, too" if len(layouts) > 1 else ""
        self.passed(product.view.op, f"reads its weight in {layout.described}{scales}")
        for operand, chosen in layouts.items():
            number, kernel = product.argument(operand).arg_number, packing.kernel(chosen)
            for call in calls:
                call.operands[number] = prepared.computed(call.operands[number], kernel, chosen.packed)
        read_packed(product, layouts)

    def _why_not(self, product: PackedProduct, layout: PanelLayout, handed: list[ir.Value]) -> str | None:
        """Why a weight stays as it is; None if it is to be packed."""
        if not all(map(is_weight, handed)):
            return "some call hands the kernel something else than a weight of the model"
        return self.why_not(product, layout)


def _layouts_of_scales(
    product: PackedProduct, layout: PanelLayout, calls: list[ir.Operation]
) -> dict[int, PanelLayout]:
    """How scales and zero points of groups lie in panels like those of their weight: each row is a page apart, too."""
    view, found = product.view, dict[int, PanelLayout]()
    for operand in range(2, view.inputs):
        loops = loops_of_dims(view, operand)
        if not is_alone(view, operand) or loops[-1:] != product.loops[-1:]:
            continue
        argument = product.argument(operand)
        sums = [loop is not None and view.reductions[loop] for loop in loops]
        panels = PanelLayout(ir.RankedTensorType(argument.type), sums, layout.columns)
        weights = all(is_weight(call.operands[argument.arg_number]) for call in calls)
        if weights and any(sums) and not panels.is_plain:
            found[operand] = panels
    return found
