"""Comparing what an executable returns with what eager PyTorch returns."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.utils import _pytree as pytree

import pipeline

BOOL = torch.bool
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
NUMBERS = (*INTEGERS, *FLOATS)
ALL = (BOOL, *NUMBERS)

#: (relative, absolute) by dtype: a few units in the last place, as sums may be taken in another order.
TOLERANCES = {
    torch.float16: (4e-3, 4e-3),
    torch.bfloat16: (3e-2, 3e-2),
    torch.float32: (2e-5, 2e-5),
    torch.float64: (1e-11, 1e-11),
}


def name(dtype: torch.dtype) -> str:
    """The name of a dtype, for test ids."""
    return str(dtype).removeprefix("torch.")


def check(model: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
    """Compiles `model` and compares results and mutated arguments with eager's, on copies of the arguments."""
    executable = pipeline.compile(model, args, kwargs)
    expected_args, got_args = copy.deepcopy((args, kwargs)), copy.deepcopy((args, kwargs))
    expected = model(*expected_args[0], **expected_args[1])
    got = executable(*got_args[0], **got_args[1])
    problems = [f"result{path}: {text}" for path, text in differences(got, expected)]
    problems += [f"argument{path}: {text}" for path, text in differences(got_args, expected_args)]
    assert not problems, "\n".join(problems)


def differences(got: Any, expected: Any, reference: Any = None) -> list[tuple[str, str]]:
    """(path, what differs) for every leaf of two trees that is not the same; see `difference`."""
    got_leaves, got_tree = pytree.tree_flatten_with_path(got)
    expected_leaves, expected_tree = pytree.tree_flatten_with_path(expected)
    if got_tree != expected_tree:
        return [("", f"structure {got_tree}, expected {expected_tree}")]
    references = pytree.tree_leaves(reference, is_leaf=lambda leaf: leaf is None) if reference is not None else []
    found = []
    for number, ((path, got_leaf), (_, leaf)) in enumerate(zip(got_leaves, expected_leaves, strict=True)):
        text = difference(got_leaf, leaf, references[number] if references else None)
        if text is not None:
            found.append((pytree.keystr(path), text))
    return found


def difference(got: Any, expected: Any, reference: torch.Tensor | None = None) -> str | None:
    """What differs between two leaves, or None.

    Integers and bools are equal. A float is close to eager's, or to `reference`, the same computed in float64: where
    a dtype rounds much, eager's own way of rounding is not the measure.
    """
    if not isinstance(expected, torch.Tensor):
        return None if type(got) is type(expected) and got == expected else f"{got!r}, expected {expected!r}"
    if not isinstance(got, torch.Tensor):
        return f"{got!r}, expected a tensor"
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype} {tuple(got.shape)}, expected {expected.dtype} {tuple(expected.shape)}"
    if expected.is_complex():
        return difference(*(torch.view_as_real(one.resolve_conj()) for one in (got, expected)))
    if expected.dtype in TOLERANCES:
        right = _close(got, expected)
        if reference is not None and reference.shape == expected.shape and reference.dtype.is_floating_point:
            right |= _close(got, reference)
    else:
        right = got == expected
    if bool(right.all()):
        return None
    wrong = int((~right).sum())
    where = tuple((~right).nonzero()[0].tolist())
    return f"{wrong} of {right.numel()} elements differ, first {list(where)}: {got[where]}, expected {expected[where]}"


def _close(got: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    relative, absolute = TOLERANCES[got.dtype]
    return torch.isclose(got.double(), expected.to(got.dtype).double(), rtol=relative, atol=absolute, equal_nan=True)
