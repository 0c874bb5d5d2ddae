"""Writes in place, through views and masks, to inputs; odd layouts of inputs; results that are no new tensors."""

import pytest
import torch
from function_model import Function
from numerics import ALL, INTEGERS, check, name

import pipeline


def numbers(*shape, dtype=torch.float32):
    return torch.arange(-3, torch.Size(shape).numel() - 3).reshape(shape).to(dtype)


def add_in_place(x):
    x.add_(1)


def add_and_return(x):
    return x.add_(1)


def mask_assign(x):
    v = x.view(2, 6)
    v[v > 1] = 5
    return x


def mask_assign_unflattened(x):
    v = x.unflatten(0, (2, 2))
    v[v > 1] = 5
    return v * 2


def mask_assign_tensor(x):
    x[x > 1] = x[0, 0] + 7
    return x


def step_then_diagonal(x):
    x[::2].mul_(3)
    x.diagonal().zero_()
    return x + 1


def slices(x):
    x[1:3, :2] = x[0:2, 1:].clone()
    x[-1] += 2
    x[:, 0] = 9
    return x.sum()


def fill_and_copy(x):
    y = torch.empty_like(x).fill_(2)
    y[1].copy_(x[0])
    return y


def alias(x):
    y = x.view(-1)
    y += 1
    return x * y.view(x.shape)


def transposed_write(x):
    x.t().add_(torch.arange(4.0).to(x.dtype))
    return x


def index_assign(x):
    x[torch.tensor([0, 2])] = 1
    x[torch.tensor([1]), torch.tensor([-1])] = 4
    return x


def index_add(x):
    return x.index_add_(0, torch.tensor([0, 0, 3]), x[:3].clone())


def scatter_after_topk(x):
    _, places = x.topk(2, dim=-1)
    return torch.zeros_like(x).scatter_(-1, places, 1)


def squeeze_in_place(x):
    y = x.unsqueeze(0)
    y.squeeze_(0)
    y.mul_(2)
    return y


def chunks(x):
    for part in x.chunk(2, dim=1):
        part.mul_(part.sum())
    return x


def zero(x):
    x.zero_()
    return x


WRITES = [
    add_in_place,
    add_and_return,
    mask_assign,
    mask_assign_unflattened,
    mask_assign_tensor,
    step_then_diagonal,
    slices,
    fill_and_copy,
    alias,
    transposed_write,
    index_assign,
    index_add,
    scatter_after_topk,
    squeeze_in_place,
    chunks,
    zero,
]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int64, torch.bfloat16, torch.float32], ids=name)
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_writes(write, dtype):
    check(Function(write), numbers(4, 3, dtype=dtype))


LAYOUTS = {
    "transposed": lambda x: x.t(),
    "strided": lambda x: x[::2, ::2],
    "offset": lambda x: x[1:, 1:],
    "expanded": lambda x: x[:1].expand(5, -1),
    "empty": lambda x: x[:0],
    "one element": lambda x: x[:1, :1],
    "scalar": lambda x: x[0, 0],
    "flipped": lambda x: x.flip(0),
}


@pytest.mark.parametrize("dtype", ALL, ids=name)
def test_layouts_of_inputs(dtype):
    base = numbers(4, 6, dtype=dtype)
    inputs = tuple(change(base) for change in LAYOUTS.values())
    check(Function(lambda *args: [(x == x.clone(), x.to(torch.float32).sum(), x.clone()) for x in args]), *inputs)


def test_write_to_a_transposed_input():
    check(Function(add_and_return), numbers(4, 3).t())


def test_the_same_tensor_twice_among_inputs():
    x = numbers(2, 3)
    check(Function(lambda a, b: a + b), x, x)


def test_the_same_tensor_twice_as_example_and_different_ones_at_the_call():
    x, y = numbers(2, 3), numbers(2, 3) * 2
    executable = pipeline.compile(Function(lambda a, b: a - b), (x, x))
    assert torch.equal(executable(x, y), x - y)


def test_repeated_and_passed_through_results():
    check(Function(lambda x, n: {"x": x, "again": [x, x], "y": (x + n,) * 2, "view": x.t(), "n": n}), numbers(2, 3), 3)


def test_none_and_constants_among_inputs_and_results():
    def function(x, nothing, flag, number, word):
        return x * number if flag else x, nothing, flag, number, word, None, 3, 2.5, "text", True

    check(Function(function), numbers(2, 3), None, True, 2.5, "word")


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (1,), (1, 1), ()], ids=str)
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32], ids=name)
def test_small_sizes(shape, dtype):
    def function(x):
        results = [
            x + x,
            x.sum(),
            x.any(),
            x.all(),
            torch.cat([x.flatten(), x.flatten()]),
            x.flip(list(range(x.dim()))),
        ]
        results += [x.reshape(-1), x.clone(), x == x, torch.where(x > 0, x, x), x.unsqueeze(0).expand(2, *x.shape)]
        if x.dim():
            results += [
                x.sum(-1),
                x.cumsum(0),
                x.sort(stable=True)[0],
                x[:0],
                torch.stack([x, x]),
                x.softmax(-1, dtype=torch.float32),
            ]
        if x.dim() == 2:
            results += [x.float() @ x.float().t(), x.float().t() @ x.float(), x.tril(), x.t()]
        return results

    check(Function(function), torch.ones(shape, dtype=dtype))


def test_products_without_terms_in_a_loop():
    def function(x, y):
        total = torch.zeros(2, 3)
        for _ in range(3):
            total = total + x @ y
        return total

    check(Function(function), torch.ones(2, 0), torch.ones(0, 3))


@pytest.mark.parametrize("dtype", INTEGERS, ids=name)
def test_sums_wrap_around(dtype):
    info = torch.iinfo(dtype)
    x = torch.tensor([info.max, info.min, info.max], dtype=dtype)
    check(Function(lambda x: (x + x, x * x, x - 1 - x * 3, x.sum(dtype=x.dtype), x.prod(dtype=x.dtype))), x)


def test_topk_of_many_elements():
    x = torch.randn(50_000, generator=torch.Generator().manual_seed(0))
    check(Function(lambda x: tuple(x.topk(20))), x)
