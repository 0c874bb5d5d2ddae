"""Writes sm_90a's matrix instructions: wgmma, its descriptors, and where elements lie in the tiles that those name.

A warpgroup, four warps in a row, multiplies 64 rows of A by up to 256 columns of B, 16 elements of the sum at a time.
B is in shared memory; A is there, too, or in registers. Tiles in shared memory have rows of 128 bytes, whose chunks of
16 bytes change places by the row (the 128-byte swizzle), and start at a multiple of 1024 bytes. Along a row runs either
the sum ("K-major") or the operand's own loop ("MN-major"); of the latter, tiles wider than 64 elements are blocks of 64
side by side, each with a row for each element of the sum.

The instructions are asynchronous: `commit` makes those before it a group, `wait` waits for all but the last groups.
Until then neither the accumulators may be touched nor the tiles be written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.ir.constants import as_index
from pipeline.mlir import arith, ir, memref, vector
from pipeline.passes.gpu.thread.warp_reduction import WARP

#: The threads that multiply together, the rows that they compute, and how far an instruction goes along the sum.
WARPGROUP, ROWS, DEPTH = 4 * WARP, 64, 16

#: The elements and bytes of a row of a tile, the elements of a chunk, and after how many rows the swizzle begins anew.
ROW, _ROW_BYTES, CHUNK, _ROWS_OF_ATOM = 64, 128, 8, 8
_ATOM_BYTES = _ROWS_OF_ATOM * _ROW_BYTES

#: What tiles must start at a multiple of.
ALIGNMENT = _ATOM_BYTES

_SWIZZLE_128 = 1 << 62


@dataclass(frozen=True)
class TileLayout:
    """A tile of an operand in shared memory: 16-bit elements, of a ring of `stages` such tiles.

    Attributes:
        length: how many of the operand's own rows or columns it has, a multiple of 64 if those run along its rows.
        depth: how many elements of the sum, 64 if those run along its rows.
        along_sum: whether the sum runs along its rows.
    """

    length: int
    depth: int
    along_sum: bool

    @property
    def shape(self) -> list[int]:
        """As a memref: rows of 64 elements, or blocks of such rows."""
        return [self.length, ROW] if self.along_sum else [self.length // ROW, self.depth, ROW]

    @property
    def bytes(self) -> int:
        """How much of shared memory it takes."""
        return self.length * self.depth * 2

    def place(self, own: ir.Value, step: ir.Value) -> list[ir.Value]:
        """The indices of an element, or of a chunk that starts there, in the memref of `shape`."""
        if self.along_sum:
            return [own, _swizzled(own, step)]
        block = arith.DivUIOp(own, as_index(ROW)).result
        return [block, step, _swizzled(step, arith.RemUIOp(own, as_index(ROW)).result)]

    def descriptor(self, shared: ir.Value, stage: ir.Value | None, own: ir.Value | None = None) -> ir.Value:
        """The descriptor of the part from `own` on along the operand's own loop, at the beginning of the step.

        `own` is a multiple of 64 where the tile has that along its rows, else of 8.
        """
        number = ir.IntegerType.get_signless(64)
        address = memref.ExtractAlignedPointerAsIndexOp(shared).result
        if stage is not None:
            address = arith.AddIOp(address, arith.MulIOp(stage, as_index(self.bytes)).result).result
        if own is not None:
            # `own` rows of 128 bytes; or a 64th as many blocks
            each = _ROW_BYTES if self.along_sum else self.depth * _ROW_BYTES // ROW
            address = arith.AddIOp(address, arith.MulIOp(own, as_index(each)).result).result
        low = arith.AndIOp(address, as_index(0x3FFFF)).result
        chunk = arith.IndexCastOp(number, arith.ShRUIOp(low, as_index(4)).result).result
        # From one row or column of 64 elements to the next (of no meaning along the sum); from 8 rows to the next 8.
        leading = 0 if self.along_sum else self.depth * _ROW_BYTES
        fixed = _SWIZZLE_128 | _encoded(leading) << 16 | _encoded(_ATOM_BYTES) << 32
        return arith.OrIOp(chunk, _long(fixed)).result

    def at_depth(self, descriptor: ir.Value, depth: int) -> ir.Value:
        """The descriptor `depth` elements further along the sum, a multiple of 16."""
        if depth == 0:
            return descriptor
        return arith.AddIOp(descriptor, _long(_encoded(depth * (2 if self.along_sum else _ROW_BYTES)))).result


def _swizzled(row: ir.Value, inner: ir.Value) -> ir.Value:
    number = arith.RemUIOp(row, as_index(_ROWS_OF_ATOM)).result
    return arith.XOrIOp(inner, arith.MulIOp(number, as_index(CHUNK)).result).result


def _encoded(size: int) -> int:
    return (size & 0x3FFFF) >> 4


def _long(value: int) -> ir.Value:
    number = ir.IntegerType.get_signless(64)
    signed = value - (1 << 64) if value >= 1 << 63 else value
    return arith.ConstantOp(number, ir.IntegerAttr.get(number, signed)).result


def multiply(
    sums: Sequence[ir.Value],
    left: ir.Value | Sequence[ir.Value],
    right: ir.Value,
    element: ir.Type,
    along_sum: tuple[bool, bool],
) -> list[ir.Value]:
    """Starts adding a product to the accumulators, which are the thread's f32 in the order of the fragment.

    `left` is a descriptor, or four registers of two elements each. `along_sum` says of either operand whether the sum
    runs along the rows of its tile; of A in registers it is of no meaning.
    """
    count = len(sums)
    columns = 2 * count
    name = "bf16" if isinstance(element, ir.BF16Type) else "f16"
    registers = [left] if isinstance(left, ir.Value) else list(left)
    in_registers = len(registers) > 1
    first = 2 * count
    own = ", ".join(f"${first + number}" for number in range(len(registers)))
    transposed = [int(not along) for along in along_sum]
    flags = transposed[1:] if in_registers else transposed
    text = (
        "{ .reg .pred p; setp.eq.u32 p, 0, 0; "
        f"wgmma.mma_async.sync.aligned.m{ROWS}n{columns}k{DEPTH}.f32.{name}.{name} "
        f"{{{', '.join(f'${number}' for number in range(count))}}}, {f'{{{own}}}' if in_registers else own}, "
        f"${first + len(registers)}, p, 1, 1, {', '.join(map(str, flags))}; }}"
    )
    takes = ["r" if in_registers else "l"] * len(registers)
    constraints = [*["=f"] * count, *map(str, range(count)), *takes, "l"]
    return _assembly(text, constraints, [*sums, *registers, right], [value.type for value in sums])


def registers_of(fragment: ir.Value) -> list[ir.Value]:
    """A warp's 16 x 16 elements of A for `multiply`, from a vector of 4 x 2 as ldmatrix loads and mma.sync takes them.

    A step of a warpgroup takes what its four warps have, 16 rows each.
    """
    word = ir.VectorType.get([1], ir.IntegerType.get_signless(32))
    pairs = [vector.ExtractOp(fragment, [], [number]).result for number in range(4)]
    return [vector.ExtractOp(vector.BitCastOp(word, pair).result, [], [0]).result for pair in pairs]


def fence() -> None:
    """Before the first `multiply`, and after registers that it takes were written otherwise."""
    _assembly("wgmma.fence.sync.aligned;")


def commit() -> None:
    """Makes a group of what was started."""
    _assembly("wgmma.commit_group.sync.aligned;")


def wait(pending: int) -> None:
    """Waits until no more than that many groups are under way."""
    _assembly(f"wgmma.wait_group.sync.aligned {pending};")


def finish(sums: Sequence[ir.Value]) -> list[ir.Value]:
    """Waits for all groups; returns the accumulators, which may be read then."""
    constraints = [*["=f"] * len(sums), *map(str, range(len(sums)))]
    return _assembly("wgmma.wait_group.sync.aligned 0;", constraints, sums, [value.type for value in sums])


def publish() -> None:
    """Lets wgmma see what the thread has written to shared memory; before the barrier."""
    _assembly("fence.proxy.async.shared::cta;")


def _assembly(
    text: str, constraints: Sequence[str] = (), operands: Sequence[ir.Value] = (), results: Sequence[ir.Type] = ()
) -> list[ir.Value]:
    kinds = [ir.Type.parse(f"!llvm.struct<({', '.join(map(str, results))})>")] if results else []
    attributes = {
        "asm_string": ir.StringAttr.get(text),
        "constraints": ir.StringAttr.get(",".join([*constraints, "~{memory}"])),
        "has_side_effects": ir.UnitAttr.get(),
    }
    op = ir.Operation.create("llvm.inline_asm", results=kinds, operands=list(operands), attributes=attributes)
    return [_extracted(op.result, number, kind) for number, kind in enumerate(results)]


def _extracted(struct: ir.Value, number: int, kind: ir.Type) -> ir.Value:
    position = {"position": ir.DenseI64ArrayAttr.get([number])}
    return ir.Operation.create("llvm.extractvalue", results=[kind], operands=[struct], attributes=position).result
