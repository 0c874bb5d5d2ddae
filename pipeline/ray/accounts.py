"""Accounts of rows: whether what came out is what went in, each row once, in whatever order, without a shuffle."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import ray.data

from pipeline.errors import ArgumentError

_BYTES = 16


@dataclass(frozen=True)
class Rows:
    """The rows of a dataset, as far as some columns of them go; equal if they are the same rows, each as often.

    Attributes:
        count: how many there are.
        digest: the sum of their digests.
    """

    count: int
    digest: int


def rows_of(dataset: ray.data.Dataset, columns: Sequence[str]) -> Rows:
    """The rows of a dataset by these columns, such as an id; runs it.

        assert rows_of(ray.data.read_parquet(written), ["id"]) == rows_of(ray.data.read_parquet(read), ["id"])

    Raises:
        ArgumentError: there is no such column.
    """
    if isinstance(columns, str) or not columns:
        raise ArgumentError(f"columns: expected a list of names, got {columns!r}")
    counted = dataset.map_batches(_counted, batch_format="numpy", fn_kwargs={"columns": list(columns)})
    count = digest = 0
    for row in counted.iter_rows():
        count += int(row["count"])
        digest += int(row["digest"], 16)
    return Rows(count, digest % (1 << 8 * _BYTES))


def _counted(batch: dict[str, np.ndarray], columns: Sequence[str]) -> dict[str, list[int | str]]:
    missing = [name for name in columns if name not in batch]
    if missing:
        raise ArgumentError(f"column {missing[0]}: there is none; the columns are {', '.join(batch)}")
    total = 0
    for row in zip(*(batch[name] for name in columns), strict=True):
        digest = hashlib.blake2b(digest_size=_BYTES)
        for value in row:
            data = value.tobytes() if isinstance(value, np.ndarray | np.generic) else repr(value).encode()
            digest.update(len(data).to_bytes(8, "little") + data)
        total += int.from_bytes(digest.digest(), "little")
    return {"count": [len(batch[columns[0]])], "digest": [f"{total % (1 << 8 * _BYTES):x}"]}
