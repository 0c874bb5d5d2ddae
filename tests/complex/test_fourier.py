"""Fourier transforms of all kinds, lengths and scalings: as near to double precision as twice eager's."""

from __future__ import annotations

import warnings

import pytest
import torch
from complex_support import assert_as_good, compiled, rewritten
from torch import fft
from torch.export import Dim


def random(*shape, dtype=torch.complex64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def check(function, *args):
    assert_as_good(rewritten(function, *args), function, args)


#: One product; equal stages; three; unequal ones; a prime, an odd product of primes; by a chirp.
LENGTHS = (1, 2, 3, 32, 64, 100, 105, 127, 512, 1031)


@pytest.mark.parametrize("n", LENGTHS)
def test_transforms_of_one_dimension(n):
    def program(z, x, half):
        return fft.fft(z), fft.ifft(z), fft.rfft(x), fft.irfft(half, n), fft.hfft(half, n), fft.fft(x), fft.ihfft(x)

    check(program, random(2, n), random(2, n, dtype=torch.float32), random(2, n // 2 + 1))


def test_scalings_lengths_and_dimensions():
    def program(z, x):
        results = []
        for norm in ("backward", "ortho", "forward"):
            results += [fft.fft(z, norm=norm), fft.ifft(z, norm=norm), fft.irfft(z, norm=norm), fft.rfft(x, norm=norm)]
        return [*results, fft.fft(z, 9, 0), fft.fft(x, 3, 1), fft.irfft(z, 7, 1), fft.rfft(x, 11, -2)]

    check(program, random(4, 6, 5), random(4, 6, 5, dtype=torch.float32))


def test_transforms_of_several_dimensions():
    def program(z, x):
        return [
            fft.fft2(z),
            fft.ifft2(z, norm="ortho"),
            fft.rfft2(x),
            fft.irfft2(z),
            fft.irfft2(z, (5, 9)),
            fft.fftn(z),
            fft.ifftn(x),
            fft.rfftn(x, dim=(0, 2)),
            fft.irfftn(z, (3, 8), (2, 0)),
            fft.fftn(z, (4, 4), (1, 2)),
            fft.hfft2(z),
            fft.ihfft2(x),
            fft.fftshift(z),
            fft.ifftshift(z, 1),
            fft.fftfreq(9) + fft.rfftfreq(16),
        ]

    check(program, random(3, 6, 5), random(3, 6, 5, dtype=torch.float32))


def test_double_precision_is_kept():
    def program(z):
        return fft.fft(z), fft.irfft(z, 90)

    args = (random(3, 46, dtype=torch.complex128),)
    assert_as_good(rewritten(program, *args), program, args, limit=1e-14)


def test_compiled_transforms_with_symbolic_batches():
    def program(z, x):
        return fft.fft(z, norm="ortho"), fft.irfft(z, 21), fft.rfft(x)

    batch = {0: Dim("b", max=64)}
    args = random(3, 4, 40), random(3, 70, dtype=torch.float32)
    executable = compiled(program, *args, dynamic_shapes=((batch, batch),))
    for size in (3, 1, 7):
        args = random(size, 4, 40, seed=size), random(size, 70, dtype=torch.float32)
        assert_as_good(executable(*args), program, args)


def test_a_long_transform_by_products_is_as_precise_as_eagers_and_prepared():
    z = random(2, 5000)
    executable = compiled(fft.fft, z)
    exact = fft.fft(z.to(torch.complex128))
    ours, theirs = ((one - exact).abs().pow(2).mean().sqrt() for one in (executable(z), fft.fft(z)))
    assert ours <= 2.5 * theirs
    main = executable.ir("kernels").partition("func.func @main")[2]
    assert "pipeline.prepared" in main.partition("\n")[0], "its factors are computed in each call"


@pytest.mark.parametrize("n_fft", [16, 20])
def test_short_time_transforms(n_fft):
    window = torch.hann_window(n_fft)

    def program(x):
        spectra = torch.stft(x, n_fft, n_fft // 4, window=window, return_complex=True)
        narrow = torch.stft(
            x, n_fft, 5, n_fft - 4, window=window[4:], center=False, normalized=True, return_complex=True
        )
        back = torch.istft(spectra, n_fft, n_fft // 4, window=window, length=150)
        return spectra.abs() ** 2, narrow, back, torch.istft(spectra * 2, n_fft, n_fft // 4, window=window)

    check(program, random(2, 150, dtype=torch.float32))


SHORT_TIME = {
    "plain": lambda x: torch.stft(x, 16, return_complex=True),
    "of an odd length": lambda x: torch.stft(x, 15, 4, return_complex=True),
    "in pairs": lambda x: torch.stft(x, 16, return_complex=False),
    "both sides": lambda x: torch.stft(x, 16, onesided=False, return_complex=True),
    "of complex numbers": lambda x: torch.stft(torch.complex(x, -x), 16, 5, return_complex=True),
    "in the middle": lambda x: torch.stft(x, 16, 4, 11, normalized=True, return_complex=True),
    "with a short window": lambda x: torch.stft(x, 20, 4, 11, torch.hann_window(11), return_complex=True),
    "without padding": lambda x: torch.stft(x, 16, 7, center=False, return_complex=True),
    "padded by constants": lambda x: torch.stft(x, 16, 7, pad_mode="constant", return_complex=True),
    "beside the window": lambda x: torch.stft(
        x, 16, 4, 12, torch.hann_window(12), center=False, align_to_window=True, return_complex=True
    ),
    "of one signal": lambda x: torch.stft(x[0], 16, return_complex=True),
}


@pytest.mark.parametrize("program", SHORT_TIME.values(), ids=SHORT_TIME)
def test_forms_of_short_time_transforms(program):
    check(program, random(2, 60, dtype=torch.float32))


def test_a_compiled_spectrogram():
    def program(x):
        spectra = torch.stft(x, 16, 4, return_complex=True)
        return spectra.abs().log1p(), torch.istft(spectra, 16, 4)

    args = (random(2, 60, dtype=torch.float32),)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, about windows
        assert_as_good(compiled(program, *args)(*args), program, args)
