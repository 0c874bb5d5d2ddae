"""A model over a dataset on a cluster: every row once, whatever dies; what is ahead of its reader is bounded."""

from __future__ import annotations

import os
import signal
import sys
import time
import uuid
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import ray
import ray.data
import torch
from torch import nn

import pipeline
from pipeline.errors import ArgumentError, OptionError
from pipeline.ray import batches, map_batches, rows_of


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 7)).eval().requires_grad_(False)


def images(count):
    return np.random.default_rng(0).random((count, 3, 6, 6), np.float32)


def dataset(count, blocks):
    pixels = images(count)
    return ray.data.from_items([{"id": n, "image": pixels[n]} for n in range(count)], override_num_blocks=blocks)


def check(rows, count, model=None):
    """Each row is there once, with the results that eager gives."""
    assert sorted(row["id"] for row in rows) == list(range(count))
    expected = (model or net())(torch.from_numpy(images(count)))
    for row in rows:
        torch.testing.assert_close(torch.from_numpy(row["logits"].copy()), expected[row["id"]])


def begun(folder, function=None):
    """A class for actors that leaves a file for each batch that it begins, and then calls `function(ids)`.

    What it reads and computes with lies in the object store, as it was put there.
    """

    class Begun(batches.Inference):
        def run(self, batch):
            ids = batch["id"].tolist()
            (Path(folder) / f"{ids[0]}-{uuid.uuid4().hex}").touch()
            if function is not None:
                function(ids)
            assert "torch" not in sys.modules
            weights = self._model._executable.weights.values()
            assert not any(array.flags.writeable for array in [*weights, *batch.values()])
            return super().run(batch)

    return Begun


def times_begun(folder):
    """How often each batch was begun, by its first row."""
    return Counter(int(file.name.partition("-")[0]) for file in folder.iterdir())


def test_a_model_and_an_artifact(cluster, tmp_path):
    data = dataset(22, 3)
    made = map_batches(data, net(), batch_size=4, columns=["image"], outputs=["logits"])
    rows = made.take_all()
    check(rows, 22)
    assert set(rows[0]) == {"id", "logits"}
    pipeline.compile(net(), (torch.from_numpy(images(4)),)).save(tmp_path / "net.pipeline")
    made = map_batches(data, tmp_path / "net.pipeline", columns={"input": "image"}, outputs=["logits"], actors=2)
    check(made.take_all(), 22)


def test_what_cannot_be(cluster):
    data = dataset(4, 1)
    exe = pipeline.compile(net(), (torch.from_numpy(images(4)),))
    for model, options, error, message in [
        (exe, {}, ArgumentError, "column input: there is none; the model takes input, the columns are id, image"),
        (exe, {"columns": ["images"]}, ArgumentError, "column images: there is none"),
        (exe, {"precision": "bf16"}, OptionError, "precision: an option of compilations"),
        (exe, {"batch_size": 0}, OptionError, "batch_size: expected a number from 1, got 0"),
        (exe, {"columns": ["image"], "actors": (3, 2)}, OptionError, "actors: expected a number"),
        (net(), {}, ArgumentError, "columns: the dataset has id, image; say which the model takes"),
        ("nowhere/net.pipeline", {}, pipeline.ArtifactError, "nowhere/net.pipeline: cannot be read"),
        (b"no artifact", {}, pipeline.ArtifactError, "no artifact, or cut short"),
    ]:
        with pytest.raises(error, match=message):
            map_batches(data, model, **options)
    with pytest.raises(ArgumentError, match="the dataset has no rows"):
        map_batches(ray.data.from_items([]), net())
    with pytest.raises(ArgumentError, match="column name: its rows have different shapes or no numbers"):
        map_batches(ray.data.from_items([{"name": "one"}]), net())
    with pytest.raises(ArgumentError, match="dataset: expected a Dataset of ray.data, got list"):
        map_batches([], exe)
    doubles = ray.data.from_numpy(images(4).astype(np.float64))
    with pytest.raises(
        ray.exceptions.RayTaskError, match=r"column data: expected rows of float32\[3, 6, 6\] for input"
    ):
        map_batches(doubles, exe).take_all()


def test_a_batch_whose_actor_dies_is_done_again_once(cluster, tmp_path, monkeypatch):
    def kill(ids):
        if 8 in ids and times_begun(tmp_path)[8] == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(batches, "Inference", begun(tmp_path, kill))
    check(map_batches(dataset(24, 6), net(), batch_size=4, columns=["image"], outputs=["logits"]).take_all(), 24)
    assert times_begun(tmp_path) == {0: 1, 4: 1, 8: 2, 12: 1, 16: 1, 20: 1}


def test_a_batch_that_kills_its_actor_each_time_is_an_error(cluster, tmp_path, monkeypatch):
    def kill(ids):
        if 4 in ids:
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(batches, "Inference", begun(tmp_path, kill))
    made = map_batches(dataset(8, 2), net(), batch_size=4, columns=["image"], outputs=["logits"], retries=1)
    with pytest.raises(ray.exceptions.RayError, match="a batch has ended 2 processes.*: its first row's id is 4"):
        made.take_all()
    assert times_begun(tmp_path)[4] == 2


def test_a_node_that_is_killed_loses_nothing_and_doubles_nothing(cluster, node, tmp_path, monkeypatch):
    """It is killed in its third block: two whose large results lie there alone are done again as well."""
    work, lost = node.in_the_middle(), node.id

    def third(ids):
        third.calls = getattr(third, "calls", 0) + 1
        if third.calls > 2 or ray.get_runtime_context().get_node_id() != lost:
            work()

    monkeypatch.setattr(batches, "Inference", begun(tmp_path, third))
    torch.manual_seed(0)
    wide = nn.Sequential(nn.Flatten(), nn.Linear(3 * 36, 8192)).requires_grad_(False)
    data = dataset(96, 24)
    made = map_batches(data, wide, batch_size=4, columns=["image"], outputs=["logits"], actors=3).materialize()
    check(made.take_all(), 96, wide)
    assert node.was_killed()
    times = times_begun(tmp_path)
    assert len(times) == 24 and sorted(times.values())[-4:] == [1, 2, 2, 2]
    assert rows_of(made, ["id"]) == rows_of(data, ["id"])


def test_accounts_of_rows(cluster):
    data = dataset(9, 2)
    whole = rows_of(data, ["id", "image"])
    assert whole.count == 9 and rows_of(data.repartition(3), ["id", "image"]) == whole
    assert rows_of(data.limit(8), ["id", "image"]) != whole
    twice = data.limit(8).union(data.limit(1))
    assert rows_of(twice, ["id"]).count == 9 and rows_of(twice, ["id"]) != rows_of(data, ["id"])
    with pytest.raises(ArgumentError, match="columns: expected a list of names, got 'id'"):
        rows_of(data, "id")


def test_a_slow_reader_is_not_overrun(cluster, tmp_path, monkeypatch):
    """60 batches of 4 MB each do not fit the object stores of the nodes, 160 MB together."""
    monkeypatch.setattr(batches, "Inference", begun(tmp_path))
    wide = nn.Linear(1, 256 * 1024, bias=False).requires_grad_(False)
    items = [{"id": n, "x": np.full(1, n, np.float32)} for n in range(240)]
    data = ray.data.from_items(items, override_num_blocks=60)
    made = map_batches(data, wide, batch_size=4, columns=["x"], outputs=["y"])
    seen, ahead = [], 0
    for batch in made.iter_batches(batch_size=4, prefetch_batches=0):
        seen += batch["id"].tolist()
        if len(seen) == 40:
            time.sleep(2)
        ahead = max(ahead, sum(1 for _ in tmp_path.iterdir()) - len(seen) // 4)
    assert sorted(seen) == list(range(240))
    assert ahead < 40, ahead
