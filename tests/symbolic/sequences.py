"""Recurrent cells, masks, norms, embeddings, along a symbolic batch and length."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from case import cases
from torch import Tensor, nn


class Cell(nn.Module):
    """One step of a recurrent cell, its state zeros of the batch's size."""

    def __init__(self, kind: type[nn.Module]):
        super().__init__()
        self.cell = kind(8, 4)

    def forward(self, x):
        return self.cell(x)


class Recurrent(nn.Module):
    """A recurrent net of four steps."""

    def __init__(self, kind: type[nn.Module], **options):
        super().__init__()
        self.net = kind(8, 4, batch_first=True, **options)

    def forward(self, x):
        return self.net(x)[0]


class Tokens(nn.Module):
    """Embeddings of tokens and of their places."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places, self.norm = nn.Embedding(7, 8), nn.Embedding(64, 8), nn.LayerNorm(8)

    def forward(self, ids):
        return self.norm(self.tokens(ids) + self.places(torch.arange(ids.shape[1])))


def causal_mask(x: Tensor) -> Tensor:
    places = torch.arange(x.shape[1])
    return x.masked_fill(places[None, :, None] > torch.arange(8), 0)


def lengths_mask(x: Tensor, lengths: Tensor) -> Tensor:
    mask = torch.arange(x.shape[1])[None] < lengths[:, None]
    return (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


def last_token(x: Tensor, lengths: Tensor) -> Tensor:
    places = lengths.clamp(max=x.shape[1] - 1)
    return x[torch.arange(x.shape[0]), places]


def sinusoids(x: Tensor) -> Tensor:
    angles = torch.arange(x.shape[1])[:, None] * torch.exp(torch.arange(0, 8, 2) * -0.5)
    return x + torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


def relative_bias(x: Tensor, table: Tensor) -> Tensor:
    places = torch.arange(x.shape[1])
    return (x @ x.mT) + table[(places[:, None] - places[None]).clamp(-3, 3) + 3].squeeze(-1)


def one_hot(ids: Tensor) -> Tensor:
    return F.one_hot(ids, 7).float().mean(1)


def cross_entropy(x: Tensor, ids: Tensor) -> Tensor:
    return F.cross_entropy(x.flatten(0, 1), ids.flatten())


def token_losses(x: Tensor, ids: Tensor) -> Tensor:
    return F.nll_loss(x.log_softmax(-1).transpose(1, 2), ids, reduction="none")


def shift_right(ids: Tensor) -> Tensor:
    return torch.cat([torch.zeros_like(ids[:, :1]), ids[:, :-1]], 1)


def differences(x: Tensor) -> Tensor:
    return x[:, 1:] - x[:, :-1]


def mean_over_time(x: Tensor) -> Tensor:
    return x.mean(1) + x.amax(1) + x.var(1, unbiased=False)


def softmax_over_time(x: Tensor) -> Tensor:
    return (x * x[..., :1].softmax(1)).sum(1)


def token_shift(x: Tensor) -> Tensor:
    return x * 0.5 + F.pad(x, (0, 0, 1, -1)) * 0.5


CASES = [
    *cases(
        {
            "linear": (nn.Linear(8, 4), "b t 8"),
            "rnn cell": (Cell(nn.RNNCell), "b 8"),
            "gru cell": (Cell(nn.GRUCell), "b 8"),
            "lstm cell": (Cell(nn.LSTMCell), "b 8"),
            "rnn": (Recurrent(nn.RNN), "b 4 8"),
            "lstm": (Recurrent(nn.LSTM, bidirectional=True), "b 4 8"),
            "layer norm": (nn.LayerNorm(8), "b t 8"),
            "rms norm": (nn.RMSNorm(8), "b t 8"),
            "batch norm 1d": (nn.BatchNorm1d(4), "b 4 t"),
            "norm over time": (lambda x: F.layer_norm(x.mT, x.mT.shape[-1:]), "b t 8"),
            "normalize": (lambda x: F.normalize(x, dim=1), "b t 8"),
            "tokens": (Tokens(), "int:b t"),
            "embedding bag": (nn.EmbeddingBag(7, 4), "int:b t"),
            "causal mask": (causal_mask, "b t 8"),
            "mask of lengths": (lengths_mask, "b t 8", "int:b"),
            "last token": (last_token, "b t 8", "int:b"),
            "sinusoids": (sinusoids, "b t 8"),
            "relative bias": (relative_bias, "b t 8", "7 1"),
            "one hot": (one_hot, "int:b t"),
            "cross entropy": (cross_entropy, "b t 7", "int:b t"),
            "losses of tokens": (token_losses, "b t 7", "int:b t"),
            "shift right": (shift_right, "int:b t"),
            "differences": (differences, "b t+1 8"),
            "over time": (mean_over_time, "b t 8"),
            "pool by softmax": (softmax_over_time, "b t 8"),
            "glu": (nn.GLU(), "b t 8"),
            "token shift": (token_shift, "b t 8"),
            "cosine similarity": (nn.CosineSimilarity(-1), "b t 8", "b t 8"),
            "distances": (torch.cdist, "b t 8", "b u 8"),
        }
    )
]
