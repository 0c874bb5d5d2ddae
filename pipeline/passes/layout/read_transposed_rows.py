"""read-transposed-rows: products with few columns read rows where they lie as columns, instead of a transposed copy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from pipeline.ir.element_types import element_type
from pipeline.ir.rewriting import is_unused, read_by, update_signature
from pipeline.mlir import callee, calls_of, defining_op, function, ir, symbol_name, walk
from pipeline.passes.layout.packed_product import PackedProduct, is_alone, products
from pipeline.passes.layout.transposed_copies import transposed_by
from pipeline.passmanager.base import Pass


@dataclass(frozen=True)
class ReadTransposedRows(Pass):
    """Give kernels of matrix products the rows of a transposed matrix as they lie.

    a = call @transpose(x)      ->  b = call @product(x, y), which reads x[k, m] for a[m, k]
    b = call @product(a, y)

    A tile of some rows reads as many neighbours for each term of the sum then, once for each of its columns of tiles. A
    copy is read twice as fast by many of these, so that it pays where there are many columns. Only of f32 and f64:
    others are added up by dot products, which read several terms of a row at once.
    """

    name: ClassVar[str] = "read-transposed-rows"

    columns: int = field(default=48, metadata={"help": "from how many columns on a copy pays"})

    def run(self, op: ir.Operation) -> None:
        """Lets all kernels of a module read what they can where it lies."""
        functions = {symbol_name(made): made for made in walk(op, "func.func")}
        calls = calls_of(op)
        transposes = {name: order for name in calls if (order := transposed_by(functions[name])) is not None}
        copies: list[ir.Operation] = []
        for name, kernel in functions.items():
            for product in products(kernel) if name in calls else ():
                copies += self._read(product, calls[name], transposes)
        names = {callee(copy) for copy in copies}
        for copy in dict.fromkeys(copies):
            if is_unused(copy.results[0]):
                copy.erase()
        for name in names.difference(calls_of(op)):
            function(op, name).erase()

    def _read(
        self, product: PackedProduct, calls: list[ir.Operation], transposes: dict[str, list[int]]
    ) -> Iterator[ir.Operation]:
        """Has a product read the matrix itself; the copies that its calls hand over."""
        view, rows = product.view, 1 - product.operand
        if element_type(view.operands[rows]) not in (ir.F32Type.get(), ir.F64Type.get()) or not is_alone(view, rows):
            return
        argument = product.argument(rows)
        makers = [maker for call in calls if (maker := defining_op(call.operands[argument.arg_number])) is not None]
        orders = [transposes.get(callee(maker)) if maker.name == "func.call" else None for maker in makers]
        if len(makers) < len(calls) or orders[0] is None or orders.count(orders[0]) != len(orders):
            return
        if not 0 <= product.columns < self.columns:
            self.missed(view.op, f"reads a transposed copy: it has not fewer than {self.columns} columns")
            return
        self.passed(view.op, "reads the rows of a transposed matrix where they lie")
        places = list(view.maps[rows].results)
        argument.set_type(makers[0].operands[0].type)
        read_by(view.op, rows, argument, ir.AffineMap.get(view.loops, 0, [places[dim] for dim in orders[0]]))
        update_signature(product.kernel)
        for call, maker in zip(calls, makers, strict=True):
            call.operands[argument.arg_number] = maker.operands[0]
            yield maker
