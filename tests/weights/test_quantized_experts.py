"""Weights of which a loop takes one part at a time, as layers of experts do: `weights=` rounds them, too."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pipeline
from pipeline.frontend.decompositions.grouped_products import grouped_product
from pipeline.tools.sensitivity import rounded_weight

#: Where the rows of each expert end: none, one, a few, many, and rows of no expert.
ENDS = [0, 1, 5, 40, 40, 43]

LENGTH, COLUMNS = 96, 72


class Experts(nn.Module):
    """A matrix for each group of rows, [experts, columns, length], or in the other order."""

    def __init__(self, dtype: torch.dtype, is_transposed: bool = False):
        super().__init__()
        torch.manual_seed(0)
        weight = torch.randn(len(ENDS), COLUMNS, LENGTH)
        self.weight = nn.Parameter((weight.mT.contiguous() if is_transposed else weight).to(dtype))
        self.is_transposed = is_transposed

    def forward(self, x: Tensor, ends: Tensor) -> Tensor:
        return grouped_product(x, self.weight.mT if self.is_transposed else self.weight, ends)


def rounded(weight: Tensor, dim: int, options: dict[str, Any]) -> Tensor:
    """What products read of a weight that is rounded along a dim."""
    found = rounded_weight(weight.detach().float().numpy(), (dim,), options["weights"], options.get("group"))
    assert found is not None
    return torch.from_numpy(found).double()


def remarks(executable: pipeline.Executable, outcome: str) -> list[str]:
    kept = [remark for remark in executable.remarks if remark.pass_name == "quantize-weights"]
    return [remark.reason for remark in kept if remark.kind == outcome]


@pytest.mark.parametrize(
    "options",
    [{"weights": "int8"}, {"weights": "int8", "group": 32}, {"weights": "int4", "group": 16}, {"weights": "int4"}],
    ids=str,
)
@pytest.mark.parametrize(
    ("dtype", "is_transposed"),
    [(torch.float32, False), (torch.float32, True), (torch.bfloat16, False), (torch.float16, True)],
    ids=str,
)
def test_products(dtype: torch.dtype, is_transposed: bool, options: dict[str, Any]) -> None:
    """Each expert's rows, beside float64 with what is left of the weights."""
    model = Experts(dtype, is_transposed)
    x, ends = torch.randn(44, LENGTH).to(dtype), torch.tensor(ENDS, dtype=torch.int32)
    executable = pipeline.compile(model, (x, ends), fallback="error", **options)
    assert remarks(executable, "missed") == [] and set(remarks(executable, "passed")) == {
        f"reads its weight as {'bytes' if options['weights'] == 'int8' else 'integers of 4 bits'}, "
        f"{options.get('group', 'all')} of a column with one scale"
    }
    weight = rounded(model.weight, 1 if is_transposed else 2, options)
    weight = weight.mT if is_transposed else weight
    for places in (ENDS, [44, 44, 44, 44, 44, 44], [0, 0, 0, 0, 0, 44], [0] * 6):
        ends = torch.tensor(places, dtype=torch.int32)
        exact = grouped_product(x.double(), weight, ends)
        torch.testing.assert_close(executable(x, ends).double(), exact, rtol=1e-5, atol=1e-4)
    packed = model.weight.numel() * (1.0 if options["weights"] == "int8" else 0.5)
    scales = model.weight.numel() // (options.get("group") or LENGTH) * 4
    assert executable.memory.prepared <= 1.02 * (packed + scales) + 1024


def test_data_stays_in_floats() -> None:
    """Products of bytes need panels, in which such weights do not lie."""
    model, x, ends = Experts(torch.float32), torch.randn(44, LENGTH), torch.tensor(ENDS, dtype=torch.int32)
    both = pipeline.compile(model, (x, ends), weights="int8", activations="int8", fallback="error")
    assert torch.equal(both(x, ends), pipeline.compile(model, (x, ends), weights="int8")(x, ends))
    assert not any("data" in reason for reason in remarks(both, "passed"))


def test_weights_that_are_kept_or_change() -> None:
    model, x, ends = Experts(torch.float32), torch.randn(44, LENGTH), torch.tensor(ENDS, dtype=torch.int32)
    kept = pipeline.compile(model, (x, ends), weights="int8", keep=("weight",))
    assert remarks(kept, "passed") == [] and "is to be kept" in remarks(kept, "missed")[0]
    torch.testing.assert_close(kept(x, ends), model(x, ends), rtol=1e-5, atol=1e-4)
    executable = pipeline.compile(model, (x, ends), weights="int8")
    before = executable(x, ends)
    with torch.no_grad():
        model.weight.mul_(2)
    torch.testing.assert_close(executable(x, ends), before * 2)
