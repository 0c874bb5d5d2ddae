"""pack-operands: products of many rows read panels that are packed right before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd, prod
from typing import ClassVar

from pipeline.ir.attributes import ORIGINS
from pipeline.ir.element_types import element_bytes
from pipeline.ir.rewriting import before, copy_attributes, is_unused
from pipeline.mlir import callee, calls_of, defining_op, func, function, ir, is_inside, symbol_name, tensor, walk
from pipeline.passes.layout.packed_product import PackedProduct, PacksPanels, products, read_packed
from pipeline.passes.layout.prepared_weights import is_weight
from pipeline.passes.layout.transposed_copies import part_transposed_by, transposed_by
from pipeline.passes.layout.weight_panels import Packing, PanelLayout

#: Rows as far apart as this are not fetched ahead, and take an entry of the address translation each, or nearly so.
_FAR = 1024

#: A second-level cache, the smallest that is common: what a line of it has, how many sets of how many lines there are.
_LINE, _SETS, _WAYS = 64, 1024, 8

#: So many rows of the other operand pay for groups: where these do not lie side by side, each use puts them together.
_ROWS_FOR_GROUPS = 16

_LOOPS = ("scf.for", "scf.while")


@dataclass(frozen=True)
class PackOperands(PacksPanels):
    """Give kernels of matrix products operands that change in panels, too, packed in front of them.

    a = call @transpose(x)      ->  a = call @pack(x)
    b = call @product(y, a)         b = call @product(y, a)

    The panels are those of pack-weights. An operand that is a transposed copy is packed instead of transposed, which
    takes as long; so is a copy of a part, such as the matrix of one expert. Any other is packed if there are enough
    rows of the other one to read it again and again: `rows` where the rows that a panel is cut from conflict in the
    cache, as those of 4096 bytes do, twice as many where each takes an entry of the address translation, and 16 where
    dot products read groups of rows. In a loop that does not change the operand it is packed in front of the loop.
    """

    name: ClassVar[str] = "pack-operands"

    rows: int = field(default=256, metadata={"help": "how many rows of the other operand are enough"})

    def run(self, op: ir.Operation) -> None:
        """Packs the operands of all kernels of a module."""
        functions = {symbol_name(made): made for made in walk(op, "func.func")}
        if "main" not in functions:
            return
        calls = calls_of(op)
        transposes = {name: copy for name in calls if (copy := _copy_by(functions[name])) is not None}
        with op.location:
            packed = _PackedOperands(op, Packing(op, set(functions)))
            for name, kernel in functions.items():
                for product in products(kernel) if name in calls else ():
                    self._pack(product, [_Handed(call, product, transposes) for call in calls[name]], packed)
            packed.finish()

    def _pack(self, product: PackedProduct, handed: list[_Handed], packed: _PackedOperands) -> None:
        if any(is_weight(one.value) and one.place is None for one in handed):
            return  # pack-weights packs those once
        layouts = [self.layout(product, one.memory) for one in handed]
        reason = self._why_not(product, layouts, any(one.transpose is not None for one in handed))
        if reason:
            self.missed(product.view.op, f"its operand is not packed: {reason}")
            return
        self.passed(product.view.op, f"reads an operand in {layouts[0].described}, packed in front of it")
        for one, layout in zip(handed, layouts, strict=True):
            packed.request(one, layout)
        read_packed(product, {product.operand: layouts[0]})

    def _why_not(self, product: PackedProduct, layouts: list[PanelLayout], transposed: bool) -> str | None:
        """Why an operand stays as it is; None if it is to be packed."""
        for reason in (self.why_not(product, layout) for layout in layouts):
            if reason:
                return reason
        if transposed:
            return None
        if layouts[0].steps > 1:
            return self._too_few_rows(product, _ROWS_FOR_GROUPS)
        conflicts, apart = _conflict(product, layouts[0].columns), product.columns * element_bytes(product.weight)
        if not conflicts and apart < _FAR:
            return "its rows lie close together, and do not conflict in the cache"
        return self._too_few_rows(product, self.rows if conflicts else 2 * self.rows)

    @staticmethod
    def _too_few_rows(product: PackedProduct, least: int) -> str | None:
        if product.rows is not None and product.rows >= least:
            return None
        given = "an unknown number" if product.rows is None else product.rows
        return f"{least} rows of the other operand would pay for that, it has {given}"


class _Handed:
    """The operand that a call hands to a kernel.

    Attributes:
        call: the call.
        number: which of its operands.
        value: what is to be packed: the operand, or what it is a transposed copy of.
        memory: the dims of the operand in the order in which they lie in that.
        place: where that is in the first dim of `value`; None if it is all of it.
        transpose: the call that makes the copy, if it is one.
    """

    def __init__(self, call: ir.Operation, product: PackedProduct, transposes: dict[str, _Copy]):
        self.call, self.number = call, product.weight.arg_number
        self.value = call.operands[self.number]
        self.memory: list[int] | None = None
        self.place: ir.Value | None = None
        self.transpose: ir.Operation | None = None
        maker = defining_op(self.value)
        if maker is not None and maker.name == "func.call" and callee(maker) in transposes:
            copy = transposes[callee(maker)]
            self.value, self.memory, self.transpose = maker.operands[0], copy.order, maker
            self.place = maker.operands[1] if copy.of_part else None

    @property
    def given(self) -> list[ir.Value]:
        """What is handed to the kernel that packs."""
        return [self.value] if self.place is None else [self.value, self.place]


@dataclass(frozen=True)
class _Copy:
    """What a kernel copies: all of its argument, or a part; see `transposed_copies`."""

    order: list[int]
    of_part: bool


def _copy_by(kernel: ir.Operation) -> _Copy | None:
    whole = transposed_by(kernel)
    if whole is not None:
        return _Copy(whole, of_part=False)
    part = part_transposed_by(kernel)
    return None if part is None else _Copy(part, of_part=True)


class _PackedOperands:
    """The calls that pack operands; products of one block that read one in the same order share one."""

    def __init__(self, module: ir.Operation, packing: Packing):
        self._module = module
        self._packing = packing
        self._requests: dict[ir.Operation, list[tuple[_Handed, PanelLayout]]] = {}

    def request(self, handed: _Handed, layout: PanelLayout) -> None:
        """Has a call get its operand packed."""
        self._requests.setdefault(handed.call, []).append((handed, layout))

    def finish(self) -> None:
        """Builds the calls that pack, and takes away the copies that nothing reads any more, with their kernels."""
        known: dict[tuple[tuple[ir.Value, ...], str, ir.Block], ir.Value] = {}
        copies: list[ir.Operation] = []
        for call in walk(self._module, "func.call") if self._requests else ():
            for handed, layout in self._requests.get(call, ()):
                whole = None if handed.place is None else handed.value.type
                place, kernel = _outside_of_loops(call, handed.given), self._packing.kernel(layout, whole)
                key = (tuple(handed.given), kernel, place.block)
                if key not in known:
                    with before(place):
                        empty = tensor.EmptyOp(layout.packed.shape, layout.packed.element_type).result
                        made = func.CallOp([layout.packed], ir.FlatSymbolRefAttr.get(kernel), [*handed.given, empty])
                        copy_attributes(handed.transpose or call, made.operation, ORIGINS)
                        known[key] = made.results[0]
                call.operands[handed.number] = known[key]
                if handed.transpose is not None and handed.transpose not in copies:
                    copies.append(handed.transpose)
        unread = [copy for copy in copies if is_unused(copy.results[0])]
        names = {callee(copy) for copy in unread}
        for copy in unread:
            copy.erase()
        for name in names.difference(calls_of(self._module)):
            function(self._module, name).erase()


def _conflict(product: PackedProduct, columns: int) -> bool:
    """Whether rows that a panel is cut from fall into so few sets of the cache that these do not hold the panel."""
    width = element_bytes(product.weight)
    lines, rest = divmod(product.columns * width, _LINE)
    sets = _SETS if rest else _SETS // gcd(lines, _SETS)
    summed = prod(
        product.view.sizes[loop] or 0 for loop in product.loops if loop is not None and product.view.reductions[loop]
    )
    return summed * -(-columns * width // _LINE) > sets * _WAYS


def _outside_of_loops(call: ir.Operation, values: Sequence[ir.Value]) -> ir.Operation:
    """The outermost loop around a call that does not change `values`; the call, if there is none."""
    place, parent = call, call.parent.operation
    while parent.name in _LOOPS and not any(is_inside(value, parent) for value in values):
        place, parent = parent, parent.parent.operation
    return place
