"""nn.LSTM, nn.GRU and nn.RNN: every form that eager mode takes gives what it gives there."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_leaves

import pipeline


def compare(model, arguments, tolerance=1e-6, **options):
    """Compiles, calls and compares with eager; gives the executable."""
    executable = pipeline.compile(model, arguments, **options)
    agree(executable, model, arguments, tolerance)
    return executable


def agree(executable, model, arguments, tolerance=1e-6):
    with torch.no_grad():
        wanted = model(*arguments)
    for got, want in zip(tree_leaves(executable(*arguments)), tree_leaves(wanted), strict=True):
        torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)


def states_of(model, batch):
    """Random first states of a net, as it takes them."""
    count = model.num_layers * (1 + model.bidirectional)
    sizes = (model.proj_size or model.hidden_size, model.hidden_size)
    first = [torch.randn(count, batch, size, dtype=model.weight_hh_l0.dtype) for size in sizes]
    return tuple(first) if isinstance(model, nn.LSTM) else first[0]


FORMS = [
    (nn.LSTM, {}, False),
    (nn.LSTM, {"num_layers": 2, "bidirectional": True, "batch_first": True}, True),
    (nn.LSTM, {"proj_size": 3, "bidirectional": True, "bias": False}, True),
    (nn.LSTM, {"proj_size": 1, "batch_first": True}, False),
    (nn.GRU, {"bias": False}, True),
    (nn.GRU, {"num_layers": 3}, False),
    (nn.GRU, {"bidirectional": True, "batch_first": True}, True),
    (nn.RNN, {"num_layers": 2, "bias": False, "nonlinearity": "relu"}, True),
    (nn.RNN, {"bidirectional": True}, False),
]


@pytest.mark.parametrize(("kind", "options", "gives_states"), FORMS)
def test_forms(kind, options, gives_states):
    torch.manual_seed(0)
    model = kind(5, 7, **options).eval()
    x = torch.randn(6, 3, 5)
    batch = x.shape[0 if model.batch_first else 1]
    executable = compare(model, (x, states_of(model, batch)) if gives_states else (x,))
    kinds = [kernel.kind for kernel in executable.kernels]
    assert kinds.count("loop") == model.num_layers * (1 + model.bidirectional)
    code = executable.ir("llvm")
    assert "@aligned_alloc" not in code and "@malloc" not in code


SIZES = [(1, 1, 1, 1), (9, 1, 1, 17), (2, 0, 3, 4), (33, 2, 16, 16)]


@pytest.mark.parametrize(("steps", "batch", "features", "hidden"), SIZES)
def test_sizes(steps, batch, features, hidden):
    torch.manual_seed(0)
    compare(nn.GRU(features, hidden).eval(), (torch.randn(steps, batch, features),))


def test_no_steps_are_refused_as_in_eager():
    with pytest.raises(pipeline.PipelineError, match="sequence length to be larger than 0"):
        pipeline.compile(nn.GRU(3, 4), (torch.randn(0, 2, 3),))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_sequences_without_a_batch(kind):
    torch.manual_seed(0)
    model = kind(5, 7, bidirectional=True).eval()
    given = states_of(model, 1)
    given = tuple(one[:, 0] for one in given) if isinstance(given, tuple) else given[:, 0]
    compare(model, (torch.randn(6, 5), given))


def test_tensors_that_are_not_contiguous():
    torch.manual_seed(0)
    x = torch.randn(4, 5, 12)[:, :, ::2].permute(2, 0, 1)
    hidden = torch.randn(8, 7)[:4].unsqueeze(0)
    compare(nn.GRU(5, 7).eval(), (x, hidden))


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(nn.LSTM, torch.float64), (nn.LSTM, torch.bfloat16), (nn.GRU, torch.float16), (nn.RNN, torch.bfloat16)],
)
def test_dtypes(kind, dtype):
    """As exact as eager mode at least, in float64 up to the last bits."""
    torch.manual_seed(0)
    model = kind(5, 7, bidirectional=dtype == torch.float64).to(dtype).eval()
    x = torch.randn(20, 3, 5, dtype=dtype)
    wide = copy.deepcopy(model).double()
    with torch.no_grad():
        eager, exact = model(x)[0], wide(x.double())[0]
    got = pipeline.compile(model, (x,))(x)[0]
    assert got.dtype == dtype
    allowed = max((eager.double() - exact).abs().max().item(), 2 * torch.finfo(torch.float64).eps)
    assert (got.double() - exact).abs().max().item() <= 2 * allowed


@pytest.mark.parametrize(
    ("kind", "options"),
    [(nn.LSTM, {"bidirectional": True}), (nn.GRU, {"batch_first": True}), (nn.RNN, {"bidirectional": True})],
)
def test_symbolic_length_and_batch(kind, options):
    torch.manual_seed(0)
    model = kind(5, 7, **options).eval()
    batch_first = model.batch_first
    length, batch = torch.export.Dim("length", max=512), torch.export.Dim("batch", max=64)
    shape = ({0: batch, 1: length},) if batch_first else ({0: length, 1: batch},)
    executable = compare(model, (torch.randn(6, 3, 5),), dynamic_shapes=shape)
    for sizes in [(1, 1), (2, 1), (1, 3), (2, 2), (40, 5)]:
        agree(executable, model, (torch.randn(*(sizes[::-1] if batch_first else sizes), 5),))


def test_symbolic_length_alone_is_one_kernel():
    torch.manual_seed(0)
    model = nn.LSTM(5, 7).eval()
    length = torch.export.Dim("length", max=512)
    executable = compare(model, (torch.randn(6, 3, 5),), dynamic_shapes=({0: length},))
    for steps in (1, 2, 50):
        agree(executable, model, (torch.randn(steps, 3, 5),))
    assert [kernel.kind for kernel in executable.kernels].count("loop") == 1


def test_the_code_does_not_grow_with_the_length():
    model = nn.GRU(5, 7, 3).eval()
    lines = []
    for steps in (20, 160):
        executable = pipeline.compile(model, (torch.randn(steps, 2, 5),))
        lines.append(len(executable.ir("kernels").splitlines()))
    assert lines[0] == lines[1]


def test_new_weights_need_no_new_compilation():
    torch.manual_seed(0)
    model = nn.LSTM(5, 7, 2).eval()
    x = torch.randn(6, 3, 5)
    executable = compare(model, (x,))
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(0.5).add_(0.01)
    executable.refresh()
    agree(executable, model, (x,))


def test_shared_weights():
    torch.manual_seed(0)
    model = nn.GRU(7, 7, 2).eval()
    model.weight_hh_l1 = model.weight_hh_l0
    model.weight_ih_l1 = model.weight_hh_l0
    compare(model, (torch.randn(6, 3, 7),))


def test_dropout_between_layers():
    """One of probability 1 has one outcome; any other leaves out about as much as it says."""
    torch.manual_seed(0)
    x = torch.randn(6, 3, 5)
    compare(nn.GRU(5, 7, 2, dropout=1.0).train(), (x,))
    model = nn.RNN(1, 1, 2, bias=False, dropout=0.25, nonlinearity="relu").train()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.fill_(0.0 if "hh" in name else 1.0)
    ones = torch.ones(1000, 4, 1)
    output = pipeline.compile(model, (ones,))(ones)[0]
    torch.testing.assert_close(output, torch.where(output == 0, 0.0, 1 / 0.75))
    assert 0.2 < (output == 0).float().mean().item() < 0.3
