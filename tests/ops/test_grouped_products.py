"""Products of groups of rows with a matrix each: `F.grouped_mm`, layers of experts, and their gradients."""

from __future__ import annotations

import pytest
import torch
from dynamo_state import fresh_dynamo
from torch.nn import functional as F

import pipeline
from pipeline.frontend.decompositions.grouped_products import grouped_product

__all__ = ["fresh_dynamo"]

#: Where groups of rows end: empty ones first, in between and last, single rows, many rows, and rows of no group.
ENDS = {
    "of all sizes": [0, 1, 1, 33, 38, 38],
    "all in one": [0, 0, 40, 40, 40, 40],
    "none": [0, 0, 0, 0, 0, 0],
    "rows behind": [3, 4, 9, 9, 9, 20],
}


class Product(torch.nn.Module):
    def forward(self, x, y, ends):
        return grouped_product(x, y, ends)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(("inner", "columns"), [(32, 48), (7, 33), (1, 1)], ids=str)
def test_products(inner, columns, dtype):
    """Of rows, whose matrices lie in either order, and of sums over rows, which are in float32 for 16 bits."""
    torch.manual_seed(0)
    x, y, g = (torch.randn(shape, dtype=dtype) for shape in ((40, inner), (6, columns, inner), (40, columns)))
    forms = {
        "rows": (x, y),
        "rows, matrices in the other order": (x, y.mT.contiguous().mT),
        "sums": (x, g),
    }
    for form, (left, right) in forms.items():
        executable = pipeline.compile(Product(), (left, right, torch.tensor(ENDS["none"], dtype=torch.int32)))
        for name, ends in ENDS.items():
            arguments = left, right, torch.tensor(ends, dtype=torch.int32)
            exact = grouped_product(left.double(), right.double(), arguments[2])
            result = executable(*arguments)
            assert result.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
            places = {"rtol": 1e-5, "atol": 1e-4}
            torch.testing.assert_close(
                result.double(), exact, **places, msg=lambda text, at=(form, name): f"{at}: {text}"
            )


@pytest.mark.parametrize("sizes", [(0, 8, 8, 3), (5, 0, 8, 3), (5, 8, 0, 3), (5, 8, 8, 0)], ids=str)
def test_nothing(sizes):
    rows, inner, columns, groups = sizes
    x, y = torch.randn(rows, inner), torch.randn(groups, columns, inner)
    ends = torch.full((groups,), rows)
    assert torch.equal(pipeline.compile(Product(), (x, y, ends))(x, y, ends), torch.zeros(rows, columns))


def grouped_mm(x, y, ends):
    return F.grouped_mm(x, y, offs=ends)


#: The forms of torch's op, by the dim that has the groups: [S, K] x [E, K, N], [M, S] x [S, N], [E, M, K] x [K, S].
FORMS = {
    "rows": lambda: (torch.randn(40, 16), torch.randn(6, 24, 16).mT),
    "rows, matrices in the other order": lambda: (torch.randn(40, 16), torch.randn(6, 16, 24)),
    "sums": lambda: (torch.randn(40, 16).T, torch.randn(40, 24)),
    "columns": lambda: (torch.randn(6, 24, 16), torch.randn(40, 16).T),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_and_gradients(form):
    """Against products of each group in float64."""
    torch.manual_seed(0)
    x, y = (tensor.bfloat16() for tensor in FORMS[form]())
    ends = torch.tensor([0, 1, 9, 9, 33, 40], dtype=torch.int32)
    begins = [0, *ends[:-1].tolist()]

    def by_group(x, y, ends):
        parts = list(zip(begins, ends.tolist(), strict=True))
        if form == "sums":
            return torch.stack([x[:, begin:end] @ y[begin:end] for begin, end in parts])
        if form == "columns":
            return torch.cat([x[group] @ y[:, begin:end] for group, (begin, end) in enumerate(parts)], 1)
        return torch.cat([x[begin:end] @ y[group] for group, (begin, end) in enumerate(parts)])

    def results(function, dtype):
        leaves = [tensor.to(dtype).requires_grad_() for tensor in (x, y)]
        result = function(*leaves, ends)
        weights = torch.linspace(-1, 1, result.numel(), dtype=torch.float64).reshape(result.shape).bfloat16()
        return [result.detach(), *torch.autograd.grad(result, leaves, weights.to(dtype))]

    ours = results(torch.compile(grouped_mm, backend="pipeline"), torch.bfloat16)
    for result, exact in zip(ours, results(by_group, torch.float64), strict=True):
        assert result.dtype == torch.bfloat16
        torch.testing.assert_close(result.double(), exact, rtol=0.02, atol=0.02 * exact.abs().max().item())


def test_batches_and_symbolic_numbers_of_rows():
    x, y = torch.randn(3, 8, 16).bfloat16(), torch.randn(3, 16, 24).bfloat16()
    compiled = torch.compile(lambda x, y: F.grouped_mm(x, y), backend="pipeline")
    torch.testing.assert_close(compiled(x, y), torch.bmm(x, y))
    by_rows = torch.compile(grouped_mm, backend="pipeline", dynamic=True)
    for rows in (16, 40):
        x, ends = torch.randn(rows, 16).bfloat16(), torch.tensor([2, 2, rows], dtype=torch.int32)
        torch.testing.assert_close(by_rows(x, y, ends), grouped_mm(x, y, ends))


@pytest.mark.parametrize("ends", [[0, 3, 2, 4], [0, 1, 2, 41], [-1, 0, 3, 40]], ids=str)
def test_ends_out_of_order_are_refused(ends):
    x, y = torch.randn(40, 16).bfloat16(), torch.randn(4, 16, 24).bfloat16()
    with pytest.raises(RuntimeError, match="grouped_mm: offs have to ascend from 0 on"):
        torch.compile(grouped_mm, backend="pipeline")(x, y, torch.tensor(ends, dtype=torch.int32))


def test_matrices_are_read_where_they_are():
    """Neither prepared nor copied but for one at a time, in panels, beside which there is the result alone."""

    class Experts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(8, 256, 128), requires_grad=False)

        def forward(self, x, ends):
            return grouped_product(x, self.weight, ends)

    x, ends = torch.randn(96, 128), torch.arange(12, 108, 12)
    executable = pipeline.compile(Experts(), (x, ends))
    assert executable.memory.prepared == 0
    assert executable.memory.workspace <= 4 * (256 * 128 + 96 * 256)
    assert [remark for remark in executable.remarks if remark.pass_name == "pack-operands" and remark.kind == "passed"]
