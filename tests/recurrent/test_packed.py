"""Recurrent nets over packed sequences, which are arguments and results of models."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence
from torch.utils._pytree import tree_leaves

import pipeline

LENGTHS = (3, 7, 1, 5)


def packed(lengths=LENGTHS, is_sorted=False):
    sequences = [torch.randn(length, 5) for length in (sorted(lengths, reverse=True) if is_sorted else lengths)]
    return pack_sequence(sequences, enforce_sorted=is_sorted)


def states(model, count):
    sizes = [model.proj_size or model.hidden_size, model.hidden_size]
    first = [torch.randn(model.num_layers * (1 + model.bidirectional), count, size) for size in sizes]
    return tuple(first) if isinstance(model, nn.LSTM) else first[0]


def agree(executable, model, arguments):
    with torch.no_grad():
        wanted = model(*arguments)
    result = executable(*arguments)
    assert isinstance(result[0], PackedSequence)
    for got, want in zip(tree_leaves(result), tree_leaves(wanted), strict=True):
        if want is None:
            assert got is None
        else:
            torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-6)


FORMS = [
    (nn.LSTM, {"bidirectional": True, "proj_size": 3}, False, True),
    (nn.LSTM, {}, True, False),
    (nn.GRU, {"bidirectional": True}, True, True),
    (nn.GRU, {"bias": False}, False, False),
    (nn.RNN, {"num_layers": 2, "bidirectional": True, "nonlinearity": "relu"}, False, True),
]


@pytest.mark.parametrize(("kind", "options", "is_sorted", "gives_states"), FORMS)
def test_forms(kind, options, is_sorted, gives_states):
    torch.manual_seed(0)
    model = kind(5, 7, **options).eval()
    arguments = (packed(is_sorted=is_sorted), *([states(model, len(LENGTHS))] if gives_states else []))
    executable = pipeline.compile(model, arguments)
    agree(executable, model, arguments)
    other = (packed((7, 1, 1, 7), is_sorted), *arguments[1:])
    agree(executable, model, other)


def test_batch_sizes_that_do_not_fit_are_errors():
    """There are as many states as sequences, and no step reads beyond the rows."""
    torch.manual_seed(0)
    model = nn.GRU(5, 7).eval()
    arguments = packed(is_sorted=True), states(model, 4)
    executable = pipeline.compile(model, arguments)
    for sizes in ([3, 3, 3, 2, 2, 2, 1], [5, 3, 2, 2, 2, 1, 1], [4, 4, 4, 4, 4, 4, 4]):
        wrong = arguments[0]._replace(batch_sizes=torch.tensor(sizes))
        with pytest.raises(pipeline.PipelineError, match="out of range"):
            executable(wrong, arguments[1])


class OfParts(nn.Module):
    """Puts the packed sequence together itself: torch.export takes no symbolic sizes in one."""

    def __init__(self):
        super().__init__()
        self.net = nn.LSTM(5, 7)

    def forward(self, data, batch_sizes, first):
        output, last = self.net(PackedSequence(data, batch_sizes), first)
        return output.data, last


def test_a_symbolic_number_of_rows_and_steps():
    torch.manual_seed(0)
    model = OfParts().eval()
    first = states(model.net, 4)
    sequence = packed(is_sorted=True)
    rows, steps = torch.export.Dim("rows", max=512), torch.export.Dim("steps", max=64)
    shapes = ({0: rows}, {0: steps}, (None, None))
    executable = pipeline.compile(model, (*sequence[:2], first), dynamic_shapes=shapes)
    for lengths in (LENGTHS, (1, 1, 1, 1), (2, 2, 2, 2), (9, 8, 1, 1)):
        arguments = *packed(lengths, True)[:2], first
        with torch.no_grad():
            wanted = model(*arguments)
        for got, want in zip(tree_leaves(executable(*arguments)), tree_leaves(wanted), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-6)
