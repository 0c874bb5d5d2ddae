"""Graphs with gradients that ask how a tensor lies in memory whose sizes are not known."""

from __future__ import annotations

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pipeline.errors import PipelineError
from pipeline.frontend.dynamo.backward import Backward
from pipeline.frontend.dynamo.capture import decomposed


def written_by_columns(x):
    """Writes to parts of a tensor that has the strides of one whose last two dims are swapped."""
    columns = (x * 2).transpose(-1, -2).contiguous().transpose(-1, -2)
    result = torch.zeros_like(columns)
    for number in range(x.size(1)):
        result[:, number] = columns[:, number] * x[:, number].sin()
    return result.reshape(x.size(0), -1, x.size(-1))


def chunks_of_a_linear_recurrence(x):
    """As a gated delta rule: chunks of 8 steps, a triangular system for each, of which the solution lies in columns."""
    padded = torch.nn.functional.pad(x, (0, 0, 0, -x.size(1) % 8))
    chunks = padded.reshape(x.size(0), -1, 8, x.size(-1))
    system = (chunks @ chunks.transpose(-1, -2)) * 0.1
    solved = torch.linalg.solve_triangular(system, chunks, upper=False, unitriangular=True)
    result, state = torch.zeros_like(solved), torch.zeros(x.size(0), x.size(-1), x.size(-1))
    for number in range(padded.size(1) // 8):
        change = solved[:, number] - chunks[:, number] @ state
        result[:, number] = chunks[:, number] @ state + change
        state = state * 0.5 + chunks[:, number].transpose(-1, -2) @ change
    return result.reshape(x.size(0), -1, x.size(-1))[:, : x.size(1)]


def assert_same_gradients(function, compiled, x):
    expected, result = function(x), compiled(x)
    weight = torch.randn_like(result)
    (gradient,) = torch.autograd.grad(result, x, weight)
    (reference,) = torch.autograd.grad(expected, x, weight)
    torch.testing.assert_close(gradient, reference, rtol=1e-4, atol=1e-4)


def padded_to_columns(x):
    padded = torch.nn.functional.pad(x, (0, 0, 0, -x.size(1) % 8))
    chunks = padded.reshape(x.size(0), -1, 8, x.size(-1))
    columns = (chunks * 2).transpose(1, 2).contiguous().transpose(1, 2)
    result = torch.zeros_like(columns)
    result[:, :, 0] = columns[:, :, 1]
    return result.reshape(x.size(0), -1) * columns.stride(2)


SIZES = {
    padded_to_columns: [(2, 5, 3), (3, 17, 4)],
    written_by_columns: [(2, 2, 5, 3), (3, 2, 7, 3), (4, 2, 6, 3)],
    chunks_of_a_linear_recurrence: [(2, 5, 3), (3, 7, 3), (2, 4, 3)],
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("function", SIZES)
def test_gradients(function, dynamic, count):
    torch.manual_seed(0)
    compiled = torch.compile(function, backend="pipeline", dynamic=dynamic, options={"fallback": "torch"})
    for size in SIZES[function]:
        assert_same_gradients(function, compiled, (torch.randn(size) * 0.5).requires_grad_())
    assert count["backward in eager"] == 0


@pytest.mark.filterwarnings("ignore:.*PyTorch computes gradients in eager mode")
@pytest.mark.parametrize("function", SIZES)
def test_gradients_that_torch_computes(function, monkeypatch, count):
    """What backward is told of strides is what it was captured with."""

    def refuse(*_):
        raise PipelineError("refused by the test")

    monkeypatch.setattr(Backward, "_part", refuse)
    torch.manual_seed(0)
    compiled = torch.compile(function, backend="pipeline", dynamic=True, options={"fallback": "torch"})
    for size in SIZES[function]:
        assert_same_gradients(function, compiled, (torch.randn(size) * 0.5).requires_grad_())
    assert count["backward in eager"] > 0


def test_strides_are_those_of_capture():
    """Though a decomposition lays out its result row by row."""

    def columns(x):
        return torch.ops.aten.new_empty_strided.default(x, x.shape, [1, x.size(0)])

    module = make_fx(columns, tracing_mode="symbolic")(torch.randn(5, 3))
    output = module.graph.output_node()
    (made,) = output.all_input_nodes
    strides = []
    with module.graph.inserting_before(output):
        for dim in range(2):
            strides.append(module.graph.call_function(torch.ops.aten.sym_stride.int, (made, dim)))
            strides[-1].meta["val"] = made.meta["val"].stride(dim)
    output.args = (strides,)
    module.recompile()
    assert decomposed(module)(torch.randn(7, 4)) == [1, 7]
