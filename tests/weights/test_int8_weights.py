"""`weights="int8"`: how far results are off, what is kept, and what is left alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pipeline


def said(executable: pipeline.Executable, kind: str) -> list[str]:
    """What quantize-weights did, or why it did not."""
    found = [remark for remark in executable.remarks if remark.pass_name == "quantize-weights"]
    return [remark.reason for remark in found if remark.kind == kind]


def bound(weight: torch.Tensor, x: torch.Tensor, group: int | None) -> torch.Tensor:
    """How far x @ weight.T may be off: half a step for each weight, and what adding up in f32 rounds."""
    groups = weight.unflatten(1, (-1, group or weight.shape[1]))
    half = (groups.abs().amax(2, keepdim=True) / 254).expand_as(groups).flatten(1)
    return x.double().abs() @ half.double().T * 1.0001 + 1e-5 * (x.double().abs() @ weight.double().abs().T)


@pytest.mark.parametrize("group", [None, 16, 64])
@pytest.mark.parametrize("size", [(1, 256, 512), (3, 192, 70), (37, 128, 96), (2, 320, 33)], ids=str)
def test_results_are_off_by_half_a_step_of_each_weight(size: tuple[int, int, int], group: int | None) -> None:
    rows, length, columns = size
    torch.manual_seed(0)
    model, x = nn.Linear(length, columns), torch.randn(rows, length)
    executable = pipeline.compile(model, (x,), num_threads=1, weights="int8", group=group)
    assert said(executable, "passed") == [f"reads its weight as bytes, {group or 'all'} of a column with one scale"]
    with torch.no_grad():
        exact = x.double() @ model.weight.double().T + model.bias.double()
        assert ((executable(x) - exact).abs() <= bound(model.weight, x, group)).all()
        assert (executable(x) - exact).abs().max() > 1e-6  # it is quantized


def test_columns_of_zeros_and_large_weights() -> None:
    model, x = nn.Linear(128, 64, bias=False), torch.randn(2, 128)
    with torch.no_grad():
        model.weight[3] = 0
        model.weight[5] *= 1e30
    executable = pipeline.compile(model, (x,), weights="int8")
    exact = (x.double() @ model.weight.double().T).detach()
    got = executable(x)
    assert (got[:, 3] == 0).all() and torch.isfinite(got).all()
    assert ((got - exact).abs() <= bound(model.weight, x, None)).all()


def test_a_quarter_of_the_weight_is_kept() -> None:
    model, x = nn.Linear(1024, 1024, bias=False), torch.randn(1, 1024)
    executable = pipeline.compile(model, (x,), num_threads=1, weights="int8", group=128)
    executable(x)
    assert executable.memory.prepared <= 1.04 * model.weight.numel()


def test_weights_that_change_are_quantized_again() -> None:
    model, x = nn.Linear(128, 64, bias=False), torch.randn(2, 128)
    executable = pipeline.compile(model, (x,), weights="int8")
    with torch.no_grad():
        model.weight.mul_(-2)
    exact = (x.double() @ model.weight.double().T).detach()
    assert ((executable(x) - exact).abs() <= bound(model.weight, x, None)).all()


def test_groups_that_do_not_come_out_even() -> None:
    model, x = nn.Linear(100, 64), torch.randn(2, 100)
    executable = pipeline.compile(model, (x,), weights="int8", group=32)
    assert said(executable, "missed") == ["its weight is not quantized: groups of 32 do not divide its 100 rows"]
    torch.testing.assert_close(executable(x), model(x))


def test_small_weights_convolutions_and_data_are_left() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.head = nn.Conv2d(8, 64, 3), nn.Linear(64, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.conv(x).flatten(2)
            return self.head((y @ y.transpose(1, 2)).mean(2))

    model, x = Mixed().eval(), torch.randn(1, 8, 7, 7)
    executable = pipeline.compile(model, (x,), weights="int8")
    assert not said(executable, "passed")
    assert said(executable, "missed") == [
        "its weight stays as it is: it is multiplied in no product of two matrices",
        "its weight is not quantized: it has 1024 bytes, fewer than 16384",
    ]
    torch.testing.assert_close(executable(x), model(x), rtol=1e-5, atol=1e-5)


def test_torch_compile_takes_the_option() -> None:
    model, x = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 64)).eval(), torch.randn(3, 128)
    compiled = torch.compile(model, backend="pipeline", options={"weights": "int8"})
    with torch.no_grad():
        got, exact = compiled(x), model(x)
    assert 1e-6 < (got - exact).abs().max() < 0.05 * exact.abs().max()


def test_attention_with_a_loop_around_it() -> None:
    """Weights are quantized once, not in each round."""

    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(128, 128)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            def body(i: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
                return i + 1, self.linear(y).tanh()

            return torch.while_loop(lambda i, y: i < 5, body, (torch.tensor(0), x))[1]

    model, x = Loop().eval(), torch.randn(2, 128)
    executable = pipeline.compile(model, (x,), weights="int8")
    assert said(executable, "passed")
    assert "math.roundeven" not in executable.ir("kernels").split("func.func @main")[1]
    with torch.no_grad():
        assert (executable(x) - model(x)).abs().max() < 0.05
