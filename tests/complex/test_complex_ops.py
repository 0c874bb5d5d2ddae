"""Ops on complex tensors, many in one program: each is as near to double precision as eager's."""

from __future__ import annotations

import pytest
import torch
from complex_support import assert_as_good, compiled, rewritten
from torch.nn import functional

REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64}


def arithmetic(z, w, x):
    return [
        z + w,
        z - x,
        x + z,
        2 - z,
        z * w,
        z * x,
        x * 1j,
        z * (2 - 0.5j),
        z / w,
        z / x,
        x / z,
        z / 3,
        1j / z,
        -z,
        torch.add(z, w, alpha=2j),
        torch.sub(z, w, alpha=0.5),
        torch.rsub(z, 3j),
        z.conj() * w,
        z.conj().imag,
        z.mH,
        torch.addcmul(z, w, w, value=1j),
        torch.addcdiv(z, w, z),
        torch.lerp(z, w, 0.25),
        z.real * w.imag,
    ]


def powers(z, w, x):
    return [
        z.reciprocal(),
        z**0,
        z**2,
        z**3,
        z**-1,
        z**-2,
        z**0.5,
        z**-0.5,
        z**2.5,
        z ** (1 + 1j),
        z**w,
        x.abs() ** z,
        2**z,
        z**x,
        z.square(),
        z.sqrt(),
        z.rsqrt(),
    ]


def functions(z, w, x):
    return [
        z.abs(),
        z.angle(),
        z.sgn(),
        z.exp(),
        z.exp2(),
        torch.expm1(z),
        z.log(),
        z.log2(),
        z.log10(),
        z.log1p(),
        z.sin(),
        z.cos(),
        z.tan(),
        z.sinh(),
        z.cosh(),
        z.tanh(),
        z.sigmoid(),
        torch.polar(x.abs(), x),
        torch.complex(x, x[:1]),
        torch.view_as_real(z + 1),
        torch.view_as_complex(torch.stack([x, x], -1)),
        z.norm(),
        torch.linalg.norm(z, dim=1),
    ]


def inverse_functions(z, w, x):
    return [z.asin(), z.acos(), z.atan(), z.asinh(), z.acosh(), z.atanh()]


def questions(z, w, x):
    v = torch.where(x > 0, z, w)
    return [
        v == z,
        v != w,
        z == 2,
        torch.isfinite(z),
        torch.isnan(z / 0),
        torch.isinf(z),
        torch.isreal(z * 0),
        v,
        torch.where(x > 0, z, x),
        z.masked_fill(x > 0, 1 + 2j),
        z.bool(),
        z.any(1),
        (z * 0).all(),
        (z == w).sum(),
        torch.logical_not(z),
        torch.logical_and(z, x > 0),
        torch.count_nonzero(z, 0),
    ]


def reductions(z, w, x):
    return [
        z.sum(),
        z.sum(1),
        z.sum((0, 1), keepdim=True),
        z.mean(0),
        z.mean(),
        z.cumsum(1),
        z.prod(),
        z.prod(0),
        z.prod(1, keepdim=True),
        z.cumprod(1),
        z.var(0),
        z.std(),
        torch.var_mean(z, 1, correction=0)[1],
        z.trace(),
        x.sum(dtype=z.dtype),
        torch.linalg.vector_norm(z, 1, dim=0),
        torch.vdot(z[0], w[0]),
        torch.dot(z[:, 1], w[:, 2]),
    ]


def casts(z, w, x):
    whole = (x * 4).long()
    return [
        x.to(z.dtype),
        whole.to(z.dtype),
        z.to(torch.complex128),
        z.to(torch.complex64),
        z.real.to(torch.complex64),
        torch.zeros_like(z),
        torch.ones(2, 3, dtype=z.dtype) + z[:2, :3],
        torch.full((3,), 1 - 2j, dtype=z.dtype),
        torch.full_like(z, 2j),
        z.new_zeros(2),
        torch.eye(3, dtype=z.dtype),
        x.to(torch.complex64) + whole,
        torch.fill(z, 1j),
    ]


def movement(z, w, x):
    index = torch.tensor([2, 0, 1])
    places = (x[:3, :4] * 100).abs().long() % 3
    return [
        z.t(),
        z.reshape(-1),
        z[1:, ::2],
        z.unsqueeze(0).expand(2, -1, -1),
        z.flip(1),
        z.roll(2, 1),
        torch.cat([z, w, x]),
        torch.stack([z, x], 1),
        z[index],
        z[:, index],
        z.index_select(0, index),
        z.gather(0, places),
        *z.split(2, 1),
        functional.pad(z, (1, 2)),
        functional.pad(z, (2, 1), mode="reflect"),
        z.diagonal(),
        z.tril(),
        z.triu(1),
        z.repeat(2, 1),
        z.scatter(0, places, w),
        z.scatter_add(0, places, w),
        torch.kron(z[:2, :2], w[:2, :2]),
        z.diff(),
        z.select_scatter(w[0], 0, 1),
        z.select_scatter(x[0], 0, 2),
        z.slice_scatter(x[:1], 0, 0, 1),
        torch.clone(z).copy_(x),
        x.clone().copy_(z),
        z.index_add(0, index, w[:3]),
        z.index_copy(0, index, w[:3]),
        torch.tensor_split(z, 2)[1],
        z.unfold(1, 3, 2),
        z.movedim(0, 1),
        z.squeeze(),
        z.masked_fill(x > 0, 0).index_put((index,), w[:3]),
        torch.rot90(z),
        z.take(index),
        torch.outer(z[0], w[1]),
    ]


def products(z, w, x):
    a, b = z.reshape(1, *z.shape).repeat(3, 1, 1), w.t().expand(3, -1, -1)
    return [
        z @ w.t(),
        z.conj() @ w.mT,
        torch.mm(z, w.mH),
        torch.bmm(a, b),
        a @ b.conj(),
        torch.mv(z, w[0]),
        z @ x.t().to(z.dtype),
        torch.addmm(z[:, :1], z, w.t(), beta=2, alpha=1j),
        torch.baddbmm(a[:, :, :1], a, b),
        torch.einsum("ab,cb->ac", z, w),
        torch.einsum("bij,bjk->ik", a, b),
        functional.linear(z, w, w[:, 0]),
        torch.matmul(a[:, None], b[None]),
        functional.conv1d(a, a[:2], stride=2),
        functional.conv2d(a[None], a[None, :, :2, :2], z[0, :1]),
        functional.conv1d(a[:, :4], a[:2, :2, :3], groups=2, padding=1),
        torch.chain_matmul(z, w.t(), z),
    ]


ALL = (arithmetic, powers, functions, inverse_functions, questions, reductions, casts, movement, products)


def arguments(dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    z, w = (torch.randn(5, 7, dtype=dtype, generator=generator) for _ in range(2))
    return z, w, torch.randn(5, 7, dtype=REAL[dtype], generator=generator)


@pytest.mark.parametrize("program", ALL, ids=lambda one: one.__name__)
def test_ops_are_as_precise_as_eagers(program):
    args = arguments(torch.complex64)
    executable = compiled(program, *args)
    assert_as_good(executable(*args), program, args)
    z, w, x = arguments(torch.complex64, 1)
    views = z.conj(), w.t().contiguous().t(), x.neg()
    assert_as_good(executable(*views), program, tuple(view.resolve_conj().contiguous() for view in views))


@pytest.mark.parametrize("program", ALL, ids=lambda one: one.__name__)
def test_double_precision_is_kept(program):
    args = arguments(torch.complex128)
    assert_as_good(rewritten(program, *args), program, args, limit=1e-13)
