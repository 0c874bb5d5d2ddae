"""The Vulkan target: kernels → SPIR-V."""

from __future__ import annotations

import struct

from pipeline.mlir import ir
from pipeline.program import Dump
from pipeline.runtime.interface.storage_types import in_words
from pipeline.targets.gpu.target import Generated, GpuTarget
from pipeline.targets.vulkan.spirv import legalize, serialize

#: SPIR-V's capabilities that not every device has, with wgpu's names for them.
_OPTIONAL = {10: "shader-f64", 11: "shader-int64"}
_OP_CAPABILITY = 17


class VulkanTarget(GpuTarget):
    """Any Vulkan device. Elements of less than 32 bits are stored in 32."""

    name = family = example = fusion_rules = "vulkan"

    def stored(self, element: str) -> str:
        """See `GpuTarget.stored`."""
        return in_words(element)

    def generate(self, device: ir.Module, dump: Dump) -> Generated:
        """See `GpuTarget.generate`."""
        legalize(device, self.disable)
        dump("gpu", device)
        blobs = serialize(device)
        required = sorted({name for blob in blobs.values() for name in _required(blob)})
        return Generated(tuple(blobs.values()), {name: number for number, name in enumerate(blobs)}, tuple(required))


def _required(blob: bytes) -> list[str]:
    """The features of a device that a SPIR-V module needs, by wgpu's names."""
    words = struct.unpack(f"<{len(blob) // 4}I", blob)
    found, place = [], 5
    while place < len(words) and words[place] & 0xFFFF == _OP_CAPABILITY:
        if words[place + 1] in _OPTIONAL:
            found.append(_OPTIONAL[words[place + 1]])
        place += words[place] >> 16
    return found
