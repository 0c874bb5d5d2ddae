"""Factorizations of small matrices and solutions of triangular systems, as loops over columns.

Each round updates all of a matrix at once, so that it is one elementwise kernel over the batch; large matrices are
better off with LAPACK, which works on blocks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop_op

from pipeline.frontend.recurrent.rows import row, with_row

#: The most rows of a matrix that is factorized here.
MOST_ROWS = 64


def is_small(matrix: Tensor) -> bool:
    """Whether a matrix, [.., n, n], is factorized here: real, of a size that is known and not large."""
    rows, columns = matrix.shape[-2:]
    is_known = isinstance(rows, int) and isinstance(columns, int) and rows == columns
    return is_known and rows <= MOST_ROWS and matrix.dtype in (torch.float32, torch.float64)


class Factors(NamedTuple):
    """matrix[places] = L @ U, by partial pivoting.

    Attributes:
        lu: [.., n, n], U and below its diagonal L, whose own diagonal is 1.
        places: [.., n] int64, the row of the matrix that each row of L @ U is.
        pivots: [.., n] int64, the row that each row in turn was exchanged with.
        info: [..] int64, the number from 1 of the first pivot that is 0; 0 if there is none.
    """

    lu: Tensor
    places: Tensor
    pivots: Tensor
    info: Tensor


def lu_factors(matrix: Tensor) -> Factors:
    """Gauss's elimination of [.., n, n], the outer product of each pivot's row and column in turn."""
    size, last = matrix.size(-1), matrix.dim() - 1

    def eliminate(k: Any, lu: Tensor, places: Tensor, pivots: Tensor, info: Tensor) -> tuple[Any, ...]:
        line = torch.arange(size)
        place = torch.where(line >= k, row(lu, last, k).abs(), -1.0).argmax(-1, keepdim=True)
        order = torch.where(line == k, place, torch.where(line == place, k, line))
        lu = lu.gather(-2, order.unsqueeze(-1).expand(lu.shape))
        pivot_row = row(lu, last - 1, k)
        pivot = row(pivot_row, last - 1, k).unsqueeze(-1)
        is_zero = pivot == 0
        factors = torch.where(line > k, row(lu, last, k) / torch.where(is_zero, 1.0, pivot), 0.0)
        rest = lu - factors.unsqueeze(-1) * torch.where(line > k, pivot_row, 0.0).unsqueeze(-2)
        below = (line.unsqueeze(-1) > k) & (line == k)
        lu = torch.where(below, factors.unsqueeze(-1), rest)
        info = torch.where((info == 0) & is_zero.squeeze(-1), k + 1, info)
        return k + 1, lu, places.gather(-1, order), torch.where(line == k, place, pivots), info

    places = torch.arange(size).expand(matrix.shape[:-1]).clone()
    info = torch.zeros(matrix.shape[:-2], dtype=torch.int64)
    carried = (0, matrix.clone(memory_format=torch.contiguous_format), places, places.clone(), info)
    _, *factors = while_loop_op(lambda k, *_: k < size, eliminate, carried, ())
    return Factors(*factors)


def cholesky_factor(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """[.., n, n] → the lower factor of the lower triangle, and [..] int64 as `Factors.info`, of pivots not above 0."""
    size, last = matrix.size(-1), matrix.dim() - 1

    def eliminate(k: Any, factor: Tensor, info: Tensor) -> tuple[Any, ...]:
        line = torch.arange(size)
        column = row(factor, last, k)
        pivot = row(column, last - 1, k).unsqueeze(-1)
        is_wrong = (pivot > 0).logical_not()
        column = torch.where(line >= k, column / torch.where(is_wrong, 1.0, pivot).sqrt(), 0.0)
        rest = factor - column.unsqueeze(-1) * column.unsqueeze(-2)
        info = torch.where((info == 0) & is_wrong.squeeze(-1), k + 1, info)
        return k + 1, torch.where(line == k, column.unsqueeze(-1), rest), info

    info = torch.zeros(matrix.shape[:-2], dtype=torch.int64)
    carried = (0, matrix.clone(memory_format=torch.contiguous_format), info)
    _, factor, info = while_loop_op(lambda k, *_: k < size, eliminate, carried, ())
    return factor.tril(), info


def solve_triangle(triangle: Tensor, right: Tensor, *, upper: bool, has_unit_diagonal: bool = False) -> Tensor:
    """x: [.., n, m] with triangle @ x = right, by substitution; the other half of the triangle is not read."""
    size, last = triangle.size(-1), right.dim() - 1

    def substitute(k: Any, x: Tensor, triangle: Tensor) -> tuple[Any, ...]:
        line = torch.arange(size)
        place = size - 1 - k if upper else k
        known, column = row(x, last - 1, place), row(triangle, last, place)
        if not has_unit_diagonal:
            known = known / row(column, last - 1, place).unsqueeze(-1)
        is_open = line < place if upper else line > place
        rest = x - torch.where(is_open, column, 0.0).unsqueeze(-1) * known.unsqueeze(-2)
        return k + 1, with_row(rest, known, last - 1, place)

    carried = (0, right.clone(memory_format=torch.contiguous_format))
    _, x = while_loop_op(lambda k, *_: k < size, substitute, carried, (triangle,))
    return x
