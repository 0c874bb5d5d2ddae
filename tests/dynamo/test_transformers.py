"""Models of transformers through torch.compile, called as their pages say: equal to eager, compiled twice at most."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from architectures import TRANSFORMERS
from compare import TOLERANCE
from through_compile import through_compile

#: Those that `make test` takes, some with gradients; docs/models.md has all of them, with and without.
_WITH_GRADIENTS = {"bert", "gpt2", "mistral", "mixtral", "vit"}
_WITHOUT = {"clip", "deberta-v2", "electra", "llama", "swin", "t5", "whisper"}

#: Called with one size only, since they take long to compile.
_ONE_SIZE = {"clip", "swin", "t5", "vit", "whisper"}


@pytest.mark.parametrize("name", sorted(_WITH_GRADIENTS | _WITHOUT))
def test_architecture(name):
    architecture = TRANSFORMERS[name]
    if name in _ONE_SIZE:
        architecture = replace(architecture, sizes=architecture.sizes[:2])
    gradients = name in _WITH_GRADIENTS
    outcome = through_compile(architecture, gradients)
    assert outcome.graphs == (1, 1, 2, 2)[: len(architecture.sizes)]
    assert outcome.direct == (0 if gradients else outcome.graphs[-1])
    assert outcome.error <= TOLERANCE


def test_gradients_of_a_language_model():
    model, given = TRANSFORMERS["llama"].create().train(), TRANSFORMERS["llama"].inputs(2, 7)
    found = []
    for one in (torch.compile(model, backend="pipeline"), model):
        model.zero_grad()
        one(**given, labels=given["input_ids"]).loss.backward()
        found.append([parameter.grad for parameter in model.parameters()])
    torch.testing.assert_close(*found, rtol=1e-3, atol=1e-5)


def test_generate_gives_the_tokens_of_eager():
    model, prompt = TRANSFORMERS["gpt2"].create(), TRANSFORMERS["gpt2"].inputs(2, 5)
    settings = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    expected = model.generate(**prompt, **settings)
    model.forward = torch.compile(model.forward, backend="pipeline")
    assert torch.equal(model.generate(**prompt, **settings), expected)
