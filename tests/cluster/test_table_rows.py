"""A model on the rows of a table, without ray: names of columns, pieces, what does not fit, what fills a batch up."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import pipeline
from pipeline.errors import ArgumentError, PipelineError
from pipeline.ray.rows import RowModel, RowPlan
from pipeline.runtime.artifact import load_from_memory, signature_of, to_bytes


class Two(nn.Module):
    """Takes two arguments, gives a dict; writes to a buffer."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 5)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x, ids):
        self.calls += 1
        return {"scores": self.linear(x) + ids[:, None], "pair": (x.sum(1), ids * 2)}


class Norm(nn.Module):
    """Rows depend on each other."""

    def forward(self, x):
        return x - x.mean(0)


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh()).eval().requires_grad_(False)


def rows(model, *args, columns=None, outputs=None, **options):
    """The model as actors have it: by way of bytes in memory that nobody writes to."""
    exe = pipeline.compile(model.eval().requires_grad_(False), args, **options)
    data = to_bytes(*exe.contents(prepacked=True), exe.name)
    return RowModel(load_from_memory(data), RowPlan.of(signature_of(data), columns, outputs))


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("is_dynamic", [False, True])
def test_any_number_of_rows(count, is_dynamic):
    sizes = {"dynamic_shapes": ({0: torch.export.Dim("n", max=64)},)} if is_dynamic else {}
    model = rows(net(), torch.randn(4, 6), **sizes)
    assert model.plan.size == (None if is_dynamic else 4)
    x = torch.randn(count, 6)
    (name, column), *others = model({"input": x.numpy()}).items()
    assert name == "output" and not others and column.shape == (count, 5) and column.dtype == np.float32
    torch.testing.assert_close(torch.from_numpy(column), net()(x))


def test_columns_by_order_by_name_and_the_only_one():
    x = np.random.rand(4, 6).astype(np.float32)
    for columns, table in [
        (None, {"input": x, "id": x}),
        (None, {"image": x}),
        (["image"], {"id": x, "image": x}),
        ({"input": "image"}, {"id": x, "image": x}),
    ]:
        model = rows(net(), torch.randn(4, 6), columns=columns, outputs=["y"])
        assert model(table)["y"].shape == (4, 5)


def test_several_arguments_results_and_a_buffer_that_is_written():
    model = rows(Two(), torch.randn(3, 6), torch.arange(3))
    table = {"x": np.random.rand(5, 6).astype(np.float32), "ids": np.arange(5), "else": np.arange(5)}
    made = model(table)
    assert list(made) == ["scores", "pair_0", "pair_1"]
    np.testing.assert_allclose(made["pair_0"], table["x"].sum(1), rtol=1e-5)
    np.testing.assert_array_equal(made["pair_1"], table["ids"] * 2)
    assert model._executable.buffers["calls"] > 0


def test_what_does_not_fit_is_named():
    model = rows(net(), torch.randn(4, 6))
    x = np.zeros((4, 6), np.float32)
    ragged = np.array([np.zeros(2), np.zeros(3)], object)
    for table, message in [
        ({"a": x, "b": x}, "column input: there is none; the model takes input, the columns are a, b"),
        ({"input": x.astype(np.float64)}, r"column input: expected rows of float32\[6\] for input, got .*float64\[6\]"),
        ({"input": x[:, :5]}, r"column input: expected rows of float32\[6\] for input, got rows of float32\[5\]"),
        ({"input": x[:, 0]}, r"column input: expected rows of float32\[6\]"),
        ({"input": ragged}, "column input: its rows have different shapes or no numbers"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            model(table)
    signature = model.plan.signature
    for columns, outputs, message in [
        (["a", "b"], None, "the model takes input; expected a column for each"),
        ({"x": "a"}, None, "the model takes input; expected a column for each"),
        ("input", None, "expected lists of names, got a string"),
        (None, ["a", "b"], "outputs: expected 1 different names, got a, b"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            RowPlan.of(signature, columns, outputs)
    model = rows(Two(), torch.randn(3, 6), torch.arange(3))
    with pytest.raises(ArgumentError, match="column ids: has 2 rows, expected 3"):
        model({"x": np.zeros((3, 6), np.float32), "ids": np.arange(2)})


def test_models_that_take_no_rows():
    for model, args, message in [
        (lambda x: x + 1, (torch.tensor(1.0),), "has no rows"),
        (lambda x, y: x @ y, (torch.randn(3, 4), torch.randn(4, 5)), "different numbers of rows: x has 3, y has 4"),
    ]:
        exe = pipeline.compile(model, args)
        with pytest.raises(ArgumentError, match=message):
            RowPlan.of(exe.signature)
    total = rows(net()[:1].append(nn.Flatten(0)), torch.randn(4, 6))
    with pytest.raises(PipelineError, match="output output: expected a row for each of the 4 rows of a batch"):
        total({"input": np.zeros((4, 6), np.float32)})


def test_batches_of_rows_that_depend_on_each_other_are_not_filled_up():
    model = rows(Norm(), torch.randn(4, 6))
    x = np.random.rand(8, 6).astype(np.float32)
    np.testing.assert_allclose(model({"x": x})["output"], np.concatenate([p - p.mean(0) for p in (x[:4], x[4:])]), 1e-5)
    for count in (1, 3):
        with pytest.raises(PipelineError, match="rows of a batch depend on each other"):
            model({"x": x[:count]})


def test_bfloat16_becomes_float32():
    model = rows(lambda_module(lambda x: x.bfloat16()), torch.randn(4, 6))
    x = torch.randn(4, 6)
    made = model({"x": x.numpy()})["output"]
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, x.bfloat16().float().numpy())


def lambda_module(function):
    class Calls(nn.Module):
        def forward(self, x):
            return function(x)

    return Calls()


def test_weights_in_memory_are_used_where_they_lie():
    exe = pipeline.compile(net(), (torch.randn(4, 6),))
    data = np.frombuffer(to_bytes(*exe.contents(prepacked=True), exe.name), np.uint8)
    loaded = load_from_memory(data)
    first, last = np.lib.array_utils.byte_bounds(data)
    for weight in loaded.weights.values():
        assert first <= weight.ctypes.data < last and not weight.flags.writeable
    x = torch.randn(4, 6)
    torch.testing.assert_close(torch.from_numpy(loaded(x.numpy())), net()(x))
    for damaged in (data[:-1], data[:100], b"", b"no artifact, though it is long enough for a header"):
        with pytest.raises(pipeline.ArtifactError, match="the artifact: no artifact, or cut short"):
            load_from_memory(damaged)
    changed = data.copy()
    changed[-1] ^= 1
    with pytest.raises(pipeline.ArtifactError, match="damaged"):
        load_from_memory(changed)
