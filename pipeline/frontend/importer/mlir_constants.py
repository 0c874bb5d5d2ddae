"""Constants of MLIR that are a model's weights: they become arguments of `@main`, and arrays of the executable's.

Those are the tensors of floats that are more than one number again and again. So they are folded and prepared as the
weights of torch's models are, no pass copies them, and the text of each stage can be read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from itertools import count

import numpy as np

from pipeline.ir.attributes import WEIGHT
from pipeline.ir.rewriting import argument_marks, is_unused, update_signature
from pipeline.ir.tensor_types import tensor_type
from pipeline.mlir import ir, walk
from pipeline.runtime.call.numpy_arrays import NumpyArrays

#: The blob of a dense_resource in text: in front of the elements stands how they are aligned, in four bytes.
_RESOURCE, _HEADER = re.compile(r'([\w.$-]+|"[^"]+"): "0x([0-9A-Fa-f]*)"'), 8

#: Types that weights have; constants of others stay in the text.
_FLOATS = (ir.BF16Type, ir.F16Type, ir.F32Type, ir.F64Type)

#: An element in text: a number, or the bits of what is none.
_ELEMENT = re.compile(r"0x[0-9A-F]+|-?[0-9][0-9.]*(?:[eE][+-]?[0-9]+)?")

#: What text has where it may have such constants.
_SIGNS = ("dense<[", 'dense<"', "dense_resource<")


def may_have_weights(source: str | bytes) -> bool:
    """Whether a module may have such constants; of bytecode, nothing is known."""
    return isinstance(source, bytes) or any(sign in source for sign in _SIGNS)


def take_weights(main: ir.Operation, source: str, taken: Collection[str] = ()) -> dict[str, np.ndarray]:
    """Makes the constants of `@main` that are weights arguments behind its own, marked with their names.

    Returns their elements by name, none of those that are `taken`; equal constants are one weight. `source` is the text
    of the module.
    """
    found: dict[ir.Attribute, list[ir.Operation]] = {}
    for constant in walk(main, "arith.constant"):
        if _is_weight(constant) and not all(map(is_unused, constant.results)):
            found.setdefault(constant.attributes["value"], []).append(constant)
    resources = dict(_RESOURCE.findall(source)) if any("dense_resource" in str(each)[:40] for each in found) else {}
    arrays: dict[str, np.ndarray] = {}
    block = main.regions[0].blocks[0]
    marks = argument_marks(main)
    names = (name for number in count() if (name := f"constant{number}") not in taken)
    for name, (elements, constants) in zip(names, found.items(), strict=False):
        arrays[name] = _array(elements, constants[0].results[0].type, resources)
        argument = block.add_argument(constants[0].results[0].type, constants[0].location)
        marks.append(ir.DictAttr.get({WEIGHT: ir.StringAttr.get(name)}))
        for constant in constants:
            constant.results[0].replace_all_uses_with(argument)
            constant.erase()
    if arrays:
        update_signature(main)
        main.attributes["arg_attrs"] = ir.ArrayAttr.get(marks)
    return arrays


def _is_weight(constant: ir.Operation) -> bool:
    kind = constant.results[0].type
    if not isinstance(kind, ir.RankedTensorType) or not isinstance(kind.element_type, _FLOATS):
        return False
    elements = constant.attributes["value"]
    return math.prod(kind.shape) > 1 and not (isinstance(elements, ir.DenseElementsAttr) and elements.is_splat)


def _array(elements: ir.Attribute, kind: ir.Type, resources: Mapping[str, str]) -> np.ndarray:
    given = tensor_type(kind)
    dtype, shape = NumpyArrays.dtypes[given.dtype], ir.RankedTensorType(kind).shape
    if not isinstance(elements, ir.DenseElementsAttr):
        name = str(elements).removeprefix("dense_resource<").partition(">")[0]
        return np.frombuffer(bytes.fromhex(resources[name][_HEADER:]), dtype).reshape(shape).copy()
    if given.dtype != "bfloat16":
        return np.array(elements)
    return _bfloat16(str(elements)).view(dtype).reshape(shape)


def _bfloat16(text: str) -> np.ndarray:
    """The bits of the elements of a `dense<...>`: hexadecimal, or lists of numbers, which are rounded."""
    if text.startswith('dense<"0x'):
        return np.frombuffer(bytes.fromhex(text[9 : text.index('"', 9)]), np.uint16).copy()
    elements = _ELEMENT.findall(text.partition("> :")[0])
    numbers = np.array([0 if element.startswith("0x") else float(element) for element in elements], np.float32)
    words = numbers.view(np.uint32)
    bits = ((words + 0x7FFF + (words >> 16 & 1)) >> 16).astype(np.uint16)
    for place, element in enumerate(elements):
        if element.startswith("0x"):
            bits[place] = int(element, 16)
    return bits
