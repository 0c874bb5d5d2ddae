"""The constant tensors of a module as arrays, which a device gets once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

from pipeline.mlir import ir, symbol_name, walk
from pipeline.runtime.interface.storage_types import Stored, numpy_dtype

_NUMPY = {"i1": "bool", "f16": "float16", "f32": "float32", "f64": "float64"}


@dataclass
class Constants:
    """The constant tensors of a module, each once."""

    module: ir.Module
    arrays: list[np.ndarray] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, symbol: str) -> int:
        """The number of the memref.global `symbol`."""
        if symbol not in self.numbers:
            self.numbers[symbol] = len(self.arrays)
            (found,) = [g for g in walk(self.module, "memref.global") if symbol_name(g) == symbol]
            self.arrays.append(_elements(found, self.module))
        return self.numbers[symbol]

    def stored(self, stored: Stored) -> list[np.ndarray]:
        """The arrays as a device stores them."""
        return [array.astype(numpy_dtype(stored(_mlir_name(array.dtype)))) for array in self.arrays]


def _mlir_name(dtype: np.dtype) -> str:
    """The MLIR element type of a constant's dtype."""
    names = {"bool": "i1", "bfloat16": "bf16", "float16": "f16", "float32": "f32", "float64": "f64"}
    return names.get(str(dtype)) or f"i{8 * dtype.itemsize}"


def _elements(op: ir.Operation, module: ir.Module) -> np.ndarray:
    """The elements of a memref.global."""
    kind = ir.MemRefType(ir.TypeAttr(op.attributes["type"]).value)
    element = str(kind.element_type)
    dtype = np.dtype(ml_dtypes.bfloat16 if element == "bf16" else _NUMPY.get(element, f"int{element[1:]}"))
    value = op.attributes["initial_value"]
    if isinstance(value, ir.DenseIntElementsAttr) or (isinstance(value, ir.DenseFPElementsAttr) and element != "bf16"):
        return np.array(value).astype(dtype).reshape(kind.shape)
    text = str(value)
    resource = re.match(r"dense_resource<\"?(.*?)\"?>", text)
    if resource:
        found = re.search(rf'\b"?{re.escape(resource[1])}"?: "0x([0-9A-Fa-f]*)"', module.operation.get_asm())
        assert found is not None
        return np.frombuffer(bytes.fromhex(found[1])[4:], dtype).reshape(kind.shape)
    numbers = [float(number) for number in re.findall(r"[-+]?[\d.]+(?:[eE][-+]?\d+)?", text.partition(" : ")[0])]
    return np.broadcast_to(np.array(numbers).astype(dtype), (int(np.prod(kind.shape)),)).reshape(kind.shape)
