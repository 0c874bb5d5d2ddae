"""Fourier transforms of ONNX's: complex numbers are pairs in the last dim."""

from __future__ import annotations

from typing import Any

import torch

from pipeline.errors import CaptureError
from pipeline.frontend.onnx.call import NodeCall
from pipeline.frontend.onnx.ops.table import op


@op("DFT", as_given=(1, 2))
def dft(call: NodeCall, x: torch.Tensor, length: Any = None, axis: Any = None) -> torch.Tensor:
    """Along one axis."""
    dim = call.number(axis, "axis", 1 if call.version < 20 else -2)
    dim = dim % x.dim()
    size, is_inverse, is_half = call.number(length), bool(call.get("inverse")), bool(call.get("onesided"))
    if is_half and is_inverse:
        whole = torch.fft.irfft(torch.view_as_complex(x.contiguous()), n=size, dim=dim)
        return whole.unsqueeze(-1)
    if x.shape[-1] == 1 and is_half:
        return torch.view_as_real(torch.fft.rfft(x.squeeze(-1), n=size, dim=dim))
    signal = x.squeeze(-1).to(torch.complex64) if x.shape[-1] == 1 else torch.view_as_complex(x.contiguous())
    result = (torch.fft.ifft if is_inverse else torch.fft.fft)(signal, n=size, dim=dim)
    if is_half:
        result = result.narrow(dim, 0, result.shape[dim] // 2 + 1)
    return torch.view_as_real(result)


@op("STFT", as_given=(1, 3))
def stft(
    call: NodeCall, x: torch.Tensor, step: Any, window: torch.Tensor | None = None, length: Any = None
) -> torch.Tensor:
    """Of frames of a signal."""
    if length is None and window is None:
        raise CaptureError("STFT: has neither a window nor the length of its frames; the model has to give one")
    size = window.shape[0] if length is None and window is not None else call.number(length)
    signal = x.squeeze(-1) if x.dim() == 3 and x.shape[-1] == 1 else x
    if signal.dim() == 3:
        signal = torch.view_as_complex(signal.contiguous())
    frames = signal.unfold(1, size, call.number(step))
    frames = frames if window is None else frames * window
    if call.get("onesided", 1) and not frames.is_complex():
        return torch.view_as_real(torch.fft.rfft(frames))
    complex_frames = frames if frames.is_complex() else frames.to(torch.complex64)
    return torch.view_as_real(torch.fft.fft(complex_frames))
