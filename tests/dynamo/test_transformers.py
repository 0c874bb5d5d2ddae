"""Models of transformers through torch.compile, called as their pages say: equal to eager, compiled twice at most."""

from __future__ import annotations

import pytest
import torch
import torch.utils._pytree as pytree
from architectures import ARCHITECTURES

#: With gradients; the others under no_grad.
_WITH_GRADIENTS = {"bert", "gpt2", "vit", "mistral"}

#: Called with one size only: images have no other, the rest takes long to compile twice.
_ONE_SIZE = {"clip", "swin", "t5", "vit", "whisper"}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_architecture(name, count):
    model, inputs = ARCHITECTURES[name]()
    model.eval()
    compiled = torch.compile(model, backend="pipeline")
    sizes = [(2, 7), (2, 7)] if name in _ONE_SIZE else [(2, 7), (3, 9), (4, 11)]
    with torch.set_grad_enabled(name in _WITH_GRADIENTS):
        for rows, length in sizes:
            given = inputs(rows, length)
            ours, theirs = compiled(**given), model(**given)
            assert type(ours) is type(theirs)
            _assert_equal(dict(ours), dict(theirs))
    assert count["graphs"] == len(set(sizes[:2]))
    assert count["backward" if name in _WITH_GRADIENTS else "direct"] == count["graphs"]


def _assert_equal(ours, theirs):
    ours, theirs = ([one for one in pytree.tree_leaves(tree) if torch.is_tensor(one)] for tree in (ours, theirs))
    assert [one.requires_grad for one in ours] == [one.requires_grad for one in theirs]
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_gradients_of_a_language_model():
    model, inputs = ARCHITECTURES["llama"]()
    given = inputs(2, 7)
    found = []
    for one in (torch.compile(model, backend="pipeline"), model):
        model.zero_grad()
        one(**given, labels=given["input_ids"]).loss.backward()
        found.append([parameter.grad for parameter in model.parameters()])
    torch.testing.assert_close(*found, rtol=1e-3, atol=1e-5)


def test_generate_gives_the_tokens_of_eager():
    model, inputs = ARCHITECTURES["gpt2"]()
    model.eval()
    prompt = inputs(2, 5)
    settings = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    expected = model.generate(**prompt, **settings)
    model.forward = torch.compile(model.forward, backend="pipeline")
    assert torch.equal(model.generate(**prompt, **settings), expected)
