"""The losses that models are trained with, in one graph: values and gradients are eager's."""

from __future__ import annotations

import torch
from torch.nn import functional as F

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
