"""What a product of matrices is added to has its sizes, or sizes of 1: anything else is an error, as in eager."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from function_model import Function

import pipeline

#: The op on (added, a, b), and the shapes of a and b.
OPS = {
    "addmm": (torch.addmm, (2, 3), (3, 4)),
    "linear": (lambda bias, x, weight: F.linear(x, weight, bias), (2, 3), (4, 3)),
    "baddbmm": (torch.baddbmm, (2, 2, 3), (2, 3, 4)),
    "addmv": (torch.addmv, (4, 3), (3,)),
}

SHAPES = ((), (1,), (4,), (0,), (3,), (1, 4), (2, 1), (2, 4), (3, 4), (2, 3), (2, 2, 4), (1, 2, 4), (3, 2, 4))


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("ones", [False, True])
def test_it_lines_up_or_is_refused(name, ones):
    op, *shapes = OPS[name]
    if ones:  # a product of one element, which would be repeated
        shapes = [tuple(1 for _ in shape) for shape in shapes]
    model, taken = Function(op), 0
    for shape in SHAPES:
        arguments = torch.randn(shape), *map(torch.randn, shapes)
        try:
            expected = model(*arguments)
        except RuntimeError:
            with pytest.raises(pipeline.PipelineError):
                pipeline.compile(model, arguments)(*arguments)
            continue
        taken += 1
        torch.testing.assert_close(pipeline.compile(model, arguments)(*arguments), expected)
    assert taken
