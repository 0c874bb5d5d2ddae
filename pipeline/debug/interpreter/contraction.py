"""Sums of products over loops as matrix products, which run in a time that one can wait for."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np


def contract(left: np.ndarray, right: np.ndarray, sizes: Sequence[int], summed: Sequence[int]) -> np.ndarray | None:
    """The sum of left * right over the loops `summed`, which have size 1 in the result.

    None if a loop that is summed is no axis of both: then it is no matrix product.

    Args:
        left, right: along loops of these sizes; of size 1 along a loop with which they do not move.
    """
    loops = range(len(sizes))
    moves = [[array.shape[loop] != 1 or sizes[loop] == 1 for loop in loops] for array in (left, right)]
    if not all(moves[0][loop] and moves[1][loop] for loop in summed):
        return None
    kept = [loop for loop in loops if loop not in summed]
    batch = [loop for loop in kept if moves[0][loop] and moves[1][loop]]
    rows = [loop for loop in kept if moves[0][loop] and not moves[1][loop]]
    columns = [loop for loop in kept if moves[1][loop] and loop not in batch]
    missing = [loop for loop in kept if loop not in (*batch, *rows, *columns)]
    first = _matrices(left, (batch, rows, list(summed)), sizes)
    second = _matrices(right, (batch, list(summed), columns), sizes)
    product = np.matmul(first, second)
    order = [*batch, *rows, *columns, *summed, *missing]
    shape = [sizes[loop] if loop in (*batch, *rows, *columns) else 1 for loop in order]
    return product.reshape(shape).transpose(np.argsort(order))


def _matrices(array: np.ndarray, groups: Sequence[list[int]], sizes: Sequence[int]) -> np.ndarray:
    """The array as matrices: one axis for each group of its loops."""
    taken = [loop for group in groups for loop in group]
    left = [loop for loop in range(len(sizes)) if loop not in taken]
    return array.transpose([*taken, *left]).reshape([prod(sizes[loop] for loop in group) for group in groups])
