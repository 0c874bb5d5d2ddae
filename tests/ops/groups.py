"""The form of the op matrix: groups of functions on the same inputs, each group compiled as one model per dtype."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from numerics import differences, name
from torch.utils import _pytree as pytree

import pipeline

Function = Callable[..., Any]


@dataclass(frozen=True)
class Group:
    """Functions that are tested on the same inputs.

    Attributes:
        inputs: the inputs in a dtype.
        functions: by name; those that eager does not have for a dtype are left out there.
        dtypes: the dtypes that the group is tested in.
    """

    inputs: Callable[[torch.dtype], tuple[Any, ...]]
    functions: Mapping[str, Function]
    dtypes: tuple[torch.dtype, ...]


class Functions(torch.nn.Module):
    """All functions of a group as one model that returns a dict of their results."""

    def __init__(self, functions: Mapping[str, Function]):
        super().__init__()
        self.functions = functions

    def forward(self, *args: Any) -> dict[str, Any]:
        return {key: function(*args) for key, function in self.functions.items()}


def parameters(groups: Mapping[str, Group]) -> list[Any]:
    """A pytest parameter for every group and dtype."""
    import pytest

    return [
        pytest.param(group, dtype, id=f"{key}-{name(dtype)}") for key, group in groups.items() for dtype in group.dtypes
    ]


def check_group(group: Group, dtype: torch.dtype) -> None:
    """Compiles the group's functions for `dtype` and compares each with eager."""
    inputs = group.inputs(dtype)
    functions = {key: one for key, one in group.functions.items() if eager_has(one, inputs)}
    assert functions, "eager has none of these for this dtype: take the dtype out of the group"
    model = Functions(functions)
    executable = pipeline.compile(model, inputs)
    got = executable(*copy.deepcopy(inputs))
    found = {}
    for key, function in functions.items():
        problems = differences(got[key], function(*inputs), in_double(function, inputs, dtype))
        if problems:
            found[key] = problems
    assert not found, "\n".join(f"{key}{path}: {text}" for key, one in found.items() for path, text in one)


def eager_has(function: Function, inputs: tuple[Any, ...]) -> bool:
    """Whether PyTorch itself can run the function on these inputs."""
    try:
        function(*copy.deepcopy(inputs))
    except (RuntimeError, TypeError):
        return False
    return True


def in_double(function: Function, inputs: tuple[Any, ...], dtype: torch.dtype) -> Any:
    """What the function gives in float64; None where that says nothing."""
    if dtype not in (torch.float16, torch.bfloat16, torch.float32):
        return None
    wide = pytree.tree_map_only(torch.Tensor, lambda leaf: leaf.double() if leaf.dtype == dtype else leaf, inputs)
    try:
        return function(*wide)
    except (RuntimeError, TypeError):
        return None
