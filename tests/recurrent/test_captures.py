"""Recurrent nets by every way into the compiler, and inside of models."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._dynamo import config as dynamo_config

import pipeline


class Tagger(nn.Module):
    """Embeds, encodes from both sides, and scores: a layer before and ops behind the net."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.encoder = nn.GRU(6, 5, bidirectional=True, batch_first=True)
        self.scores = nn.Linear(10, 3)

    def forward(self, tokens):
        encoded, last = self.encoder(self.embedding(tokens))
        return self.scores(encoded).log_softmax(-1), last.transpose(0, 1).reshape(tokens.shape[0], -1)


class Conditional(nn.Module):
    """A net in one branch alone; dynamo, which torch.cond goes through, takes no nn.RNN there."""

    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList(torch.randn(5, 5) / 3 for _ in range(2))

    def forward(self, x, flag):
        def encode(x):
            return torch.rnn_tanh(x, x[:1] * 2, list(self.weights), False, 1, 0.0, False, False, False)[0]

        return torch.cond(flag, encode, lambda x: x * 2, (x,))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.LSTM(5, 7)

    def forward(self, x):
        output, _ = self.net(x)
        return output


def agree(executable, model, *arguments):
    with torch.no_grad():
        wanted = model(*arguments)
    torch.testing.assert_close(executable(*arguments), wanted, rtol=1e-5, atol=1e-6)


def test_inside_of_a_model():
    torch.manual_seed(0)
    model = Tagger().eval()
    tokens = torch.randint(11, (2, 9))
    agree(pipeline.compile(model, (tokens,)), model, tokens)


def test_inside_of_a_branch():
    torch.manual_seed(0)
    model = Conditional().eval()
    x = torch.randn(4, 2, 5)
    executable = pipeline.compile(model, (x, torch.tensor(True)))
    for flag in (True, False):
        agree(executable, model, x, torch.tensor(flag))


@pytest.mark.parametrize("way", ["exported", "archive", "script"])
def test_programs_of_torchs_own(way, tmp_path):
    torch.manual_seed(0)
    model = Encoder().eval()
    x = torch.randn(4, 2, 5)
    captured = torch.jit.script(model) if way == "script" else torch.export.export(model, (x,))
    if way == "archive":
        torch.export.save(captured, tmp_path / "model.pt2")
        captured = tmp_path / "model.pt2"
    executable = pipeline.compile(captured, (x,) if way == "script" else None)
    agree(executable, model, x)
    assert [kernel.kind for kernel in executable.kernels].count("loop") == 1


@pytest.mark.parametrize("traces_nets", [False, True])
def test_torch_compile(traces_nets):
    """By default dynamo leaves recurrent nets to eager mode; where it is told to trace them they are loops."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = nn.Sequential(nn.Linear(5, 5), nn.LSTM(5, 7)).eval()
    with dynamo_config.patch(allow_rnn=traces_nets), torch.no_grad():
        compiled = torch.compile(model, backend="pipeline")
        agree(compiled, model, torch.randn(3, 2, 5))


def test_torch_knows_its_own_nets_afterwards():
    """What torch is told of its ops while a model is captured ends with that, also when it fails."""
    kernels = dict(torch.ops.aten.lstm.input.py_kernels)
    check = nn.GRU.check_forward_args
    with pytest.raises(pipeline.PipelineError):
        pipeline.compile(nn.LSTM(5, 7), (torch.randn(4, 2, 3),))
    pipeline.compile(nn.LSTM(5, 7), (torch.randn(4, 2, 5),))
    assert torch.ops.aten.lstm.input.py_kernels == kernels
    assert nn.GRU.check_forward_args is check


class OneStep(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x, *state):
        return self.cell(x, state if len(state) > 1 else state[0])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_a_cell_is_two_products_and_one_elementwise_op(kind, bias):
    torch.manual_seed(0)
    model = OneStep(kind(5, 7, bias=bias)).eval()
    state = [torch.randn(3, 7) for _ in range(1 + (kind is nn.LSTMCell))]
    executable = pipeline.compile(model, (torch.randn(3, 5), *state))
    agree(executable, model, torch.randn(3, 5), *state)
    kinds = [kernel.kind for kernel in executable.kernels if not kernel.name.startswith("transpose")]
    assert kinds.count("matmul") == 2 and len(kinds) <= 3
