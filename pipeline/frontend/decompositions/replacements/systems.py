"""Linear systems of small matrices: what torch.linalg solves, inverts and factorizes, see `factorizations`.

Results lie in memory as torch's do, column after column, so that views that were right when exported still are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.decompositions.replacements.factorizations import (
    Factors,
    cholesky_factor,
    is_small,
    lu_factors,
    solve_triangle,
)
from pipeline.frontend.decompositions.replacements.table import aten, replaces

#: What torch says of a matrix that it gives up on, by the function that was called.
_FAILURES = {
    "linalg.inv": "the inversion could not be completed because the input matrix is singular",
    "linalg.cholesky": "the factorization could not be completed because the input is not positive-definite",
    "cholesky": "the factorization could not be completed because the input is not positive-definite",
    "torch.linalg.solve": "the solver failed because the input matrix is singular",
    "linalg.solve": "the solver failed because the input matrix is singular",
    "torch.linalg.lu_factor": "U is singular, the factorization should not be used to solve a system of equations",
}


def _by_columns(matrix: Tensor) -> Tensor:
    """The same matrix, column after column in memory."""
    return matrix.mT.contiguous().mT


def _is_empty(*tensors: Tensor) -> bool:
    return any(0 in tensor.shape for tensor in tensors)


def _identity_like(matrix: Tensor) -> Tensor:
    return torch.eye(matrix.size(-1), dtype=matrix.dtype).expand(matrix.shape)


def _no_errors(matrix: Tensor) -> Tensor:
    return torch.zeros(matrix.shape[:-2], dtype=torch.int32)


@replaces(aten._linalg_check_errors.default)
def check_errors(info: Tensor, api_name: str, *, is_matrix: bool) -> Any:
    """_linalg_check_errors(info, name) → a check that no element of info tells of a failure."""
    failure = _FAILURES.get(api_name, "the algorithm did not converge, or the input has rows that are no numbers")
    return aten._assert_async.msg((info == 0).all(), f"{api_name}: {failure}")


def _checked(info: Tensor, is_wanted: bool, api_name: str) -> Tensor:
    """The numbers of the pivots that are wrong as torch's int32, checked to be none if that is wanted."""
    if is_wanted:
        check_errors(info, api_name, is_matrix=info.dim() == 0)
    return info.to(torch.int32)


def _kept(factors: Factors) -> tuple[Tensor, Tensor]:
    """L and U in one, and with which row each was exchanged, from 1."""
    return _by_columns(factors.lu), (factors.pivots + 1).to(torch.int32)


@replaces(aten.linalg_lu_factor_ex.default)
def lu_factor(matrix: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """lu_factor(A: [.., n, n]) → L and U in one, the rows that were exchanged from 1, the first pivot that is 0."""
    if not pivot or not is_small(matrix) or _is_empty(matrix):
        return NotImplemented
    factors = lu_factors(matrix)
    info = _checked(factors.info, check_errors, "torch.linalg.lu_factor")
    return *_kept(factors), info


@replaces(aten._linalg_solve_ex.default)
def solve(matrix: Tensor, right: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    r"""solve(A, B) → U \ (L \ B[places]); B is a matrix or, where it has a dimension less, a vector."""
    if not left or not is_small(matrix) or _is_empty(matrix, right):
        return NotImplemented
    is_vector = right.dim() == 1 or (right.dim() == matrix.dim() - 1 and right.shape == matrix.shape[:-1])
    columns = right.unsqueeze(-1) if is_vector else right
    factors = lu_factors(matrix)
    result = _by_columns(_solution(factors, columns))
    info = _checked(factors.info, check_errors, "torch.linalg.solve")
    return result.squeeze(-1) if is_vector else result, *_kept(factors), info


def _solution(factors: Factors, right: Tensor) -> Tensor:
    batch = torch.broadcast_shapes(factors.lu.shape[:-2], right.shape[:-2])
    right = right.expand(*batch, *right.shape[-2:])
    lu = factors.lu.expand(*batch, *factors.lu.shape[-2:])
    permuted = right.gather(-2, factors.places.unsqueeze(-1).expand(right.shape))
    return solve_triangle(lu, solve_triangle(lu, permuted, upper=False, has_unit_diagonal=True), upper=True)


@replaces(aten.linalg_inv_ex.default)
def inverse(matrix: Tensor, *, check_errors: bool = False) -> Any:
    """inv(A) → solve(A, identity)."""
    if not is_small(matrix):
        return NotImplemented
    if _is_empty(matrix):
        return matrix.clone(), _no_errors(matrix)
    factors = lu_factors(matrix)
    result = _by_columns(_solution(factors, _identity_like(matrix)))
    return result, _checked(factors.info, check_errors, "linalg.inv")


def _signs(factors: Factors) -> Tensor:
    """[..]: 1, or -1 where the number of exchanged rows is odd."""
    exchanges = (factors.pivots != torch.arange(factors.pivots.size(-1))).sum(-1)
    return torch.where((exchanges & 1) == 0, 1.0, -1.0).to(factors.lu.dtype)


def _as_torch_factorizes(matrix: Tensor, factors: Factors) -> Factors:
    """What det and slogdet return beside the determinant, for their backward.

    Torch factorizes the transpose of a matrix that lies row after row, and takes it for that in backward.
    """
    return lu_factors(matrix.mT) if matrix.is_contiguous() else factors


@replaces(aten._linalg_det.default)
def determinant(matrix: Tensor) -> Any:
    """det(A) → the product of the pivots, with the sign of the exchanges."""
    if not is_small(matrix) or _is_empty(matrix):
        return NotImplemented
    factors = lu_factors(matrix)
    pivots = factors.lu.diagonal(0, -2, -1)
    result = pivots.prod(-1) * _signs(factors)
    return result, *_kept(_as_torch_factorizes(matrix, factors))


@replaces(aten._linalg_slogdet.default)
def sign_and_log_of_determinant(matrix: Tensor) -> Any:
    """slogdet(A) → the product of the pivots' signs and of that of the exchanges, the sum of their logarithms."""
    if not is_small(matrix) or _is_empty(matrix):
        return NotImplemented
    factors = lu_factors(matrix)
    pivots = factors.lu.diagonal(0, -2, -1)
    sign = pivots.sign().prod(-1) * _signs(factors)
    logarithm = pivots.abs().log().sum(-1)
    return sign, logarithm, *_kept(_as_torch_factorizes(matrix, factors))


@replaces(aten.linalg_slogdet.default)
def slogdet(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """linalg.slogdet(A) → _linalg_slogdet(A): torch-mlir's own takes no permutations and no singular matrices."""
    sign, logarithm, *_ = aten._linalg_slogdet.default(matrix)
    return sign, logarithm


@replaces(aten.linalg_solve_triangular.default)
def solve_triangular(
    triangle: Tensor, right: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """solve_triangular(A, B) → by substitution; X A = B as A.T X.T = B.T."""
    if not is_small(triangle) or _is_empty(triangle, right):
        return NotImplemented
    if not left:
        turned = triangle.mT, right.mT
        return aten.linalg_solve_triangular(*turned, upper=not upper, unitriangular=unitriangular).mT
    batch = torch.broadcast_shapes(triangle.shape[:-2], right.shape[:-2])
    triangle, right = (part.expand(*batch, *part.shape[-2:]) for part in (triangle, right))
    return _by_columns(solve_triangle(triangle, right, upper=upper, has_unit_diagonal=unitriangular))


@replaces(aten.linalg_cholesky_ex.default)
def cholesky(matrix: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """cholesky(A) → L with L @ L.T = A, or its transpose, and the first pivot that is not above 0."""
    if not is_small(matrix):
        return NotImplemented
    if _is_empty(matrix):
        return matrix.clone(), _no_errors(matrix)
    factor, info = cholesky_factor(matrix.mT if upper else matrix)
    return _by_columns(factor.mT if upper else factor), _checked(info, check_errors, "linalg.cholesky")


@replaces(aten.cholesky.default)
def old_cholesky(matrix: Tensor, upper: bool = False) -> Any:
    """torch.cholesky(A) → linalg.cholesky(A), checked."""
    return cholesky(matrix, upper=upper, check_errors=True)[0] if is_small(matrix) else NotImplemented


@replaces(aten.cholesky_solve.default)
def cholesky_solve(right: Tensor, factor: Tensor, upper: bool = False) -> Any:
    r"""cholesky_solve(B, L) → L.T \ (L \ B)."""
    if not is_small(factor) or _is_empty(factor, right):
        return NotImplemented
    lower = factor.mT if upper else factor
    batch = torch.broadcast_shapes(lower.shape[:-2], right.shape[:-2])
    lower, right = (part.expand(*batch, *part.shape[-2:]) for part in (lower, right))
    return _by_columns(solve_triangle(lower.mT, solve_triangle(lower, right, upper=False), upper=True))


@replaces(aten.cholesky_inverse.default)
def cholesky_inverse(factor: Tensor, upper: bool = False) -> Any:
    """cholesky_inverse(L) → cholesky_solve(identity, L)."""
    if not is_small(factor) or _is_empty(factor):
        return NotImplemented
    return cholesky_solve(_identity_like(factor), factor, upper)
