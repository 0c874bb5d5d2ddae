"""Contractions on buffers in the form that libraries take: three stacks of matrices, given by strides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.analysis.epilogue import epilogues, initial_fill, is_only_between
from pipeline.ir.indexing_maps import coefficient
from pipeline.ir.linalg_op import LinalgOp, bounded
from pipeline.ir.matchers import base
from pipeline.mlir import ir
from pipeline.passes.gpu.matmul.shared_memory_matmul import Split, split_contraction
from pipeline.passes.gpu.matmul.tensor_core_matmul import choose_form
from pipeline.passes.gpu.thread.launch_patterns import is_arithmetic

_MOST = 2**31 - 1

#: Arithmetic and memory traffic in a second of a large GPU of sm_90: what estimates are made from.
_OPERATIONS = {"f32": 5e13, "tf32": 4e14, "f16": 7e14, "bf16": 7e14}
_BYTES = 4e12

#: How much of the library's speed our own kernels are taken to have, and what a launch costs in seconds.
_OWN_SHARE = {"f32": 0.7, "tf32": 0.6, "f16": 0.6, "bf16": 0.6}
_LAUNCH = 3e-6


@dataclass(frozen=True)
class Strides:
    """A stack of matrices: a buffer, and the distances between neighbours, in elements."""

    buffer: ir.Value
    offset: int
    rows: int
    columns: int
    batch: int


@dataclass(frozen=True)
class Product:
    """`out = left @ right`; see `pipeline.runtime.device.gemm_descriptor.Gemm`."""

    rows: int
    columns: int
    sum: int
    batch: int
    left: Strides
    right: Strides
    out: Strides


def cast_behind(generic: ir.Operation) -> LinalgOp | None:
    """The op that does nothing but round the result of a product to 16 bits, and is all that needs it."""
    view = bounded(generic)
    behind = epilogues(view, is_arithmetic) if view is not None and is_arithmetic(generic) else []
    if not behind or len(behind[0].operands) != 2:
        return None
    cast, product = behind[0], generic.operands[2]
    body = [op.name for op in cast.body_ops]
    kind = ir.MemRefType(generic.operands[0].type).element_type
    if body != ["arith.truncf"] or ir.MemRefType(cast.operands[1].type).element_type != kind:
        return None
    users = [op for op in (initial_fill(generic, 2), generic, cast.op) if op is not None]
    return cast if cast.operands[0] == product and is_only_between(product, users) else None


def read_product(generic: ir.Operation, cast: LinalgOp | None) -> Product | None:
    """The product that an op is, its result rounded by `cast`; None if it has another form, or is too small."""
    view = bounded(generic)
    split = None if view is None else split_contraction(view)
    fill = None if split is None else initial_fill(generic, 2)
    if view is None or split is None or fill is None or choose_form(generic, fill.operands[0], True) is None:
        return None
    out = (generic.operands[2], view.maps[2]) if cast is None else (cast.operands[1], cast.maps[1])
    sides = (split.rows.dims, split.sums), (split.sums, split.columns.dims), (split.rows.dims, split.columns.dims)
    buffers = (
        (generic.operands[split.rows.operand], view.maps[split.rows.operand]),
        (generic.operands[split.columns.operand], view.maps[split.columns.operand]),
        out,
    )
    found = [
        _strides(buffer, indexing, split, across) for (buffer, indexing), across in zip(buffers, sides, strict=True)
    ]
    if any(strides is None for strides in found):
        return None
    sizes = (split.rows.size, split.columns.size, split.size_of(split.sums), split.size_of(split.batch))
    product = Product(*sizes, *(strides for strides in found if strides is not None))
    return product if _is_taken(product) else None


def _is_taken(product: Product) -> bool:
    """Whether rows or columns lie side by side, and the others far enough apart; results in rows."""
    if product.out.columns != 1 or product.out.rows < product.columns:
        return False
    for strides, rows, columns in (
        (product.left, product.rows, product.sum),
        (product.right, product.sum, product.columns),
    ):
        in_rows = strides.columns == 1 and strides.rows >= columns
        in_columns = strides.rows == 1 and strides.columns >= rows
        if not in_rows and not in_columns:
            return False
    numbers = [product.rows, product.columns, product.sum, product.batch]
    numbers += [
        number for strides in (product.left, product.right, product.out) for number in (strides.rows, strides.columns)
    ]
    return max(numbers) <= _MOST


def _strides(
    buffer: ir.Value, indexing: ir.AffineMap, split: Split, across: tuple[Sequence[int], Sequence[int]]
) -> Strides | None:
    """A buffer as a stack of matrices whose rows and columns are these loops."""
    kind = ir.MemRefType(buffer.type)
    if not kind.has_static_shape or any(map(_has_constant, indexing.results)) or not _is_plain(base(buffer)):
        return None
    steps, offset = kind.get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    if offset == unknown or unknown in steps:
        return None
    distances = [_distance(indexing, steps, loop) for loop in range(indexing.n_dims)]
    found = [_linear(dims, split.sizes, distances) for dims in (*across, split.batch)]
    return None if None in found else Strides(base(buffer), offset, *(stride or 0 for stride in found))


def _is_plain(buffer: ir.Value) -> bool:
    """Whether a buffer begins where its memory does, and is row-major."""
    kind = ir.MemRefType(buffer.type)
    with buffer.location:
        return kind.has_static_shape and kind.layout == ir.MemRefType.get(kind.shape, kind.element_type).layout


def _has_constant(expression: ir.AffineExpr) -> bool:
    if isinstance(expression, ir.AffineConstantExpr):
        return ir.AffineConstantExpr(expression).value != 0
    if isinstance(expression, ir.AffineAddExpr):
        binary = ir.AffineBinaryExpr(expression)
        return _has_constant(binary.lhs) or _has_constant(binary.rhs)
    return not isinstance(expression, (ir.AffineDimExpr, ir.AffineMulExpr))


def _distance(indexing: ir.AffineMap, steps: Sequence[int], loop: int) -> int | None:
    """How far an iteration of a loop moves, in elements."""
    total = 0
    for expression, step in zip(indexing.results, steps, strict=True):
        factor = coefficient(expression, loop)
        if factor is None:
            return None
        total += factor * step
    return total


def _linear(dims: Sequence[int], sizes: Sequence[int], distances: Sequence[int | None]) -> int | None:
    """The distance between neighbours if some loops, in their order, are one loop of equal steps."""
    moving = [dim for dim in dims if sizes[dim] != 1]
    if not moving:
        return 0
    for outer, inner in zip(moving, moving[1:], strict=False):
        own, inside = distances[outer], distances[inner]
        if own is None or inside is None or own != inside * sizes[inner]:
            return None
    return distances[moving[-1]]


def pays(product: Product, element: str, goes_over_result: bool) -> bool:
    """Whether the library is faster by an estimate, though a launch behind it may have to go over the result again."""
    operations = 2 * product.batch * product.rows * product.columns * product.sum
    seconds = operations / _OPERATIONS[element]
    saved = seconds / _OWN_SHARE[element] - seconds
    again = product.batch * product.rows * product.columns * 8 / _BYTES
    return saved > goes_over_result * (again + _LAUNCH)
