"""Keys and values as bytes, with a scale for each slot of each head of each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import torch

from pipeline.errors import CaptureError

#: The largest byte: quantization is symmetric, -128 is not used.
_LARGEST = 127


@dataclass(frozen=True)
class QuantizedSlots:
    """int8[rows, ..] of which a unit stands for `scales`, f32[rows, slots]; `axis` is the dim of the slots, 1 or -1.

    Reads and writes by an index give and take slots, as those of a tensor with these elements do.
    """

    elements: torch.Tensor
    scales: torch.Tensor
    axis: int

    @property
    def shape(self) -> torch.Size:
        """That of the elements."""
        return self.elements.shape

    def __getitem__(self, index: tuple[Any, ...]) -> QuantizedSlots:
        return QuantizedSlots(self.elements[index], self.scales[:, index[self.axis]], self.axis)

    def __setitem__(self, index: tuple[Any, ...], numbers: torch.Tensor) -> None:
        scales, elements = quantized(numbers, 1 if self.axis < 0 else 2)
        self.elements[index] = elements
        self.scales[:, index[self.axis]] = scales


@dataclass(frozen=True)
class QuantizedSlotsByHeads:
    """Slots, as models see them that look at sizes: [batch, heads, slots, width]."""

    slots: QuantizedSlots
    batch: int

    @classmethod
    def __torch_function__(cls, function: Any, *call: Any) -> NoReturn:
        raise _computed_with(getattr(function, "__name__", str(function)))

    def __getattr__(self, name: str) -> NoReturn:
        raise _computed_with(name) if hasattr(torch.Tensor, name) else AttributeError(name)

    @property
    def shape(self) -> tuple[Any, ...]:
        """These sizes."""
        rows, *sizes = self.slots.shape
        return self.batch, rows // self.batch, *(sizes if self.slots.axis == 1 else reversed(sizes))


def _computed_with(op: str) -> CaptureError:
    return CaptureError(
        f"the model computes with the keys or values that the cache has ({op}), which kv_cache='int8' is not for: "
        "leave it out"
    )


def quantized(numbers: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales, without `dim`, and int8: round(x / scale), where scale = max(abs(x)) / 127 along `dim`.

    Where all is zero, so are the bytes.
    """
    wide = numbers.float()
    scales = (wide.abs().amax(dim) / _LARGEST).clamp(min=torch.finfo(torch.float32).tiny)
    return scales, torch.round(wide / scales.unsqueeze(dim)).to(torch.int8)
