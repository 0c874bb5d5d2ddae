"""Concatenations: in the kernels that read them, made of slices, and left to their places, all equal to eager."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from function_model import Function
from fusion.support import calls, compiled

import pipeline


def rotated(x, y):
    half = x.shape[-1] // 2
    return x * y + torch.cat((-x[..., half:], x[..., :half]), -1) * (1 + y)


def normalized(x, y):
    both = torch.cat((x + 1, y * 2), -1)
    return F.layer_norm(both, both.shape[-1:])


def nested(x, y):
    return torch.cat((torch.cat((x.sin(), y), 0), torch.cat((y, x * 3), 0)), 1).relu()


#: What is computed, and the kernels that run for it.
KERNELS = {
    "rotary halves": (rotated, ["fused_neg_concat_add_mul_mul_add"]),
    "the first dimension": (lambda x, y: torch.cat((x + 1, y * 2), 0).tanh(), ["fused_add_mul_concat_tanh"]),
    "before a norm": (normalized, ["fused_add_mul_concat_layer_norm"]),
    "before a softmax": (lambda x, y: torch.softmax(torch.cat((x * 2, y), -1), -1), ["fused_mul_concat_softmax"]),
    "read twice": (lambda x, y: (lambda c: (c.exp(), c.sum(-1)))(torch.cat((x, -y), -1)), None),
    "one in another": (nested, ["fused_sin_concat_mul_concat_relu"]),
    "a difference": (lambda x, y: torch.diff(x, prepend=y[..., :1]).abs(), ["fused_concat_sub_abs"]),
    "slices of it": (lambda x, y: torch.cat((x[..., 1:], y), -1)[..., 2:].exp(), ["fused_concat_exp"]),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_concatenation_is_in_the_kernel_that_reads_it(name):
    function, kernels = KERNELS[name]
    torch.manual_seed(0)
    exe = compiled(Function(function), torch.randn(6, 8), torch.randn(6, 8))
    assert kernels is None or calls(exe) == kernels


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("shape", [(1, 4), (3, 6), (5, 34), (17, 66), (2, 3, 130)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_equals_eager(name, shape, dtype):
    torch.manual_seed(1)
    x, y = (torch.randn(shape).to(dtype) for _ in range(2))
    compiled(Function(KERNELS[name][0]), x, y)


@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (1, 1), (1, 16, 1), (5, 7, 9)])
@pytest.mark.parametrize("dim", [0, 1])
def test_parts_of_any_size(sizes, dim):
    torch.manual_seed(2)
    parts = [torch.randn((size, 5) if dim == 0 else (5, size)) for size in sizes]
    compiled(Function(lambda *parts: torch.cat([part * 2 for part in parts], dim).sigmoid()), *parts)


def test_integers_and_the_same_part_twice():
    x = torch.arange(12).reshape(3, 4)
    exe = compiled(Function(lambda x: torch.cat((x, x + 1, x), 1) * 2), x)
    assert calls(exe) == ["fused_add_concat_mul"]


def test_rows_that_are_too_long_are_put_in_their_places():
    x, y = torch.randn(2, 5000), torch.randn(2, 5000)
    exe = compiled(Function(lambda x, y: torch.cat((x + 1, y * 2), 1).tanh()), x, y)
    assert calls(exe) == ["add_0", "mul_0", "tanh_0"]
    missed = [remark for remark in exe.remarks if remark.pass_name == "form-groups" and remark.key == "cost"]
    assert len(missed) == 2 and "a row of the concatenation has 40000 bytes" in missed[0].reason


def test_a_concatenation_that_is_a_result_is_put_in_its_place():
    exe = compiled(Function(lambda x, y: (lambda c: (c, c.exp()))(torch.cat((x + 1, y), 1))), *torch.randn(2, 4, 4))
    assert "concat" not in "".join(calls(exe))


def test_dynamic_sizes_equal_eager():
    def function(x, y):
        return torch.cat((x + 1, y * 2), 1).tanh()

    rows = torch.export.Dim("rows", max=64)
    shapes = {"args": ({0: rows}, {0: rows})}
    exe = pipeline.compile(Function(function), (torch.randn(4, 3), torch.randn(4, 5)), dynamic_shapes=shapes)
    for count in (0, 1, 7, 64):
        x, y = torch.randn(count, 3), torch.randn(count, 5)
        torch.testing.assert_close(exe(x, y), function(x, y))


def test_positions_cost_no_kernels():
    def masked(scores):
        position = torch.arange(scores.shape[-1])
        return scores.masked_fill(position[None, :] > position[:, None], float("-inf"))

    exe = compiled(Function(masked), torch.randn(3, 9, 9))
    assert len(calls(exe)) == 1


def test_positions_of_a_table_are_not_checked():
    table = torch.randn(20, 4)
    exe = compiled(Function(lambda x: x + table[torch.arange(16)]), torch.randn(16, 4))
    assert len(calls(exe)) == 1 and "scf.if" not in exe.ir("kernels")


def test_positions_beyond_a_table_still_fail():
    class Beyond(torch.nn.Module):
        def forward(self, x, start):
            return x[torch.arange(4) + start]

    exe = pipeline.compile(Beyond(), (torch.randn(6, 2), torch.tensor(2)))
    x = torch.randn(6, 2)
    torch.testing.assert_close(exe(x, torch.tensor(2)), x[2:6])
    with pytest.raises(pipeline.PipelineError, match="index out of range"):
        exe(x, torch.tensor(3))
