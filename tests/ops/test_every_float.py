"""Functions of every float of 16 bits, and of as many wider ones: eager's result, or as near to the exact one.

NaN, infinities, zeros with signs and ties among them, which compilers and drivers like to take for other numbers.
"""

from __future__ import annotations

import pytest
import torch
from functions_of_floats import FUNCTIONS, PAIRS, PREDICATES, every_float, places_off, special_pairs

import pipeline

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]

#: How far from the exact result one may be, in units of the last place; less where eager is nearer to it.
UNITS = {"cpu": 2.5, "vulkan": 4}

#: Vulkan has no f64 of these.
SINGLE_ONLY = {"sin", "cos", "tan"}

on_all = pytest.mark.parametrize(
    ("target", "dtype"), [(target, dtype) for target in UNITS for dtype in DTYPES], ids=str
)


def results_of(functions, target, *args):
    """What the functions give by name, compiled and in eager mode."""

    def model(*args):
        return {name: function(*args) for name, function in functions.items()}

    return pipeline.compile(model, args, target=target)(*args), model(*args)


@on_all
def test_functions(target, dtype):
    x = every_float(dtype)
    left_out = SINGLE_ONLY if (target, dtype) == ("vulkan", torch.float64) else ()
    functions = {name: function for name, function in FUNCTIONS.items() if name not in left_out}
    results, eager = results_of(functions, target, x)
    for name, function in functions.items():
        off = places_off(results[name], eager[name], function(x.double()), UNITS[target])
        assert not off.any(), (name, x[off][:4], results[name][off][:4], eager[name][off][:4])


@on_all
def test_predicates(target, dtype):
    results, eager = results_of(PREDICATES, target, every_float(dtype))
    for name in PREDICATES:
        assert torch.equal(results[name], eager[name]), name


@on_all
def test_special_pairs(target, dtype):
    results, eager = results_of(PAIRS, target, *special_pairs(dtype))
    for name in PAIRS:
        torch.testing.assert_close(results[name], eager[name], equal_nan=True, msg=lambda text, name=name: name + text)
