"""Transforms of lengths that are powers of two: kernels of n log n steps, no less precise than eager's."""

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


@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v3"])
def test_other_vectors(cpu):
    args = arguments(2, 256)
    assert_precise(compiled(transforms(256), *args, cpu=cpu)(*args), transforms(256), *args)


def test_double_precision():
    args = arguments(2, 128, torch.float64)
    for ours, theirs in zip(compiled(transforms(128), *args)(*args), transforms(128)(*args), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-13, atol=1e-13)


def test_the_op_says_what_it_computes():
    """What knows nothing of transforms computes the sum that the op is."""

    def program(z, x, half):
        return *transforms(64)(z, x, half), fft.fft(z.reshape(2, 8, 8), dim=1)

    args = arguments(2, 64)
    executable = compiled(program, *args, disable=["tile-and-vectorize"])
    for ours, theirs in zip(executable(*args), program(*args), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=3e-5)


def test_columns_of_any_number_and_of_several_dims():
    def program(z, x):
        return fft.fft2(z), fft.ifftn(z, norm="ortho"), fft.rfft2(x), fft.fft(z, dim=0), fft.irfft2(z[..., :33])

    args = random(8, 16, 64), random(2, 32, 64, dtype=torch.float32)
    assert_precise(compiled(program, *args)(*args), program, *args)


def test_symbolic_and_no_rows():
    def program(z, x):
        return fft.fft(z, norm="ortho") * 2, fft.rfft(x + 1)

    batch = {0: Dim("b", max=64)}
    args = random(3, 2, 64), random(3, 128, dtype=torch.float32)
    executable = compiled(program, *args, dynamic_shapes=((batch, batch),))
    assert executable(random(0, 2, 64), random(0, 128, dtype=torch.float32))[1].shape == (0, 65)
    for rows in (1, 5):
        args = random(rows, 2, 64), random(rows, 128, dtype=torch.float32)
        assert_precise(executable(*args), program, *args)


def test_strided_conjugated_and_real_operands():
    def program(z, x):
        return fft.fft(z.mT), fft.fft(z.conj(), dim=0), fft.fft(x), fft.hfft(z, 64, dim=0), fft.ihfft(x), z + 1

    args = random(64, 6), random(3, 128, dtype=torch.float32)[:, ::2]
    assert_precise(compiled(program, *args)(*args), program, *args)


def test_ends_of_half_a_spectrum_count_as_real_whatever_their_imaginary_parts():
    def program(half):
        return (fft.irfft(half),)

    half = random(2, 65)
    half.imag[:, 0], half.imag[:, -1] = float("nan"), float("inf")
    clean = half.clone()
    clean.imag[:, 0] = clean.imag[:, -1] = 0
    torch.testing.assert_close(compiled(program, half)(half), program(clean))


def test_threads_share_rows():
    args = arguments(64, 512)
    one, two = (compiled(transforms(512), *args, num_threads=threads)(*args) for threads in (1, 2))
    assert all(torch.equal(left, right) for left, right in zip(one, two, strict=True))


def test_a_layer_of_a_fourier_neural_operator():
    def program(x, weight):
        return (fft.irfft(torch.einsum("bix,iox->box", fft.rfft(x), weight), n=x.size(-1)).relu(),)

    args = random(2, 3, 128, dtype=torch.float32), random(3, 4, 65)
    assert_precise(compiled(program, *args)(*args), program, *args)
