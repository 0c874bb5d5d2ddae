"""Sequences that are packed and padded again inside of a model, by lengths that are arguments."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence
from torch.utils._pytree import tree_leaves

import pipeline


class Tagger(nn.Module):
    """What one types: an embedding, packed for a recurrent net, whose outputs are padded for a linear layer."""

    def __init__(self, net, is_sorted=False, batch_first=True, whole=False, **options):
        super().__init__()
        self.embed = nn.Embedding(20, 5)
        self.net = net(5, 7, batch_first=batch_first, **options)
        self.head = nn.LazyLinear(3)
        self.is_sorted, self.batch_first, self.whole = is_sorted, batch_first, whole

    def forward(self, x, lengths):
        sequence = pack_padded_sequence(self.embed(x), lengths, self.batch_first, self.is_sorted)
        sequence, last = self.net(sequence)
        total = x.shape[int(self.batch_first)] if self.whole else None
        output, lengths = pad_packed_sequence(sequence, self.batch_first, total_length=total)
        return self.head(output), lengths, last


FORMS = {
    "lstm": {"net": nn.LSTM},
    "sorted": {"net": nn.LSTM, "is_sorted": True},
    "as long as before": {"net": nn.LSTM, "whole": True},
    "steps first": {"net": nn.LSTM, "batch_first": False},
    "projected": {"net": nn.LSTM, "proj_size": 4},
    "both directions, two layers": {"net": nn.GRU, "bidirectional": True, "num_layers": 2},
    "rnn, sorted": {"net": nn.RNN, "is_sorted": True, "whole": True},
}


def made(name):
    torch.manual_seed(0)
    model = Tagger(**FORMS[name]).eval()
    model(*arguments(model, 9, [9, 6, 2]))
    return model


def arguments(model, steps, lengths):
    """Those with the longest sequence first, or last where that is allowed."""
    x = torch.randint(0, 20, (len(lengths), steps))
    return x if model.batch_first else x.T, torch.tensor(lengths if model.is_sorted else lengths[::-1])


def assert_eagers(executable, model, given):
    for result, expected in zip(tree_leaves(executable(*given)), tree_leaves(model(*given)), strict=True):
        assert result.dtype == expected.dtype
        torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", FORMS)
@torch.no_grad()
def test_lengths_that_the_data_say(name):
    model = made(name)
    executable = pipeline.compile(model, arguments(model, 9, [9, 6, 2]))
    for lengths in ([9, 6, 2], [9, 9, 9], [5, 3, 1], [1, 1, 1], [8, 2, 2]):
        assert_eagers(executable, model, arguments(model, 9, lengths))
    for lengths in ([9, 6, 0], [10, 6, 2]):
        with pytest.raises(pipeline.PipelineError):
            executable(*arguments(model, 9, lengths))
    if model.is_sorted:
        with pytest.raises(pipeline.PipelineError, match="decreasing order"):
            executable(arguments(model, 9, [9, 6, 2])[0], torch.tensor([2, 6, 9]))


@pytest.mark.parametrize("name", ["lstm", "sorted", "as long as before", "both directions, two layers"])
@torch.no_grad()
def test_a_symbolic_batch_and_length(name):
    model, batch, steps = made(name), Dim("batch", max=64), Dim("steps", max=64)
    shapes = ({0: batch, 1: steps}, {0: batch})
    executable = pipeline.compile(model, arguments(model, 9, [9, 6, 2]), dynamic_shapes=shapes)
    for count, lengths in ((9, [9, 6, 2]), (5, [5, 4, 3, 3, 1]), (12, [9, 1]), (3, [3]), (1, [1, 1]), (4, [2, 2])):
        assert_eagers(executable, model, arguments(model, count, lengths))


class OfRows(nn.Module):
    """Computes with the rows of a packed sequence, and gives them to the caller."""

    def forward(self, x, lengths):
        sequence = pack_padded_sequence(x, lengths, enforce_sorted=False)
        sequence = PackedSequence(sequence.data.tanh(), *sequence[1:])
        return (
            sequence.data.sum(0),
            sequence.data,
            sequence.batch_sizes,
            pad_packed_sequence(sequence, padding_value=-2),
        )


class OfSequences(nn.Module):
    """Packs tensors of several lengths, which are known."""

    def __init__(self):
        super().__init__()
        self.net = nn.GRU(5, 7)

    def forward(self, *sequences):
        return pad_packed_sequence(self.net(pack_sequence(sequences, enforce_sorted=False))[0])


def test_rows_are_there_once():
    model = OfRows()
    executable = pipeline.compile(model, (torch.randn(6, 3, 5), torch.tensor([2, 6, 3])))
    for lengths in ([2, 6, 3], [1, 1, 1], [6, 6, 6], [4, 1, 2]):
        assert_eagers(executable, model, (torch.randn(6, 3, 5), torch.tensor(lengths)))


@torch.no_grad()
def test_lengths_that_are_known():
    torch.manual_seed(0)
    model = OfSequences().eval()
    sequences = [torch.randn(length, 5) for length in (3, 7, 1)]
    assert_eagers(pipeline.compile(model, tuple(sequences)), model, sequences)
