"""Products of matrices and convolutions: one real product, of twice the size along each dimension, does it.

[a, b] @ [[c, d], [-d, c]] = [ac - bd, ad + bc]: as many multiplications as four products of the parts, in one matrix
product at full speed; for weights the right side is prepared.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.frontend.complex_numbers.table import Parts, aten, join, rule, split


def matrix_product(op: Any, x: Parts, y: Parts) -> Parts:
    """The parts of x @ y by `op`, mm or bmm: [.., M, K] and [.., K, N]."""
    columns = y.re.size(-1)
    right = torch.cat([torch.cat([y.re, y.im], -1), torch.cat([-y.im, y.re], -1)], -2)
    both = op(torch.cat([x.re, x.im], -1), right)
    return Parts(both.narrow(-1, 0, columns), both.narrow(-1, columns, columns))


@rule(aten.mm.default)
def mm(a: Tensor, b: Tensor) -> Tensor:
    """mm(a, b) -> see the module's docstring."""
    return join(*matrix_product(torch.mm, split(a), split(b)))


@rule(aten.bmm.default)
def bmm(a: Tensor, b: Tensor) -> Tensor:
    """bmm(a, b) -> see the module's docstring."""
    return join(*matrix_product(torch.bmm, split(a), split(b)))


@rule(aten.mv.default)
def mv(a: Tensor, b: Tensor) -> Tensor:
    """mv(a, b) -> mm(a, b as a column)."""
    return torch.mm(a, b.unsqueeze(1)).squeeze(1)


@rule(aten.dot.default)
def dot(a: Tensor, b: Tensor) -> Tensor:
    """dot(a, b) -> the sum of a * b."""
    return (a * b).sum()


@rule(aten.vdot.default)
def vdot(a: Tensor, b: Tensor) -> Tensor:
    """vdot(a, b) -> the sum of conj(a) * b."""
    return (aten._conj_physical.default(a) * b).sum()


def _added(x: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """beta x + alpha product; x is not looked at for a beta of 0."""
    product = product if alpha == 1 else alpha * product
    if beta == 0:
        return product
    return (x if beta == 1 else beta * x) + product


@rule(aten.addmm.default)
def addmm(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """addmm(x, a, b) -> beta x + alpha a @ b."""
    return _added(x, torch.mm(a, b), beta, alpha)


@rule(aten.addmv.default)
def addmv(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """addmv(x, a, b) -> beta x + alpha a @ b."""
    return _added(x, torch.mv(a, b), beta, alpha)


@rule(aten.baddbmm.default)
def baddbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """baddbmm(x, a, b) -> beta x + alpha a @ b."""
    return _added(x, torch.bmm(a, b), beta, alpha)


@rule(aten.addbmm.default)
def addbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """addbmm(x, a, b) -> beta x + alpha * the sum of a @ b over the batch."""
    return _added(x, torch.bmm(a, b).sum(0), beta, alpha)


@rule(aten.addr.default)
def addr(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """addr(x, a, b) -> beta x + alpha * the products of all pairs."""
    return _added(x, a.unsqueeze(1) * b.unsqueeze(0), beta, alpha)


@rule(aten.convolution.default)
def convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, *others: Any
) -> Tensor:
    """convolution(x, w, bias) -> conv(xr, wr) - conv(xi, wi), conv(xr, wi) + conv(xi, wr), then the bias."""
    a, w = split(x), split(weight)

    def convolved(part: Tensor, by: Tensor) -> Tensor:
        return aten.convolution.default(part, by, None, stride, padding, dilation, *others)

    result = join(convolved(a.re, w.re) - convolved(a.im, w.im), convolved(a.re, w.im) + convolved(a.im, w.re))
    return result if bias is None else result + bias.reshape(-1, *[1] * (x.dim() - 2))
