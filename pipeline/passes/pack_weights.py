"""pack-weights: products read their weights in the order in which @prepare has put them for that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import ClassVar

from pipeline.analysis.dot_products import in_pairs, multiplies_bf16
from pipeline.analysis.naming import is_product
from pipeline.analysis.schedule import schedule_of
from pipeline.analysis.splits import Splits
from pipeline.analysis.structured import Structured, structured
from pipeline.analysis.tiling import element_bytes
from pipeline.mlir import func, ir, tensor, walk
from pipeline.passes.base import Pass
from pipeline.passes.prepared_weights import PreparedWeights, is_weight
from pipeline.passes.propagate_reshapes import PropagateReshapes
from pipeline.passes.rewriting import build_generic
from pipeline.passes.split_loops import SplitLoops


@dataclass(frozen=True)
class PackWeights(Pass):
    """Give kernels of matrix products their weights in panels of some columns, row after row.

    w[k, n]  ->  packed[n / 32, k, n % 32]

    A tile of the product runs over the columns of one panel, whose elements follow each other then: the rows of a large
    weight are a page of memory apart, and each would take an entry of the address translation. The columns of the
    kernel's result, and of what its epilogue reads, are seen as panels, too, which costs nothing. @prepare packs the
    weights, once. For dot products of bf16 each two rows lie side by side, if their number is even:

    w[k, n]  ->  packed[n / 32, k / 2, 2 * (n % 32) + k % 2]

    Only where all calls of a kernel hand it a weight of the model, the number of columns is a multiple
    of a panel's, and enough rows meet the weight.
    """

    name: ClassVar[str] = "pack-weights"

    columns: int = field(default=32, metadata={"help": "how many columns a panel has"})
    pairs: bool = field(default=False, metadata={"help": "put each two rows of bf16 side by side"})
    least_bytes: int = field(default=1 << 16, metadata={"help": "a smaller weight stays as it is"})
    least_rows: int = field(default=4, metadata={"help": "a weight that meets fewer rows stays as it is"})

    def run(self, op: ir.Operation) -> None:
        """Packs the weights of all kernels of a module."""
        functions = {ir.StringAttr(one.attributes["sym_name"]).value: one for one in walk(op, "func.func")}
        if "main" not in functions:
            return
        prepared, packing = PreparedWeights(op), _Packing(op, set(functions))
        calls = _calls(op)
        with op.location:
            for name, kernel in functions.items():
                for product in _products(kernel):
                    self._pack(product, calls.get(name, []), prepared, packing)
            prepared.finish()

    def _pack(self, product: _Product, calls: list[ir.Operation], prepared: PreparedWeights, packing: _Packing) -> None:
        handed = [call.operands[product.weight.arg_number] for call in calls]
        if not any(map(is_weight, handed)):
            return
        columns = schedule_of(product.weight.owner.owner.operation).columns or self.columns
        layout = _Layout(product, columns, self.pairs)
        reason = self._why_not(product, layout, columns, handed)
        if reason:
            self.missed(product.view.op, f"its weight is not packed: {reason}")
            return
        self.passed(
            product.view.op, f"reads its weight in panels of {layout.columns} columns{' of pairs' * layout.pairs}"
        )
        number = product.weight.arg_number
        kernel = packing.kernel(layout)
        for call in calls:
            call.operands[number] = prepared.computed(call.operands[number], kernel, layout.packed)
        _read_packed(product, layout)

    def _why_not(self, product: _Product, layout: _Layout, columns: int, handed: list[ir.Value]) -> str | None:
        """Why a weight stays as it is; None if it is to be packed."""
        kind, view = ir.RankedTensorType(product.weight.type), product.view
        if not all(map(is_weight, handed)):
            return "some call hands the kernel something else than a weight of the model"
        if any(view.size(loop) is None for loop in product.loops):
            return "its sizes are not known"
        size = prod(kind.shape) * element_bytes(product.weight)
        if size < self.least_bytes:
            return f"it has {size} bytes, fewer than {self.least_bytes}"
        rows = [view.size(loop) for loop in product.rows]
        if None not in rows and prod(size or 1 for size in rows) < self.least_rows:
            return f"it meets fewer than {self.least_rows} rows"
        if layout.columns > columns:
            return f"its {product.columns} columns are no multiple of {columns}"
        return "it lies as it is read" if layout.is_plain else None


@dataclass(frozen=True)
class _Product:
    """A matrix product in a kernel, one operand of which is an argument of the kernel that nothing else reads.

    Attributes:
        operand: the number of that operand, the weight. Its innermost dim is the innermost one of the result.
    """

    view: Structured
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

    @property
    def row_in_pairs(self) -> int | None:
        """The dim of the weight whose rows go in pairs, in which dot products of bf16 run; None if there is none."""
        sums = [loop for loop, reduces in enumerate(self.view.reductions) if reduces]
        if sums[-1] not in self.loops[:-1] or not multiplies_bf16(self.view.body):
            return None
        row = self.loops.index(sums[-1])
        return row if ir.RankedTensorType(self.weight.type).shape[row] % 2 == 0 else None

    @property
    def rows(self) -> list[int]:
        """The parallel loops that the weight does not depend on."""
        return [loop for loop, sums in enumerate(self.view.reductions) if not sums and loop not in self.loops]


class _Layout:
    """How a weight is packed: its columns cut into panels, its rows into pairs, then its dims put in another order.

    Attributes:
        panels: how many panels there are; 1 where the columns are not cut.
        columns: how many columns one has.
        pairs: whether the steps of the innermost sum are cut into pairs.
        parts: for each dim of the weight the sizes of those that it becomes.
        order: these dims, as they follow each other in the packed weight; the two last ones are one if there are pairs.
    """

    def __init__(self, product: _Product, columns: int, pairs: bool):
        self.kind = ir.RankedTensorType(product.weight.type)
        cut = product.columns > columns and product.columns % columns == 0
        self.panels = product.columns // columns if cut else 1
        self.columns = columns if cut else product.columns
        row = product.row_in_pairs if pairs else None
        self.pairs = row is not None
        self.parts = [[size // 2, 2] if dim == row else [size] for dim, size in enumerate(self.kind.shape)]
        if cut:
            self.parts[-1] = [self.panels, self.columns]
        sums = [product.view.reductions[loop] for loop in product.loops]
        first = [dims[0] for dims in self.groups]
        outer = [first[dim] for dim in range(len(sums) - 1) if not sums[dim]]
        outer += [first[-1]] * cut
        inner = [first[dim] for dim in range(len(sums) - 1) if sums[dim]]
        self.order = [*outer, *inner, self.groups[-1][-1]]
        if row is not None:
            self.order.append(first[row] + 1)

    @property
    def cut(self) -> list[int]:
        """The sizes of the weight with its dims cut."""
        return [size for sizes in self.parts for size in sizes]

    @property
    def groups(self) -> list[list[int]]:
        """For each dim of the weight those that it becomes."""
        starts = [sum(map(len, self.parts[:dim])) for dim in range(len(self.parts))]
        return [[start + part for part in range(len(sizes))] for start, sizes in zip(starts, self.parts, strict=True)]

    @property
    def is_plain(self) -> bool:
        """Whether the elements stay where they are."""
        return self.order == sorted(self.order)

    @property
    def ordered(self) -> list[int]:
        """The sizes of the dims in their order."""
        return [self.cut[dim] for dim in self.order]

    @property
    def packed(self) -> ir.RankedTensorType:
        """The type of the packed weight."""
        *outer, last = self.ordered
        shape = [*outer[:-1], outer[-1] * last] if self.pairs else [*outer, last]
        return ir.RankedTensorType.get(shape, self.kind.element_type)

    def places(self, indices: list[ir.AffineExpr]) -> list[ir.AffineExpr]:
        """Where an element of the packed weight is; `indices` are those of the weight with its columns cut."""
        row = next((dim for dim, sizes in enumerate(self.parts[:-1]) if len(sizes) > 1), None)
        if row is None:
            return [indices[dim] for dim in self.order]
        half, place = in_pairs(indices[-1], indices[row])
        cut = [*indices[:row], half, indices[row], *indices[row + 1 :]]
        return [*(cut[dim] for dim in self.order[:-2]), place]


class _Packing:
    """The kernels of @prepare that pack: one for each type and layout."""

    def __init__(self, module: ir.Operation, taken: set[str]):
        self._module = module
        self._taken = taken
        self._known: dict[tuple[str, str, tuple[int, ...]], str] = {}

    def kernel(self, layout: _Layout) -> str:
        """The name of the kernel(weight, destination) that packs."""
        key = (str(layout.kind), str(layout.packed), tuple(layout.order))
        if key not in self._known:
            self._known[key] = self._create(layout)
        return self._known[key]

    def _create(self, layout: _Layout) -> str:
        name = next(name for count in range(len(self._taken) + 1) if (name := f"pack_{count}") not in self._taken)
        self._taken.add(name)
        kind = ir.FunctionType.get([layout.kind, layout.packed], [layout.packed])
        words = {
            "kernel": ir.StringAttr.get("elementwise"),
            "ops": _strings("linalg.generic"),
            "words": _strings("pack"),
        }
        with self._module.location, ir.InsertionPoint.at_block_begin(self._module.regions[0].blocks[0]):
            made = func.FuncOp(name, kind, visibility="private")
            for key, value in words.items():
                made.attributes[f"pipeline.{key}"] = value
            with ir.InsertionPoint(made.add_entry_block()):
                source, out = made.arguments
                if layout.cut != list(layout.kind.shape):
                    source = _expanded(source, layout.groups, layout.cut)
                if not layout.pairs:
                    func.ReturnOp([_transposed(source, out, layout.order)])
                    return name
                count = len(layout.order)
                groups = [*([dim] for dim in range(count - 2)), [count - 2, count - 1]]
                result = _transposed(source, _expanded(out, groups, layout.ordered), layout.order)
                func.ReturnOp([tensor.CollapseShapeOp(layout.packed, result, groups).result])
        return name


def _expanded(value: ir.Value, groups: list[list[int]], sizes: list[int]) -> ir.Value:
    kind = ir.RankedTensorType.get(sizes, ir.RankedTensorType(value.type).element_type)
    return tensor.ExpandShapeOp(kind, value, groups, [], sizes).result


def _strings(word: str) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.StringAttr.get(word)])


def _transposed(source: ir.Value, out: ir.Value, order: list[int]) -> ir.Value:
    """out[i0, i1, ...] = source, whose dim order[d] is indexed by i_d."""
    rank = len(order)
    indices = [ir.AffineDimExpr.get(order.index(dim)) for dim in range(rank)]
    maps = [ir.AffineMap.get(rank, 0, indices), ir.AffineMap.get_identity(rank)]
    loops = [ir.Attribute.parse("#linalg.iterator_type<parallel>")] * rank
    return build_generic([source], [out], maps, loops, lambda elements: [elements[0]]).results[0]


def _products(kernel: ir.Operation) -> Iterator[_Product]:
    """The products in a kernel, each with the operand that may be a weight.

    A convolution in f32 is none: propagate-layouts has put its weight into blocks.
    """
    kind = ir.StringAttr(kernel.attributes["pipeline.kernel"]).value if "pipeline.kernel" in kernel.attributes else ""
    if kind not in ("matmul", "conv"):
        return
    for generic in walk(kernel, "linalg.generic"):
        view = structured(generic)
        if view is None or not is_product(generic) or (kind == "conv" and not multiplies_bf16(view.body)):
            continue
        column = view.loops_read(2)[-1:]
        for operand in (1, 0):
            value, loops = generic.operands[operand], view.loops_read(operand)
            plain = len(set(loops)) == len(view.maps[operand].results)
            alone = isinstance(value.owner, ir.Block) and len(list(value.uses)) == 1
            if plain and alone and column and loops[-1:] == column:
                yield _Product(view, operand)
                break


def _calls(module: ir.Operation) -> dict[str, list[ir.Operation]]:
    found: dict[str, list[ir.Operation]] = {}
    for call in walk(module, "func.call"):
        found.setdefault(ir.FlatSymbolRefAttr(call.attributes["callee"]).value, []).append(call)
    return found


def _read_packed(product: _Product, layout: _Layout) -> None:
    """Has a kernel take the packed weight: its loop over columns is split, and that of the ops behind it."""
    view, weight = product.view, product.weight
    kernel = weight.owner.owner.operation
    generic = view.op
    if layout.panels > 1:
        generic = SplitLoops(view, Splits({product.loops[-1]: (layout.panels, layout.columns)})).run()
    read = generic.operands[product.operand]
    weight.set_type(layout.packed)
    generic.operands[product.operand] = weight
    if read != weight:
        read.owner.erase()
    maps = [ir.AffineMapAttr(one).value for one in generic.attributes["indexing_maps"]]
    places = layout.places(list(maps[product.operand].results))
    maps[product.operand] = ir.AffineMap.get(maps[0].n_dims, 0, places)
    generic.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(one) for one in maps])
    block = kernel.regions[0].blocks[0]
    kind = ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value)
    inputs = [argument.type for argument in block.arguments]
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, kind.results))
    PropagateReshapes().run(kernel)
