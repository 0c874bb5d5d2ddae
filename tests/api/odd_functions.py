"""What people write in models: functions of a tensor [3, 4] that use Python and torch in odd ways."""

from __future__ import annotations

import collections
import contextlib
import copy
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

Point = collections.namedtuple("Point", "a b")

OFFSET = torch.tensor([1.0, 2.0, 3.0, 4.0])


def asserts(x):
    assert x.shape[1] == 4, "four columns"
    return x * 2


def prints(x):
    print("shape", x.shape)
    return x + 1


def raises(x):
    raise ValueError("always")


def tries(x):
    try:
        return x.view(7)
    except RuntimeError:
        return x.flatten()


def suppresses(x):
    with contextlib.suppress(ZeroDivisionError):
        return x / 2


def counts(x):
    rounds = 0
    while rounds < 3:
        x, rounds = x + rounds, rounds + 1
    return x


def loops_on_values(x):
    while x.sum() < 10:
        x = x + 1
    return x


def recurses(x, depth=4):
    return x if depth == 0 else recurses(x * 2, depth - 1)


def generates(x):
    def rows():
        for number in range(3):
            yield x[number] * number

    return torch.stack(list(rows()))


def writes_slices(x):
    x[1:, ::2] = 0
    return x.sum()


def writes_a_chain(x):
    y = x.clone()
    y.relu_().mul_(2).clamp_(0, 1).sub_(1)
    y[0].zero_()
    y.T[1] += 5
    return y


def writes_to_out(x):
    result = torch.empty(3, 4)
    torch.add(x, 1, out=result)
    return result


def resizes(x):
    y = x.clone()
    y.resize_(2, 2)
    return y


class Clamp(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(context, gradient):
        return gradient


def under_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return x @ x.T


def under_no_grad(x):
    with torch.no_grad():
        return x * 2


def matches(x):
    match x.dim():
        case 2:
            return x.T
        case _:
            return x


def packs(x):
    lengths = torch.tensor([4, 3, 2])
    packed = nn.utils.rnn.pack_padded_sequence(x[:, :, None], lengths, batch_first=True)
    return nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)[0]


def has_a_hook(x):
    double = nn.Identity()
    double.register_forward_hook(lambda module, inputs, output: output * 2)
    return double(x)


def updates_a_dict(x):
    found = {"a": x}
    found.update(b=x + 1)
    return sum(found.values())


FUNCTIONS = [
    *(
        asserts,
        prints,
        raises,
        tries,
        suppresses,
        counts,
        loops_on_values,
        recurses,
        generates,
        writes_slices,
        writes_a_chain,
    ),
    *(writes_to_out, resizes, under_autocast, under_no_grad, matches, packs, has_a_hook, updates_a_dict),
]

#: Those that are a line.
LINES = {
    "a branch on a number": lambda x: x + 1 if x.sum().item() > 0 else x - 1,
    "tolist": lambda x: x * sum(x[0].tolist()),
    "numpy": lambda x: torch.from_numpy(np.tanh(x.numpy())),
    "numbers of numpy": lambda x: x * np.float32(2.5) + np.int64(3) + np.pi + math.e,
    "nothing": lambda x: None,
    "what it is given": lambda x: x,
    "a number": lambda x: 3,
    "a string": lambda x: {"a": x, "mode": "train"}["a"],
    "nested": lambda x: {"a": [x, (x + 1, None)], "b": 2.5},
    "a named tuple": lambda x: Point(x, x + 1),
    "a set": lambda x: {1, 2},
    "a global tensor": lambda x: x + OFFSET,
    "vmap": lambda x: torch.vmap(lambda row: row.cumsum(0) * 2)(x),
    "a function of autograd": lambda x: Clamp.apply(x) * 2,
    "checkpoint": lambda x: checkpoint(torch.tanh, x, use_reentrant=False),
    "sparse": lambda x: torch.sparse.mm(x.to_sparse(), x.T),
    "quantized": lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize(),
    "fake quantization": lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127),
    "the meta device": lambda x: x + torch.ones(4, device="meta").shape[0],
    "types": lambda x: x.type(torch.float64).type(torch.FloatTensor),
    "constructors": lambda x: x + torch.tensor([1, 2, 3, 4.0]) + torch.as_tensor(2) + torch.Tensor([1, 2, 3, 4]),
    "new": lambda x: x.new_tensor([1.0, 2, 3, 4]) + x.new_zeros(4) + x.new(4).fill_(1),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x) + torch.einsum("...j,...j->...", x, x),
    "nonzero": lambda x: x.nonzero(),
    "where": lambda x: torch.where(x > 0),
    "a mask": lambda x: x[x > 0],
    "unique": lambda x: torch.unique(x.round(), return_counts=True),
    "quantile": lambda x: (x.median(1), x.nanmedian(), x.quantile(0.3), x.kthvalue(2)),
    "combinations": lambda x: (torch.cartesian_prod(x[0], x[1]), torch.combinations(x[0])),
    "bits": lambda x: (x.view(torch.int32) >> 3).view(torch.float32),
    "as_strided": lambda x: torch.as_strided(x, (2, 2), (1, 2), 1),
    "properties": lambda x: x + x.storage_offset() + x.stride(0) + x.is_contiguous() + x.element_size(),
    "an address": lambda x: x + (x.data_ptr() != 0),
    "devices": lambda x: x.cpu().to("cpu") + x.to(x.device),
    "a copy": lambda x: copy.deepcopy(x) + 1,
    "a format": lambda x: x + len(f"{x.shape}"),
    "sorted keys": lambda x: torch.cat([value for _, value in sorted({"b": x, "a": x * 2}.items())]),
    "any arguments": lambda x: (lambda a, *b, c=2: a * c + len(b))(x, 1, 2, c=5),
    "large numbers": lambda x: (x + 2**40, x.long() + 2**62),
    "infinities": lambda x: x.masked_fill(x > 0, float("-inf")).nan_to_num(neginf=-1),
    "empty": lambda x: (torch.cat([x[:0], x[:0]]).sum(), x[:0].mean()),
    "an extreme of nothing": lambda x: x[:0].max(),
    "shapes that do not fit": lambda x: x @ x,
    "a place outside": lambda x: x[5],
    "a computed place outside": lambda x: x[torch.tensor([5])],
    "division by 0": lambda x: x.long() // torch.zeros(4).long(),
    "nested tensors": lambda x: torch.nested.nested_tensor([x[0], x[1]]).to_padded_tensor(0),
    "masked tensors": lambda x: torch.masked.masked_tensor(x, x > 0).sum(),
    "equality": lambda x: torch.equal(x, x),
    "membership": lambda x: x + (1 if 0.5 in x else 2),
    "rows": lambda x: torch.stack([row * len(row) for row in reversed(x)]),
    "buckets": lambda x: (torch.bucketize(x, torch.linspace(-1, 1, 5)), torch.histogram(x, 4)),
    "resizing": lambda x: F.interpolate(x[None, None], size=(5, 7), mode="bicubic", antialias=True),
    "bags": lambda x: F.embedding_bag(torch.tensor([0, 1, 2]), x, torch.tensor([0, 2])),
    "one hot": lambda x: F.one_hot(x.argmax(1)),
    "indices": lambda x: (x[..., None, -1:, ::2], x[[0, 2]], x[:, [True, False, True, False]]),
    "a shape": lambda x: (x + 1, x.shape),
}
