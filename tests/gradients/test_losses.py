"""The losses that models are trained with, in one graph: values and gradients are eager's."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import pipeline

LABELS = torch.arange(7) % 5
SOME_LABELS = torch.tensor([0, 1, 2, -100, 4, 3, -100])
WEIGHTS = torch.arange(1.0, 6.0).double()
PLACES = torch.tensor([[0, 2, -1, 3, 4], [1, -1, 0, 0, 0]] * 3 + [[4, 3, 2, 1, 0]])
TEXTS, LENGTHS = torch.tensor([[1, 2], [3, 3], [4, 0]]), torch.tensor([2, 2, 1])


def losses(logits, other, labels, some_labels, weights, places, texts, lengths):
    """Of logits [7, 5], and of others of their shape; of sequences [7, 3, 5] for CTC."""
    chances, likely = other.sigmoid(), other.softmax(-1)
    sequences = torch.stack((logits, other, logits * other), 1).log_softmax(-1)
    return torch.stack([
        F.cross_entropy(logits, labels),
        F.cross_entropy(logits, labels, label_smoothing=0.1),
        F.cross_entropy(logits, some_labels, weights, label_smoothing=0.2),
        F.cross_entropy(logits, likely),
        F.nll_loss(logits.log_softmax(-1), some_labels, weights, reduction="sum"),
        F.nll_loss(logits[0].log_softmax(0), labels[0]),
        F.cross_entropy(logits.t()[None], labels[None]),
        F.cross_entropy(logits.reshape(1, 5, 1, 7), labels.reshape(1, 1, 7), weights, ignore_index=2),
        F.cross_entropy(logits, labels, weights, ignore_index=0, reduction="none").dot(other[:, 0]),
        F.mse_loss(logits, other),
        F.l1_loss(logits, other),
        F.smooth_l1_loss(logits, other, beta=0.5),
        F.huber_loss(logits, other, delta=0.3),
        F.binary_cross_entropy(logits.sigmoid(), chances),
        F.binary_cross_entropy_with_logits(logits, chances, weights, pos_weight=weights),
        F.kl_div(logits.log_softmax(-1), likely, reduction="batchmean"),
        F.gaussian_nll_loss(logits, other, chances),
        F.poisson_nll_loss(logits, chances),
        F.multi_margin_loss(logits, labels),
        F.multilabel_margin_loss(logits, places),
        F.multilabel_soft_margin_loss(logits, chances.round()),
        F.soft_margin_loss(logits, other.detach().sign()),
        F.hinge_embedding_loss(logits, other.sign()),
        F.triplet_margin_loss(logits, other, other.flip(0)),
        F.cosine_embedding_loss(logits, other, labels.double().sign() * 2 - 1),
        F.ctc_loss(sequences, texts, torch.full((3,), 7), lengths),
        F.ctc_loss(sequences, texts, (7, 6, 5), (2, 2, 1), reduction="sum", zero_infinity=True),
    ])  # fmt: skip


def test_gradients_of_each(count):
    torch.manual_seed(0)
    logits, other = (torch.randn(7, 5).double().requires_grad_() for _ in range(2))

    def values_and_gradients(function):
        found = function(logits, other, LABELS, SOME_LABELS, WEIGHTS, PLACES, TEXTS, LENGTHS)
        gradients = torch.autograd.grad((found * torch.arange(1, 1 + len(found))).sum(), (logits, other))
        return found, gradients

    compiled = values_and_gradients(torch.compile(losses, backend="pipeline", options={"fallback": "torch"}))
    torch.testing.assert_close(compiled, values_and_gradients(losses))
    assert count["backward in eager"] == 0


CLASSES, WIDTH = 3001, 16


class Tied(nn.Module):
    """Embeddings whose table is the weight of the last layer, too; logits [N, 3001]."""

    def __init__(self, tied=True):
        super().__init__()
        self.words, self.head = nn.Embedding(CLASSES, WIDTH), nn.Linear(WIDTH, CLASSES)
        if tied:
            self.head.weight = self.words.weight

    def forward(self, rows, labels):
        return F.cross_entropy(self.head(self.words(rows)), labels)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("rows", [1, 64])
def test_memory_of_logits(tied, rows):
    """Forward keeps the logits and writes nothing else of their size; backward writes their gradient and a copy."""
    torch.manual_seed(0)
    model, args = Tied(tied), (torch.randint(CLASSES, (rows,)), torch.randint(CLASSES, (rows,)))
    compiled = torch.compile(model, backend="pipeline", options={"num_threads": 1})
    found = torch.autograd.grad(compiled(*args), [*model.parameters()])
    torch.testing.assert_close(found, torch.autograd.grad(model(*args), [*model.parameters()]))
    forward, backward = pipeline.executables(compiled)
    logits, table = 4 * rows * CLASSES, 4 * CLASSES * WIDTH
    panels = 1.1 * table
    assert forward.memory.results < 1.1 * logits + 4 * rows * WIDTH + 4096
    assert forward.memory.workspace < panels + 4096
    assert backward.memory.workspace < 2 * logits + panels + 16384
    assert backward.memory.results < (1 if tied else 2) * table + 4 * CLASSES + 4096
