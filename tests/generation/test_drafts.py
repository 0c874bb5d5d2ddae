"""Tokens that come by drafts, from the text or from a smaller model, are those that come one by one."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from generation.small_models import eager, prompt, small_model

import pipeline
from pipeline.errors import OptionError
from pipeline.generation.drafts import PromptLookup


@pytest.fixture(scope="module")
def models():
    """A model, and one of its first layer alone, which guesses right now and then."""
    model, smaller = small_model("llama"), small_model("llama")
    del smaller.model.layers[1]
    smaller.config.num_hidden_layers = 1
    compiled = [
        pipeline.generation.compile(each, max_length=96, batch=rows) for each, rows in ((model, 2), (smaller, 1))
    ]
    return model, *compiled


def repeated(length):
    return prompt(1, length).repeat(1, 4)


@pytest.mark.parametrize("kind", ["assistant", "itself", "lookup"])
def test_tokens_are_those_of_eager_mode(models, kind):
    model, lm, assistant = models
    if kind == "itself":
        assistant = pipeline.generation.compile(model, max_length=64)  # all of its guesses are right while it has room
    how = {"prompt_lookup_num_tokens": 4} if kind == "lookup" else {"assistant_model": assistant}
    for ids, count in (
        (repeated(6), 60),
        (prompt(1, 1), 20),
        (prompt(1, 31), 66),
        (prompt(1, 9), 1),
        (prompt(1, 9), 0),
    ):
        got = lm.generate(ids, max_new_tokens=count, **how)
        assert torch.equal(got, eager(model, ids, max_new_tokens=count) if count else ids)
        assert lm.accepted <= lm.drafted
        assert (lm.drafted > 0) == (count > 1)
        if kind == "itself":
            assert lm.accepted == lm.drafted
    ids, mask = torch.cat([torch.zeros(1, 3, dtype=torch.int64), repeated(5)], 1), torch.ones(1, 23).long()
    mask[:, :3] = 0
    expected = eager(model, ids, attention_mask=mask, max_new_tokens=30)
    assert torch.equal(lm.generate(ids, mask, max_new_tokens=30, **how), expected)
    assert list(lm.stream(ids, mask, max_new_tokens=30, **how)) == expected[0, 23:].tolist()
    end = int(expected[0, 35])
    got = lm.generate(ids, mask, max_new_tokens=30, eos_token_id=end, **how)
    assert torch.equal(got, eager(model, ids, attention_mask=mask, max_new_tokens=30, eos_token_id=end))
    again = torch.cat([got, prompt(1, 4)], 1)
    longer = torch.nn.functional.pad(mask, (0, again.shape[1] - 23), value=1)
    got = lm.generate(again, longer, max_new_tokens=20, reuse_cache=True, repetition_penalty=1.3, **how)
    assert lm.reused >= 23
    assert torch.equal(got, eager(model, again, attention_mask=longer, max_new_tokens=20, repetition_penalty=1.3))


def test_fewer_steps_are_taken(models, monkeypatch):
    model, lm, _ = models
    same = pipeline.generation.compile(model, max_length=96)
    steps = []
    run = lm._run
    monkeypatch.setattr(lm, "_run", lambda *args: steps.append(1) or run(*args))
    lm.generate(prompt(1, 9), max_new_tokens=40, assistant_model=same)
    assert lm.accepted == lm.drafted == 40 - len(steps) and len(steps) <= 7


@pytest.mark.parametrize(
    ("text", "count", "expected"),
    [
        ([1, 2, 3, 1, 2], 3, [3, 1, 2]),
        ([1, 2, 3, 9, 1, 2, 4, 8, 7, 1, 2], 3, [4, 8, 7]),  # of two places the last
        ([1, 2, 3, 9, 2, 4, 8, 2], 2, [4, 8]),  # one token alone
        ([5, 5, 5, 5], 3, [5, 5]),
        ([5, 5, 5, 5], 1, [5]),
        ([1, 2, 3], 3, []),
        ([1], 3, []),
        ([1, 2, 3, 1, 2], 0, []),
    ],
)
def test_what_is_looked_up(text, count, expected):
    assert PromptLookup(5, 2).after(np.array(text), count).tolist() == expected


def test_what_does_not_go_with_drafts(models):
    _, lm, assistant = models
    ids = prompt(2, 5)
    other = pipeline.generation.compile(small_model("gpt2"), max_length=32)
    other.__class__ = type("Other", (type(other),), {"vocabulary": 5})
    for message, given, settings in [
        ("one row, the prompt has 2", ids, {"assistant_model": assistant}),
        ("leave do_sample", ids[:1], {"prompt_lookup_num_tokens": 3, "do_sample": True}),
        ("leave do_sample and num_beams", ids[:1], {"assistant_model": assistant, "num_beams": 2}),
        ("leave one of them out", ids[:1], {"assistant_model": assistant, "prompt_lookup_num_tokens": 3}),
        ("is the model itself", ids[:1], {"assistant_model": lm}),
        ("vocabulary of 5 tokens, the model one of 97", ids[:1], {"assistant_model": other}),
        ("num_assistant_tokens: expected a number from 1", ids[:1], {"num_assistant_tokens": 0}),
    ]:
        with pytest.raises(OptionError, match=message):
            lm.generate(given, max_new_tokens=3, **settings)


def test_bundles_draft_without_torch(models, tmp_path):
    model, lm, assistant = models
    lm.save(tmp_path / "lm")
    assistant.save(tmp_path / "assistant")
    expected = eager(model, repeated(6), max_new_tokens=30)
    program = f"""
import sys
import pipeline
lm, assistant = (pipeline.generation.load({str(tmp_path)!r} + name) for name in ("/lm", "/assistant"))
for how in ({{"assistant_model": assistant}}, {{"prompt_lookup_num_tokens": 3}}):
    assert lm.generate({repeated(6).tolist()}, max_new_tokens=30, **how).tolist() == {expected.tolist()}
    assert lm.drafted
assert not any(name in sys.modules for name in ("torch", "torch_mlir", "transformers"))
"""
    subprocess.run([sys.executable, "-c", program], check=True)
