"""Weights as bytes one behind the other, for a section of an object file or for a file beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.runtime.call.array_libraries import as_numpy
from pipeline.runtime.interface.aligned_memory import aligned

#: A file of weights begins with so many characters of the digest of all that follows, and a line's end.
DIGEST = 63


@dataclass(frozen=True)
class PackedWeights:
    """Weights in memory order.

    Attributes:
        names: theirs, in order.
        starts, sizes: where each begins, aligned, and how many bytes it takes.
        content: the bytes.
    """

    names: tuple[str, ...]
    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    content: Sequence[memoryview | bytes]

    @property
    def size(self) -> int:
        """How many bytes all of it takes."""
        return sum(map(len, self.content))

    @property
    def digest(self) -> str:
        """What tells these weights from others."""
        digest = hashlib.sha256()
        for part in self.content:
            digest.update(part)
        return digest.hexdigest()[:DIGEST]

    def file(self) -> list[memoryview | bytes]:
        """The content of a file of them."""
        return [self.digest.encode() + b"\n", *self.content]


def packed(names: Sequence[str], weights: Mapping[str, Any]) -> PackedWeights:
    """The weights of these names."""
    starts, sizes, end = [], [], 0
    content: list[memoryview | bytes] = []
    for name in names:
        array = as_numpy(weights[name]).reshape(-1).view("u1")
        starts.append(end)
        sizes.append(array.nbytes)
        end = aligned(end + max(1, array.nbytes))
        content += [array.data, bytes(end - starts[-1] - array.nbytes)]
    return PackedWeights(tuple(names), tuple(starts), tuple(sizes), content)
