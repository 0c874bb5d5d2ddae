"""Writes sums of products of bf16 and of bytes by AMX, an instruction of which multiplies tiles of 16 rows of 64 bytes.

Two tiles of rows times two of columns are added up at a time, which takes all eight tile registers. Sums are put aside
when they are done, and become vectors: epilogues run on these a few rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.analysis.dot_product import dot_product_of, in_groups, lies_in_groups
from pipeline.ir.attributes import AMX_BLOCK
from pipeline.ir.constants import as_index
from pipeline.ir.element_types import element_type
from pipeline.ir.indexing_maps import coefficient
from pipeline.ir.linalg_op import LinalgOp
from pipeline.mlir import arith, ir, memref, scf, vector, x86
from pipeline.passes.cpu.microkernel import window_unrolling
from pipeline.passes.cpu.microkernel.dot_product_tile import DotEmitter, GroupTile
from pipeline.passes.cpu.microkernel.loop_nest import EmitTiles
from pipeline.passes.cpu.microkernel.register_tile import RegisterTile
from pipeline.passes.cpu.microkernel.tile_position import TilePosition
from pipeline.passes.cpu.microkernel.tile_sizes import TileSizes
from pipeline.passes.cpu.microkernel.vector_builders import floor_to, parallel_loop, scratch

#: How many rows a tile has, and how many sums or groups of products a row of it.
ROWS = 16

#: How many rows of results are added up at a time.
_BLOCK = 2 * ROWS

#: Fewer rows are added up by dot products: what is put aside takes longer than these do.
_LEAST_ROWS = 4


def why_not_amx(view: LinalgOp, tile: TileSizes) -> str | None:
    """Why a sum of products is not added up in AMX's tiles; None if it can be."""
    dot = dot_product_of(view.body)
    assert dot is not None
    rows, loop = _row_factor(view, tile), view.summed[-1]
    if tile.lanes != ROWS or tile.row_dim is None or rows is None or window_unrolling.unrolled(view, tile):
        return "it is no product of rows and columns"
    count, terms = view.sizes[tile.row_dim], view.sizes[loop]
    if count is not None and count < _LEAST_ROWS:
        return f"it has {count} rows"
    if not terms or terms % dot.steps:
        return f"its innermost sum is not known to be of whole groups of {dot.steps}"
    if not lies_in_groups(view.maps[1 - rows], tile.vector_dim, loop, dot.steps):
        return "its columns do not lie in groups"
    if view.moves(rows, loop) != "unit" or _row_stride(view, rows, tile.row_dim) is None:
        return "its rows are not known to lie in lines"
    return None if _group_stride(view, 1 - rows, loop) is not None else "its columns are not known to lie in lines"


def _row_factor(view: LinalgOp, tile: TileSizes) -> int | None:
    """The number of the factor that has rows, if the other one is the same for all of these."""
    fixed = [operand for operand in range(2) if view.moves(operand, tile.vector_dim) == "fixed"]
    if len(fixed) != 1 or tile.row_dim is None or view.moves(1 - fixed[0], tile.row_dim) != "fixed":
        return None
    return fixed[0]


def _row_stride(view: LinalgOp, operand: int, row_dim: int) -> int | None:
    """How many elements lie from one row of an operand to the next; None if that is not known."""
    steps = [coefficient(expression, row_dim) for expression in view.maps[operand].results]
    return _stride(view.operands[operand], steps)


def _group_stride(view: LinalgOp, operand: int, loop: int) -> int | None:
    """How many elements lie from one line of groups along a loop to the next; None if that is not known."""
    dot = dot_product_of(view.body)
    assert dot is not None
    group, _ = in_groups(ir.AffineConstantExpr.get(0), ir.AffineDimExpr.get(loop), dot.steps)
    return _stride(view.operands[operand], [int(expression == group) for expression in view.maps[operand].results])


def _stride(buffer: ir.Value, steps: Sequence[int | None]) -> int | None:
    """How many elements so many steps along each dim of a buffer are; None if that is not known."""
    kind = ir.MemRefType(buffer.type)
    strides, _ = kind.get_strides_and_offset()
    pairs = [(step, stride) for step, stride in zip(steps, strides, strict=True) if step != 0]
    if any(step is None or kind.is_dynamic_stride_or_offset(stride) for step, stride in pairs):
        return None
    return sum((step or 0) * stride for step, stride in pairs)


class AmxTile(GroupTile):
    """A block of rows and columns of sums in tile registers: for each tile of rows, those of columns."""

    @property
    def unit(self) -> int:
        """How many products an instruction adds to each sum."""
        return ROWS * self.dot.steps

    @property
    def _rows(self) -> int:
        """The number of the factor that has rows."""
        rows = _row_factor(self.stage.view, self.stage.tile)
        assert rows is not None
        return rows

    @property
    def _tiles(self) -> list[tuple[int, int, int, int]]:
        """The first row, the first column, the rows and the columns of each tile."""
        tile, rows, vectors = self.stage.tile, self.position.rows, self.position.vectors
        columns = [ROWS] * vectors
        if self.position.mask is not None:
            size = self.stage.view.sizes[tile.vector_dim]
            assert size is not None
            columns[-1] = size % ROWS
        return [
            (row, ROWS * number, min(ROWS, rows - row), width)
            for row in range(0, rows, ROWS)
            for number, width in enumerate(columns)
        ]

    def zeros(self) -> list[ir.Value]:
        """Tiles of sums of nothing."""
        return [_as_llvm(x86.amx_tile_zero(self._sums(rows, columns))) for _, _, rows, columns in self._tiles]

    def add(self, at: dict[int, ir.Value], sums: list[ir.Value], loop: int, steps: int) -> list[ir.Value]:
        """The sums plus the products at `steps` places along a loop from one on."""
        rows, columns = self._rows, 1 - self._rows
        view, known = self.stage.view, dict[tuple[int, int], ir.Value]()
        dim = self.stage.tile.row_dim
        assert dim is not None
        row_stride, group_stride = _row_stride(view, rows, dim), _group_stride(view, columns, loop)
        assert row_stride is not None and group_stride is not None
        results = []
        for (row, column, height, width), old in zip(self._tiles, sums, strict=True):
            if (rows, row) not in known:
                known[rows, row] = self._load(rows, at, (row, 0), row_stride, (height, steps))
            if (columns, column) not in known:
                shape = steps // self.dot.steps, width * self.dot.steps
                known[columns, column] = self._load(columns, at, (0, column // ROWS), group_stride, shape)
            factors = known[rows, row], known[columns, column]
            results.append(_as_llvm(self._product(*factors, _as_tile(old, self._sums(height, width)))))
        return results

    def _load(
        self, operand: int, at: dict[int, ir.Value], place: tuple[int, int], stride: int, shape: tuple[int, int]
    ) -> ir.Value:
        """A tile of an operand from a row and a vector on, whose lines are `stride` elements apart."""
        buffer = self.stage.view.operands[operand]
        kind = _tile_type(shape, element_type(buffer))
        return x86.amx_tile_load(kind, buffer, self._indices(operand, at, *place), stride=as_index(stride))

    def _product(self, rows: ir.Value, columns: ir.Value, sums: ir.Value) -> ir.Value:
        """The sums plus the products of two tiles."""
        if self.dot.unsigned is None:
            return x86.amx_tile_mulf(rows, columns, sums)
        left, right = (self.dot.unsigned[operand] for operand in (self._rows, 1 - self._rows))
        return x86.amx_tile_muli(rows, columns, sums, is_zext_lhs=left, is_zext_rhs=right)

    def taken_up(self, buffer: ir.Value) -> list[ir.Value]:
        """The sums that `put_aside` has stored."""
        return [
            _as_llvm(x86.amx_tile_load(self._sums(rows, columns), buffer, [as_index(row), as_index(column)]))
            for row, column, rows, columns in self._tiles
        ]

    def put_aside(self, sums: list[ir.Value], buffer: ir.Value) -> None:
        """Stores the sums in a buffer of rows and columns."""
        for (row, column, height, width), value in zip(self._tiles, sums, strict=True):
            tile = _as_tile(value, self._sums(height, width))
            x86.amx_tile_store(buffer, [as_index(row), as_index(column)], tile)

    def _sums(self, rows: int, columns: int) -> ir.Type:
        return _tile_type((rows, columns), element_type(self.stage.view.operands[self.stage.view.outputs[0]]))


class AmxEmitter(DotEmitter):
    """Writes the loops of one op whose body is out + ext(a) * ext(b), and that `why_not_amx` has nothing against."""

    reads_pads = False

    #: The steps of the innermost sum that are being added up.
    _span = (0, 0)

    @classmethod
    def remark(cls, view: LinalgOp, tile: TileSizes) -> str:
        """See `NestEmitter.remark`."""
        return ", added up by AMX"

    def _rows(self, position: TilePosition, inner: EmitTiles) -> None:
        """Blocks of two tiles, then what is left: a smaller block, or single rows where their number is not known."""
        dim = self.tile.row_dim
        assert dim is not None
        size = self.view.sizes[dim]

        def part(rows: int) -> Callable[[ir.Value], None]:
            return lambda i: inner(position.with_rows(dim, i, rows))

        if size is not None:
            full = size // _BLOCK * _BLOCK
            if full:
                parallel_loop(as_index(0), as_index(full), _BLOCK, part(_BLOCK))
            if full < size:
                part(size - full)(as_index(full))
            return
        first, total = as_index(0), self.size(dim)
        for rows in (_BLOCK, ROWS, _LEAST_ROWS, 1):
            full = floor_to(total, rows)
            parallel_loop(first, full, rows, part(rows))
            first = full

    def _tile(self, position: TilePosition) -> None:
        """Adds up a block in tiles; then its rows start, and have their epilogues, a few at a time."""
        unknown = position.mask is not None and self.view.sizes[self.tile.vector_dim] is None
        if position.rows < _LEAST_ROWS or self.tile.lanes == 1 or unknown:
            super()._tile(position)
            return
        aside = self._scratch(position)
        self._add_up(AmxTile(self.stage, position), aside)
        full = position.rows // _LEAST_ROWS * _LEAST_ROWS
        loop = scf.ForOp(as_index(0), as_index(full), as_index(_LEAST_ROWS))
        with ir.InsertionPoint(loop.body):
            self._finish_rows(position, aside, loop.induction_variable, _LEAST_ROWS)
            scf.YieldOp([])
        if full < position.rows:
            self._finish_rows(position, aside, as_index(full), position.rows - full)
        memref.DeallocOp(aside)

    def _add_up(self, block: AmxTile, aside: ir.Value) -> None:
        """The sums of a block: whole steps of the innermost sum, then what is left of it.

        Each is a region of its own, since each tile register has one shape in a function, see outline-amx-blocks.
        """
        size = self.view.sizes[self.view.summed[-1]]
        assert size is not None
        full = size // block.unit * block.unit
        for first, last in ((0, full), (full, size)):
            if first == last:
                continue
            region = scf.ExecuteRegionOp([], no_inline=True)
            region.operation.attributes[AMX_BLOCK] = ir.UnitAttr.get()
            with ir.InsertionPoint(ir.Block.create_at_start(region.region)):
                self._span = first, last
                sums = block.taken_up(aside) if first else block.zeros()
                block.put_aside(self.reduction(0, block, dict(block.position.at), sums), aside)
                scf.YieldOp([])

    def _scratch(self, position: TilePosition) -> ir.Value:
        """Memory for the sums of a block."""
        element = element_type(self.view.operands[self.view.outputs[0]])
        return scratch([position.rows, position.vectors * ROWS], element)

    def _finish_rows(self, position: TilePosition, aside: ir.Value, first: ir.Value, rows: int) -> None:
        """What becomes of some rows of a block, whose sums were put aside."""
        dim = self.tile.row_dim
        assert dim is not None
        place = arith.AddIOp(position.at[dim], first).result
        registers = self.tile_type(self.stage, position.with_rows(dim, place, rows))
        kind = ir.VectorType.get([ROWS], ir.MemRefType(aside.type).element_type)
        add = arith.AddIOp if isinstance(kind.element_type, ir.IntegerType) else arith.AddFOp
        starts, results = iter(self.starts(registers)), []
        for row in range(rows):
            line = arith.AddIOp(first, as_index(row)).result
            for column in range(position.vectors):
                total = vector.LoadOp(kind, aside, [line, as_index(column * ROWS)]).result
                results.append(add(next(starts), total).result)
        self.finish(registers, results)

    def reduction(
        self, depth: int, registers: RegisterTile, at: dict[int, ir.Value], values: list[ir.Value]
    ) -> list[ir.Value]:
        """See `NestEmitter.reduction`."""
        if depth != len(self.view.summed) - 1 or not isinstance(registers, AmxTile):
            return super().reduction(depth, registers, at, values)
        loop, (first, last) = self.view.summed[depth], self._span
        if last - first < registers.unit:
            return registers.add({**at, loop: as_index(first)}, values, loop, last - first)
        steps = scf.ForOp(as_index(first), as_index(last), as_index(registers.unit), values)
        with ir.InsertionPoint(steps.body):
            at_step = {**at, loop: steps.induction_variable}
            scf.YieldOp(registers.add(at_step, list(steps.inner_iter_args), loop, registers.unit))
        return list(steps.results)


def _tile_type(shape: tuple[int, int], element: ir.Type) -> ir.Type:
    return ir.Type.parse(f"!x86.amx.tile<{shape[0]}x{shape[1]}x{element}>")


def _as_llvm(tile: ir.Value) -> ir.Value:
    """A tile as LLVM's type, in which loops hand it on.

    convert-vector-to-llvm alone knows what the dialect's own type becomes: convert-cf-to-llvm refuses branches that
    hand on values of it. Remove this when that takes the dialect's conversions.
    """
    return _cast(tile, ir.Type.parse("!llvm.x86_amx"))


def _as_tile(value: ir.Value, kind: ir.Type) -> ir.Value:
    """The inverse of `_as_llvm`."""
    return _cast(value, kind)


def _cast(value: ir.Value, kind: ir.Type) -> ir.Value:
    return ir.Operation.create("builtin.unrealized_conversion_cast", [kind], [value]).result
