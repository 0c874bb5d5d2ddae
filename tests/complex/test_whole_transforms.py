"""Transforms of lengths without large prime factors: kernels of n log n steps, no less precise than eager's."""

from __future__ import annotations

import pytest
import torch
from complex_support import compiled
from torch import fft
from torch.export import Dim

WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}


def random(*shape, dtype=torch.complex64):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(sum(shape)))


def assert_precise(got, function, *args):
    """Of eager's type, and the error against double precision is at most 1.5 times eager's."""
    exact = function(*(one.to(WIDE.get(one.dtype, one.dtype)) for one in args))
    for ours, theirs, truth in zip(got, function(*args), exact, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        if ours.numel() and ours.dtype in WIDE:
            errors = [(one - truth).abs().pow(2).mean().sqrt().item() for one in (ours, theirs)]
            assert errors[0] <= 1.5 * errors[1] + 1e-9 * truth.abs().max().item()
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5 * truth.abs().max().item() if ours.numel() else 0)


def transforms(n):
    def program(z, x, half):
        return fft.fft(z), fft.ifft(z), fft.rfft(x), fft.irfft(half, n)

    return program


def arguments(rows, n, dtype=torch.float32):
    wide = torch.promote_types(dtype, torch.complex64)
    return random(rows, n, dtype=wide), random(rows, n, dtype=dtype), random(rows, n // 2 + 1, dtype=wide)


def kernels(executable):
    return [kernel.name for kernel in executable.kernels]


@pytest.mark.parametrize("n", [64, 128, 256, 512, 1024, 2048, 4096])
def test_lengths(n):
    args = arguments(3, n)
    executable = compiled(transforms(n), *args)
    assert all(name.startswith("fourier_transform") for name in kernels(executable))
    assert_precise(executable(*args), transforms(n), *args)


@pytest.mark.parametrize("n", [12, 30, 98, 400, 2000])
def test_lengths_with_other_factors(n):
    args = arguments(7, n)
    executable = compiled(transforms(n), *args)
    assert all(name.startswith("fourier_transform") for name in kernels(executable))
    assert_precise(executable(*args), transforms(n), *args)


@pytest.mark.parametrize("n", [9, 125])
def test_odd_lengths(n):
    """Those of real numbers, which have no half, are products with matrices."""
    args = arguments(7, n)
    executable = compiled(transforms(n), *args)
    assert "fourier_transform" in kernels(executable)
    for ours, theirs in zip(executable(*args), transforms(n)(*args), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5 * theirs.abs().max().item())


def test_columns_of_other_numbers():
    def program(z):
        return fft.fft2(z), fft.fft(z, dim=0), fft.ifft(z, dim=1)

    args = (random(9, 20, 12),)
    executable = compiled(program, *args)
    assert all(name.startswith("fourier_transform") for name in kernels(executable))
    assert_precise(executable(*args), program, *args)


@pytest.mark.parametrize("rows", [1, 16, 17, 40])
@pytest.mark.parametrize("n", [8, 16, 32, 64])
def test_short_rows_side_by_side(n, rows):
    args = arguments(rows, n)
    executable = compiled(transforms(n), *args)
    assert all(name.startswith("fourier_transform") for name in kernels(executable))
    assert_precise(executable(*args), transforms(n), *args)


def test_the_shortest():
    args = random(5, 4), random(2, 8, dtype=torch.float32), random(2, 5)
    executable = compiled(lambda z, x, half: (fft.fft(z, norm="ortho"), fft.rfft(x), fft.irfft(half)), *args)
    assert len(kernels(executable)) == 3
    assert_precise(
        executable(*args), lambda z, x, half: (fft.fft(z, norm="ortho"), fft.rfft(x), fft.irfft(half)), *args
    )


@pytest.mark.parametrize("n", [16, 256, 300])
@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v3"])
def test_other_vectors(cpu, n):
    args = arguments(2, n)
    assert_precise(compiled(transforms(n), *args, cpu=cpu)(*args), transforms(n), *args)


@pytest.mark.parametrize("n", [8, 20, 128])
def test_double_precision(n):
    args = arguments(2, n, torch.float64)
    for ours, theirs in zip(compiled(transforms(n), *args)(*args), transforms(n)(*args), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-13, atol=1e-13)


def test_the_op_says_what_it_computes():
    """What knows nothing of transforms computes the sum that the op is."""

    def program(z, x, half):
        return *transforms(60)(z, x, half), fft.fft(z.reshape(2, 10, 6), dim=1)

    args = arguments(2, 60)
    executable = compiled(program, *args, disable=["tile-and-vectorize"])
    for ours, theirs in zip(executable(*args), program(*args), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=3e-5)


def test_columns_of_any_number_and_of_several_dims():
    def program(z, x):
        return fft.fft2(z), fft.ifftn(z, norm="ortho"), fft.rfft2(x), fft.fft(z, dim=0), fft.irfft2(z[..., :33])

    args = random(8, 16, 64), random(2, 32, 64, dtype=torch.float32)
    assert_precise(compiled(program, *args)(*args), program, *args)


@pytest.mark.parametrize("n", [16, 64])
def test_symbolic_and_no_rows(n):
    def program(z, x):
        return fft.fft(z, norm="ortho") * 2, fft.rfft(x + 1)

    batch = {0: Dim("b", max=64)}
    args = random(3, 2, n), random(3, 2 * n, dtype=torch.float32)
    executable = compiled(program, *args, dynamic_shapes=((batch, batch),))
    assert executable(random(0, 2, n), random(0, 2 * n, dtype=torch.float32))[1].shape == (0, n + 1)
    for rows in (1, 5, 19):
        args = random(rows, 2, n), random(rows, 2 * n, dtype=torch.float32)
        assert_precise(executable(*args), program, *args)


def test_strided_conjugated_and_real_operands():
    def program(z, x):
        return fft.fft(z.mT), fft.fft(z.conj(), dim=0), fft.fft(x), fft.hfft(z, 64, dim=0), fft.ihfft(x), z + 1

    args = random(64, 6), random(3, 128, dtype=torch.float32)[:, ::2]
    assert_precise(compiled(program, *args)(*args), program, *args)


@pytest.mark.parametrize("n", [8, 64, 128])
def test_ends_of_half_a_spectrum_count_as_real_whatever_their_imaginary_parts(n):
    def program(half):
        return (fft.irfft(half),)

    half = random(2, n // 2 + 1)
    half.imag[:, 0], half.imag[:, -1] = float("nan"), float("inf")
    clean = half.clone()
    clean.imag[:, 0] = clean.imag[:, -1] = 0
    torch.testing.assert_close(compiled(program, half)(half), program(clean))


@pytest.mark.parametrize(("rows", "n"), [(64, 512), (1000, 32)])
def test_threads_share_rows(rows, n):
    args = arguments(rows, n)
    one, two = (compiled(transforms(n), *args, num_threads=threads)(*args) for threads in (1, 2))
    assert all(torch.equal(left, right) for left, right in zip(one, two, strict=True))


def test_a_layer_of_a_fourier_neural_operator():
    def program(x, weight):
        return (fft.irfft(torch.einsum("bix,iox->box", fft.rfft(x), weight), n=x.size(-1)).relu(),)

    args = random(2, 3, 128, dtype=torch.float32), random(3, 4, 65)
    assert_precise(compiled(program, *args)(*args), program, *args)
