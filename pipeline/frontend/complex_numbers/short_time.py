"""Short-time Fourier transforms: torch's own code cuts frames by strides, and the inverse's looks at values."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from pipeline.frontend.complex_numbers.fourier import composite
from pipeline.frontend.complex_numbers.table import always, aten

always(aten.stft.center)(composite(aten.stft.center))


@always(aten.stft.default)
def stft(
    signal: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """stft([.., L]) -> the transforms of the frames times the window, [.., F, T]; torch has padded the signal."""
    if align_to_window:
        whole = composite(aten.stft.default)
        return whole(signal, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, True)
    frames = signal.unfold(-1, n_fft, hop_length or n_fft // 4)
    if window is not None:
        frames = frames * _in_the_middle(window, n_fft)
    elif win_length is not None and win_length < n_fft:
        frames = frames * _in_the_middle(torch.ones(win_length, dtype=signal.dtype, device=signal.device), n_fft)
    is_half = not frames.is_complex() and onesided is not False
    transform = torch.fft.rfft if is_half else torch.fft.fft
    spectra = transform(frames, norm="ortho" if normalized else "backward").transpose(-1, -2)
    return spectra if return_complex else torch.view_as_real(spectra)


@always(aten.istft.default)
def istft(
    spectra: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """istft([B, F, T]) -> the sum of the frames' transforms times the window, over that of the windows' squares.

    Where the windows leave gaps, eager raises an error, and here the signal is not finite.
    """
    hop, width = hop_length or n_fft // 4, win_length or n_fft
    window = torch.ones(width, device=spectra.device, dtype=spectra.real.dtype) if window is None else window
    window = _in_the_middle(window, n_fft)
    frames = _frames(spectra.transpose(-1, -2), n_fft, "ortho" if normalized else "backward", return_complex)
    signal = _overlap_added(frames * window, hop)
    squares = _overlap_added((window * window).expand(frames.size(-2), n_fft), hop)
    whole = n_fft + hop * (frames.size(-2) - 1)
    start = n_fft // 2 if center else 0
    end = whole - start if length is None else start + length
    inside = min(end, whole) if isinstance(whole, int) else end
    result = (signal.narrow(-1, start, inside - start)) / squares.narrow(-1, start, inside - start)
    return pad(result, (0, end - inside)) if isinstance(whole, int) and end > inside else result


def _in_the_middle(window: Tensor, n_fft: int) -> Tensor:
    """The window between as many zeros as make it n_fft numbers."""
    missing = n_fft - window.size(0)
    return pad(window, (missing // 2, missing - missing // 2)) if missing else window


def _frames(spectra: Tensor, n_fft: int, norm: str, is_complex: bool) -> Tensor:
    """[.., T, F] -> [.., T, n_fft]."""
    if is_complex:
        return torch.fft.ifft(spectra, norm=norm)
    return torch.fft.irfft(spectra.narrow(-1, 0, n_fft // 2 + 1), n_fft, norm=norm)


def _overlap_added(frames: Tensor, hop: int) -> Tensor:
    """[.., T, n] -> [.., n + hop (T - 1)]: frame t is added from hop t on.

    Frames are seen as chunks of `hop` elements: the signal's chunk k is the sum of the chunks r of the frames k - r.
    """
    *batch, count, width = frames.shape
    chunks = math.ceil(width / hop)
    parts: Any = pad(frames, (0, chunks * hop - width)).reshape(*batch, count, chunks, hop).unbind(-2)
    total = sum(pad(part, (0, 0, r, chunks - 1 - r)) for r, part in enumerate(parts))
    assert isinstance(total, Tensor)
    return total.reshape(*batch, (count + chunks - 1) * hop).narrow(-1, 0, width + hop * (count - 1))
