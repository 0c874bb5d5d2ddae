"""Whatever a model does: it gives what eager gives, or is refused with an error of ours of one line."""

from __future__ import annotations

import pytest
import torch
from odd_functions import FUNCTIONS, LINES

import pipeline

ODD = {**{function.__name__: function for function in FUNCTIONS}, **LINES}

#: torch.export captures none of these, or there is nothing to capture.
REFUSED = {
    *("raises", "loops_on_values", "a branch on a number", "numpy", "a set"),
    *("an address", "a copy", "an extreme of nothing", "shapes that do not fit", "a place outside"),
    *("a computed place outside", "division by 0", "nested tensors", "masked tensors", "equality", "membership"),
    "one hot",
}


@pytest.mark.parametrize("name", ODD)
def test_as_eager_or_refused(name):
    x = torch.linspace(-1, 2, 12).reshape(3, 4)
    try:
        found = pipeline.compile(ODD[name], (x.clone(),), fallback="torch")(x.clone())
    except pipeline.PipelineError as error:
        assert name in REFUSED, error
        assert "\n" not in str(error).strip()
    else:
        assert name not in REFUSED
        torch.testing.assert_close(found, ODD[name](x.clone()), equal_nan=True)
