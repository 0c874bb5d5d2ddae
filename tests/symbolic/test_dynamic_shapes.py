"""`dynamic_shapes` in every form that torch.export takes."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import AdditionalInputs, Dim, ShapesCollection

import pipeline
from pipeline.runtime.call.symbolic_sizes import solve

B, T = Dim("b", max=50), Dim("t", max=50)


class Sums(nn.Module):
    """Takes a tensor, perhaps another one, and perhaps some in containers."""

    def forward(self, x, y=None, *, more=None):
        total = x.sum(1) * 2
        if y is not None:
            total = total + y.sum()
        if more is not None:
            total = total + more["a"].sum() + more["b"][0].sum()
        return total


X = torch.randn(3, 5)


def collection() -> ShapesCollection:
    shapes = ShapesCollection()
    shapes[X] = (B, T)
    return shapes


def additional() -> AdditionalInputs:
    inputs = AdditionalInputs()
    inputs.add((torch.randn(4, 6),))
    inputs.add((torch.randn(9, 7),))
    return inputs


FORMS = {
    "dicts by position": ({0: B, 1: T},),
    "lists": ([B, T],),
    "by name": {"x": {0: B, 1: T}},
    "auto": ({0: Dim.AUTO, 1: Dim.AUTO},),
    "tuples of kinds": ((Dim.DYNAMIC, Dim.AUTO),),
    "with hints": ({0: Dim.DYNAMIC(max=40), 1: Dim.AUTO(max=40)},),
    "collection": collection,
    "additional inputs": additional,
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    """Every form gives one executable for all sizes, 0 and 1 included."""
    shapes = FORMS[form]
    executable = pipeline.compile(Sums(), (X,), dynamic_shapes=shapes() if callable(shapes) else shapes)
    for size in ((3, 5), (1, 1), (2, 1), (7, 2), (0, 4)):
        x = torch.randn(size)
        torch.testing.assert_close(executable(x), Sums()(x), rtol=1e-5, atol=1e-5)


def test_static() -> None:
    """Dim.STATIC and numbers are sizes that stay."""
    executable = pipeline.compile(Sums(), (X,), dynamic_shapes=({0: Dim.STATIC, 1: Dim.DYNAMIC},))
    executable(torch.randn(3, 9))
    with pytest.raises(pipeline.ArgumentError, match="expected float32"):
        executable(torch.randn(2, 9))


def test_containers() -> None:
    """Containers of the arguments are containers of shapes."""
    more = {"a": torch.randn(4, 3), "b": (torch.randn(3),)}
    shapes = {"x": {0: B}, "more": {"a": {0: T}, "b": ({0: None},)}}
    executable = pipeline.compile(Sums(), (X,), {"more": more}, dynamic_shapes=shapes)
    call = {"more": {"a": torch.randn(9, 3), "b": (torch.randn(3),)}}
    x = torch.randn(2, 5)
    torch.testing.assert_close(executable(x, **call), Sums()(x, **call))


@pytest.mark.parametrize(
    ("y", "shapes", "sizes"),
    [
        (10, ({0: B, 1: T}, {0: 2 * T}), [(2, 3, 6), (1, 1, 2), (4, 0, 0)]),
        (6, ({0: B, 1: T}, {0: T + 1}), [(2, 3, 4), (1, 1, 2)]),
    ],
)
def test_derived(y: int, shapes, sizes) -> None:
    """Sizes that are expressions in others are checked against those."""
    executable = pipeline.compile(Sums(), (X, torch.randn(y)), dynamic_shapes=shapes)
    for rows, columns, length in sizes:
        arguments = (torch.randn(rows, columns), torch.randn(length))
        torch.testing.assert_close(executable(*arguments), Sums()(*arguments), rtol=1e-5, atol=1e-5)
    with pytest.raises(pipeline.ArgumentError, match="argument y: dimension 0 is 1, expected .* = "):
        executable(torch.randn(2, 3), torch.randn(1))


def test_derived_alone() -> None:
    """A symbol that no size is by itself is solved for."""
    executable = pipeline.compile(Sums(), (torch.randn(3, 10),), dynamic_shapes=({0: B, 1: 2 * T},))
    for size in ((2, 4), (0, 2), (1, 100)):
        x = torch.randn(size)
        torch.testing.assert_close(executable(x), Sums()(x), rtol=1e-5, atol=1e-5)
    with pytest.raises(pipeline.ArgumentError, match="dimension 1 is 5, expected .* for a whole number"):
        executable(torch.randn(2, 5))
    with pytest.raises(pipeline.ArgumentError, match="dimension 1 is 51, expected 0 to 50"):
        executable(torch.randn(2, 102))


@pytest.mark.parametrize(
    ("expression", "value", "known", "solved"),
    [
        ("2*s0 + 1", 9, {}, ("s0", 4)),
        ("2*s0", 9, {}, None),
        ("s1*s0", 9, {"s1": 3}, ("s0", 3)),
        ("s1*s0", 9, {}, None),
        ("s1*s0", 0, {"s1": 0}, None),
        ("s0**2", 10, {}, None),
        ("8//(s0 - 1)", 4, {}, None),
    ],
)
def test_solve(expression: str, value: int, known: dict[str, int], solved: tuple[str, int] | None) -> None:
    """An expression gives its one unknown symbol if it is linear in it."""
    assert solve(expression, value, known) == solved


@torch.no_grad()
def test_attention_under_torch_compile() -> None:
    """torch.compile(dynamic=True) takes the same way."""
    torch.manual_seed(0)
    model = nn.MultiheadAttention(16, 2, batch_first=True)  # in eval() torch takes a kernel of its own
    compiled = torch.compile(lambda x: model(x, x, x)[0], backend="pipeline", dynamic=True)
    for size in ((3, 9), (4, 5), (2, 30)):
        x = torch.randn(*size, 16)
        torch.testing.assert_close(compiled(x), model(x, x, x)[0], rtol=1e-4, atol=1e-5)


def test_a_model_is_exported_again_for_sizes_that_became_numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its bytecode, which keeps them; what the model says of sizes that stay symbolic is no reason."""
    original, strict = torch.export.export, list[bool]()

    def export(*args, **options):
        strict.append(options["strict"])
        return original(*args, **options)

    def sum_of_equals(x, y):
        return x + y if x.shape[0] == y.shape[0] else x

    def last(x):
        return x[x.new_tensor([x.shape[0] - 1], dtype=torch.int64)]

    monkeypatch.setattr(torch.export, "export", export)
    rows = {0: Dim.AUTO}
    compiled = pipeline.compile(sum_of_equals, (X, X + 1), dynamic_shapes=(rows, rows), cache=False)
    assert strict == [False]
    torch.testing.assert_close(compiled(torch.ones(7, 5), torch.ones(7, 5)), torch.full((7, 5), 2.0))
    strict.clear()
    compiled = pipeline.compile(last, (X,), dynamic_shapes=(rows,), cache=False)
    assert strict == [False, True]
    other = torch.randn(7, 5)
    assert torch.equal(compiled(other), other[-1:])
