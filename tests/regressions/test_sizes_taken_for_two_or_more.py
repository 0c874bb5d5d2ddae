"""torch.export takes no symbolic size for 0 or 1; what it decided by that is asked for at each call."""

import pytest
import torch
from function_model import Function
from torch.export import Dim

import pipeline

SIZES = (0, 1, 2, 3, 4, 5, 9)


def one_row(x):
    return x * 100 if x.shape[0] == 1 else x


def many_rows(x):
    return x if x.shape[0] > 1 else x * 100


def no_rows(x):
    return x.sum(0) - 7 if x.shape[0] == 0 else x.sum(0)


def few_elements(x):
    return x * 2 if x.numel() < 5 else x


MODELS = {
    "if one row": one_row,
    "if many rows": many_rows,
    "if no rows": no_rows,
    "if few elements": few_elements,
    "squeeze": lambda x: x.squeeze() + 1,
    "squeeze of a dim": lambda x: x.squeeze(0) * 2,
    "squeeze of dims": lambda x: x.unsqueeze(1).squeeze((0, 1)) * 2,
    "squeeze of a cat": lambda x: torch.cat([x, x]).squeeze(0),
    "split": lambda x: x.split(2)[-1] * 2,
    "chunk": lambda x: x.chunk(2)[-1] * 2,
    "tensor_split": lambda x: x.tensor_split(2)[-1] * 2,
    "count of parts": lambda x: x * len(x.split(3)),
}


@pytest.mark.parametrize("name", MODELS)
def test_each_call_gives_what_eager_gives_or_is_refused(name):
    model = Function(MODELS[name])
    executable = pipeline.compile(model, (torch.randn(3, 5),), dynamic_shapes=(({0: Dim.AUTO},),))
    accepted = []
    for size in SIZES:
        x = torch.randn(size, 5)
        try:
            result = executable(x)
        except pipeline.PipelineError:  # of the arguments, or a check of the code
            continue
        accepted.append(size)
        torch.testing.assert_close(result, model(x))
    assert 3 in accepted


def test_the_refusal_names_the_line_that_asks():
    executable = pipeline.compile(Function(one_row), (torch.randn(3, 5),), dynamic_shapes=(({0: Dim("rows")},),))
    assert torch.equal(executable(torch.ones(2, 5)), torch.ones(2, 5))
    with pytest.raises(pipeline.ArgumentError, match=r"dimension 0 is 1: not what .*test_sizes_taken.*Ne\(\w+, 1\)"):
        executable(torch.ones(1, 5))


def test_questions_about_layouts_are_no_guards():
    """torch's kernels ask which dims have one element to tell whether a tensor is contiguous."""
    model = torch.nn.MultiheadAttention(16, 2, batch_first=True).eval()
    x = torch.randn(2, 3, 16)
    sizes = {0: Dim("batch"), 1: Dim("length")}
    executable = pipeline.compile(model, (x, x, x), dynamic_shapes=(sizes, sizes, sizes))
    one = torch.randn(1, 1, 16)
    torch.testing.assert_close(executable(one, one, one), model(one, one, one), rtol=1e-5, atol=1e-5)
