"""The safetensors format: a header of JSON, then the elements of tensors. What it says of a file is checked first.

8 bytes: the length of the header; the header: {"__metadata__": {text: text},
name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [first, last]}, ...}; the tensors, without gaps
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pipeline.runtime.interface.small_floats import BFLOAT16, SMALL_FLOATS

#: The dtypes of the format that artifacts have.
DTYPES = {
    "BOOL": np.dtype("bool"),
    "U8": np.dtype("uint8"),
    "I8": np.dtype("int8"),
    "I16": np.dtype("int16"),
    "I32": np.dtype("int32"),
    "I64": np.dtype("int64"),
    "F8_E4M3": SMALL_FLOATS["float8_e4m3fn"],
    "F8_E5M2": SMALL_FLOATS["float8_e5m2"],
    "F16": np.dtype("float16"),
    "BF16": BFLOAT16,
    "F32": np.dtype("float32"),
    "F64": np.dtype("float64"),
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}

_WORD = 8
_LONGEST_HEADER = 100_000_000  # as other readers have it


def chunks(tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> Iterator[Any]:
    """A file with these tensors, row-major, as pieces of memory; each tensor is aligned to its elements."""
    order = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    for name in order:
        array = tensors[name]
        places = [end, end + array.nbytes]
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": places}
        end = places[1]
    text = json.dumps(header, separators=(",", ":")).encode()
    text = text.ljust(-(-len(text) // _WORD) * _WORD)
    yield len(text).to_bytes(_WORD, "little")
    yield text
    for name in order:
        yield tensors[name].reshape(-1).view(np.uint8).data


def read_header(data: Any) -> tuple[dict[str, Any], dict[str, str], int]:
    """(entries of the tensors, metadata, where the tensors start) of a whole file.

    Raises:
        ValueError: it is no file of the format, or is not whole.
    """
    if len(data) < _WORD:
        raise ValueError("it is shorter than a header")
    length = int.from_bytes(data[:_WORD], "little")
    if length > min(_LONGEST_HEADER, len(data) - _WORD):
        raise ValueError("its header is longer than it")
    start = _WORD + length
    try:
        header = json.loads(bytes(data[_WORD:start]))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its header is no JSON: {error}") from None
    if not isinstance(header, dict) or not isinstance(header.get("__metadata__", {}), dict):
        raise ValueError("its header is no table of tensors")
    metadata = header.pop("__metadata__", {})
    end = 0
    for entry in sorted(header.values(), key=_places):
        first, last = _places(entry)
        if first != end or last - first != _size(entry):
            raise ValueError("the places of its tensors do not fit each other")
        end = last
    if end != len(data) - start:
        raise ValueError(f"it has {len(data) - start} bytes of tensors, its header says {end}")
    return header, metadata, start


def _places(entry: Any) -> tuple[int, int]:
    try:
        first, last = entry["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise ValueError("an entry of its header is no tensor") from None
    if not isinstance(first, int) or not isinstance(last, int):
        raise ValueError("an entry of its header is no tensor")
    return first, last


def _size(entry: Mapping[str, Any]) -> int:
    """How many bytes a tensor takes."""
    dtype, shape = entry.get("dtype"), entry.get("shape")
    if dtype not in DTYPES or not isinstance(shape, list) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise ValueError("an entry of its header is no tensor of a dtype that artifacts have")
    return math.prod(shape) * DTYPES[dtype].itemsize
