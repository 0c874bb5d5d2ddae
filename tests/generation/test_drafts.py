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
from pipeline.generation.drafts import Draft, PromptLookup
from pipeline.generation.sampling import NumpyDraw
from pipeline.generation.speculation import _drawn


@pytest.fixture(scope="module")
def models():
    """A model, and one of its first layer alone, which guesses right now and then."""
    model, smaller = small_model("llama"), small_model("llama")
    del smaller.model.layers[1]
    smaller.config.num_hidden_layers = 1
    compiled = [
        pipeline.generation.compile(each, max_length=96, batch=rows) for each, rows in ((model, 3), (smaller, 3))
    ]
    return model, *compiled


@pytest.fixture(scope="module")
def smaller():
    """The second one as transformers has it, set up to give drafts of as many tokens."""
    model = small_model("llama")
    del model.model.layers[1]
    model.config.num_hidden_layers = 1
    model.generation_config.num_assistant_tokens = 5
    model.generation_config.num_assistant_tokens_schedule = "heuristic_transient"
    model.generation_config.assistant_confidence_threshold = 0
    return model


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
        assert count < 2 or lm.drafted > 0
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
    assert lm.accepted == lm.drafted == 41 - len(steps) and len(steps) <= 7  # the first token comes with a draft


@pytest.mark.parametrize("kind", ["assistant", "lookup"])
def test_each_of_several_rows_is_that_of_eager_mode(models, kind):
    """Rows with other texts, which end at other times, of which each has its own right guesses."""
    model, lm, assistant = models
    how = {"prompt_lookup_num_tokens": 4} if kind == "lookup" else {"assistant_model": assistant}
    ids, mask = torch.cat([repeated(5), prompt(1, 20, 2), prompt(1, 5, 3).repeat(1, 4)]), torch.ones(3, 20).long()
    mask[0, :7], mask[2, :3] = 0, 0
    short, none = torch.cat([prompt(1, 1, 4), prompt(1, 1, 5)]), torch.ones(2, 1).long()
    for given, seen, count, settings in (
        (ids, mask, 60, {}),
        (ids, mask, 77, {"repetition_penalty": 1.2}),  # until the cache has no room
        (short, none, 20, {}),
    ):
        expected = eager(model, given, attention_mask=seen, max_new_tokens=count, **settings)
        assert torch.equal(lm.generate(given, seen, max_new_tokens=count, **how, **settings), expected)
        assert 0 < lm.accepted < lm.drafted
    expected = eager(model, ids, attention_mask=mask, max_new_tokens=40)
    ends = {"eos_token_id": [int(expected[0, 30]), int(expected[2, 50])], "max_new_tokens": 60}
    expected = eager(model, ids, attention_mask=mask, **ends)
    assert torch.equal(lm.generate(ids, mask, **ends, **how), expected)
    streamed = np.stack(list(lm.stream(ids, mask, **ends, **how)), 1)
    assert np.array_equal(streamed, expected[:, 20:].numpy())
    longer = torch.cat([ids, prompt(3, 4, 6)], 1)
    seen = torch.nn.functional.pad(mask, (0, 4), value=1)
    got = lm.generate(longer, seen, max_new_tokens=9, reuse_cache=True)
    assert lm.reused == 20 and torch.equal(got, eager(model, longer, attention_mask=seen, max_new_tokens=9))
    shorter, seen = got[1:2, 2:28], None  # one row, with other padding: what is in the first one is another text
    got = lm.generate(shorter, seen, max_new_tokens=5, reuse_cache=True)
    assert lm.reused == 0 and torch.equal(got, eager(model, shorter, max_new_tokens=5))
    padded, seen = torch.nn.functional.pad(got, (3, 0)), torch.nn.functional.pad(torch.ones_like(got), (3, 0))
    got = lm.generate(padded, seen, max_new_tokens=5, reuse_cache=True)
    assert lm.reused == 33 and torch.equal(got, eager(model, padded, attention_mask=seen, max_new_tokens=5))


@pytest.mark.parametrize(
    "settings", [{}, {"temperature": 0.7, "top_k": 20}, {"min_p": 0.05}, {"top_p": 0.9, "repetition_penalty": 1.2}]
)
def test_drawn_tokens_are_those_of_eager_mode(models, smaller, settings):
    """With the same seed; transformers' lookup leaves guesses out if penalties or `top_p` are there.

    Not over long texts: its assistant reads a slot too much of its cache after a wrong guess of one token.
    """
    model, lm, assistant = models
    hows = [({"assistant_model": assistant}, {"assistant_model": smaller})]
    hows += [({"prompt_lookup_num_tokens": 4},) * 2] if "top_p" not in settings else []
    for ours, theirs in hows:
        texts = (repeated(6), 24), (prompt(1, 1), 9), (prompt(1, 9), 2), (prompt(1, 31, 7), 1)
        for seed, (ids, count) in enumerate(texts):
            torch.manual_seed(seed)
            expected = eager(model, ids, max_new_tokens=count, do_sample=True, **settings, **theirs)
            torch.manual_seed(seed)
            got = lm.generate(ids, max_new_tokens=count, do_sample=True, **settings, **ours)
            assert torch.equal(got, expected)


def test_drawn_tokens_are_distributed_as_without_drafts():
    random = np.random.default_rng(0)
    likely, guessed = random.dirichlet(np.ones(5), 3).astype(np.float32), random.dirichlet(np.ones(5), 2)
    guessed[1, 3] = 0  # which is then never guessed
    guessed = (guessed / guessed.sum(1, keepdims=True)).astype(np.float32)
    draw, counts, firsts = NumpyDraw(), np.zeros(5), 20_000
    seconds = np.zeros((5, 5))
    for _ in range(firsts):
        tokens, right = _drawn(likely, Draft(draw.tokens(guessed), guessed), draw)
        assert len(tokens) == right + 1
        counts[tokens[0]] += 1
        if right:
            seconds[tokens[0], tokens[1]] += 1
    assert np.abs(counts / firsts - likely[0]).max() < 0.015
    assert np.abs(seconds.sum(0) / seconds.sum() - likely[1]).max() < 0.02
    certain = Draft(np.array([2]), likely[:1])
    assert _drawn(likely[[0, 1]], certain, draw)[1] == 1  # what is as likely to both is kept


def test_drawn_rows_with_drafts_need_no_torch(models):
    _, lm, assistant = models
    for how in ({"assistant_model": assistant}, {"prompt_lookup_num_tokens": 3}):
        found = []
        for _ in range(2):
            pipeline.manual_seed(3)
            found.append(lm.generate(repeated(5).repeat(2, 1).numpy(), max_new_tokens=20, do_sample=True, **how))
        assert np.array_equal(*found) and not np.array_equal(*found[0])


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
    (draft,) = PromptLookup(5, 2).after([np.array(text)], [count])
    assert draft.tokens.tolist() == expected


def test_what_is_looked_up_as_transformers_does():
    text = np.array([1, 2, 3, 9, 1, 2, 4, 8, 7, 1, 2])
    (draft,) = PromptLookup(5, 2, (9,), takes_first=True).after([text], [1])
    assert draft.tokens.tolist() == [3] and draft.found == 1  # none behind what ends texts
    (draft,) = PromptLookup(3, 2, takes_first=True).after([text], [2])
    assert draft.tokens.tolist() == [3, 9] and draft.found == 3


def test_what_does_not_go_with_drafts(models):
    _, lm, assistant = models
    ids = prompt(2, 5)
    other = pipeline.generation.compile(small_model("gpt2"), max_length=32)
    narrow = pipeline.generation.compile(small_model("gpt2"), max_length=32)
    narrow.__class__ = type("Other", (type(other),), {"vocabulary": 5})
    for message, given, settings in [
        ("has 1 rows, the prompt 2", ids, {"assistant_model": other}),
        ("leave num_beams", ids[:1], {"assistant_model": assistant, "num_beams": 2}),
        ("leave one of them out", ids[:1], {"assistant_model": assistant, "prompt_lookup_num_tokens": 3}),
        ("is the model itself", ids[:1], {"assistant_model": lm}),
        ("vocabulary of 5 tokens, the model one of 97", ids[:1], {"assistant_model": narrow}),
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
