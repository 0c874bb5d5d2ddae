"""Sums of matrix products, which merge-summed-products makes one product, against eager in float64."""

from __future__ import annotations

import random

import pytest
import torch
from function_model import Function
from torch import nn

import pipeline
from pipeline import mlir
from pipeline.analysis.const_expr import ConstExprs
from pipeline.passes.weight_folding.addition_tree import read_sums, terms


def merged(exe):
    """How many families of products were merged."""
    return sum(1 for one in exe.remarks if one.pass_name == "merge-summed-products" and one.kind == "passed")


def check(function, *args, count=1):
    """Compiles a function in which so many families merge, and compares it with float64."""
    exe = pipeline.compile(Function(function), args)
    assert merged(exe) == count
    exact = function(*(one.double() if one.is_floating_point() else one for one in args))
    tolerance = 1e-12 if args[0].dtype == torch.float64 else 1e-4
    torch.testing.assert_close(exe(*args).double(), exact, atol=tolerance, rtol=tolerance)
    return exe


def product(kind, left, right):
    """One form of a product of [k, m] and [k, n]."""
    return {
        "mm": lambda: left.t() @ right,
        "einsum": lambda: torch.einsum("km,kn->mn", left, right),
        "swapped": lambda: (right.t() @ left).t(),
        "copied": lambda: left.t().contiguous() @ (right * 1),
    }[kind]()


@pytest.mark.parametrize("seed", range(8))
def test_random_sums(seed):
    """Sums of two to nine products of some forms and lengths, and of other terms, in random trees."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    dtype = draw.choice((torch.float32, torch.float64))
    m, n, count = draw.choice((33, 64)), draw.choice((40, 96)), draw.randint(2, 9)
    lengths = [draw.choice((1, 2, 3, 5)) for _ in range(count)]
    kinds = [draw.choice(("mm", "einsum", "swapped", "copied")) for _ in range(count)]
    others = draw.randint(0, 3)
    order = [draw.random() for _ in range(count + others)]
    args = [torch.randn(k, size, dtype=dtype) for k in lengths for size in (m, n)]
    args += [torch.randn(m, n, dtype=dtype) for _ in range(others)]

    def total(*args):
        terms = [product(kind, args[2 * i], args[2 * i + 1]) for i, kind in enumerate(kinds)] + [*args[2 * count :]]
        terms = [term for _, term in sorted(zip(order, terms, strict=True), key=lambda pair: pair[0])]
        while len(terms) > 1:
            place = int(order[len(terms) % len(order)] * (len(terms) - 1))
            terms[place : place + 2] = [terms[place] + terms[place + 1]]
        return terms[0]

    exe = pipeline.compile(Function(total), tuple(args))
    exact = total(*(one.double() for one in args))
    torch.testing.assert_close(exe(*args).double(), exact, atol=1e-4, rtol=1e-4)


def test_batches():
    torch.manual_seed(0)
    a, b, c, d = torch.randn(3, 2, 24), torch.randn(3, 2, 40), torch.randn(3, 5, 24), torch.randn(3, 5, 40)
    check(lambda a, b, c, d: a.mT @ b + c.mT @ d, a, b, c, d)


def test_outer_products_with_data_that_others_read():
    torch.manual_seed(0)

    def both(x, y, z):
        left = x.t() @ y + y.t() @ x
        return left * z.t() + left @ z

    check(both, torch.randn(3, 32), torch.randn(3, 32), torch.randn(32, 32))


def test_a_product_that_is_a_result_too_is_left_alone():
    torch.manual_seed(0)

    def both(a, b):
        first = a.t() @ b
        return torch.stack((first + b.t() @ a, first))

    check(both, torch.randn(2, 32), torch.randn(2, 32), count=0)


def test_products_of_elements_are_none():
    torch.manual_seed(0)
    check(lambda x, y: torch.outer(x[0], y[0]) + torch.outer(x[1], y[1]), torch.randn(2, 9), torch.randn(2, 8), count=0)


def test_more_terms_than_python_recurses():
    add = """%{0} = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}}
        ins(%{1}, %x : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) {{
      ^bb0(%i: f32, %j: f32, %o: f32):
        %s = arith.addf %i, %j : f32
        linalg.yield %s : f32
    }} -> tensor<4xf32>"""
    adds = "\n".join(add.format(number, number - 1 if number else "x") for number in range(1100))
    text = f"""#id = affine_map<(i) -> (i)>
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{ {adds} return %1099 : tensor<4xf32> }}"""
    with mlir.context() as context:
        module = mlir.parse(text, context)
        function = mlir.function(module, "main")
        weights = ConstExprs(function)
        (last,) = read_sums(function, weights)
        assert len(terms(last, weights)) == 1101


@pytest.mark.parametrize("inner", [0, 1])
def test_sums_of_no_and_of_one_element(inner):
    a, b = torch.randn(inner, 16), torch.randn(inner, 24)
    check(lambda a, b: a.t() @ b + (a + 1).t() @ b, a, b, count=inner)


def test_in_branches():
    torch.manual_seed(0)

    def choose(a, b):
        return torch.cond(a.sum() > 0, lambda a, b: a.t() @ b + b.t() @ a, lambda a, b: a.t() @ b, (a, b))

    args = torch.randn(2, 32), torch.randn(2, 32)
    exe = pipeline.compile(Function(choose), args)
    for a in (args[0], -args[0]):
        torch.testing.assert_close(exe(a, args[1]), choose(a, args[1]), atol=1e-5, rtol=1e-5)


def test_gradient_of_a_cell():
    """The weights of a cell are used at each step; their gradients are one product each."""
    torch.manual_seed(0)
    cell, x = nn.LSTMCell(24, 64), torch.randn(5, 9, 24)

    def forward(x):
        state = None
        for step in x.unbind(1):
            state = cell(step, state)
        return state[0]

    compiled = torch.compile(forward, backend="pipeline")
    gradients = []
    for function in (forward, compiled):
        cell.zero_grad()
        function(x).square().sum().backward()
        gradients.append([parameter.grad.clone() for parameter in cell.parameters()])
    for expected, found in zip(*gradients, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    assert [merged(exe) for exe in pipeline.executables(compiled)] == [0, 2]
