"""Prompts that go on from what is in the cache, and those that come in chunks, are eager mode's over the whole text."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from generation.small_models import eager, prompt, small_model

import pipeline
from pipeline.errors import OptionError


def conversation(lm, model, ids, mask=None, turns=((5, 7), (1, 3), (2, 8), (40, 6)), **settings):
    """Several turns, each of so many tokens and so many in reply; all of them are eager mode's."""
    mask = torch.ones_like(ids) if mask is None else mask
    for said, replied in turns:
        ids = torch.cat([ids, prompt(len(ids), said, seed=said)], 1)
        mask = torch.nn.functional.pad(mask, (0, said), value=1)
        got = lm.generate(ids, mask, max_new_tokens=replied, reuse_cache=True, **settings)
        assert torch.equal(got, eager(model, ids, attention_mask=mask, max_new_tokens=replied)), (said, replied)
        yield lm.reused
        ids, mask = got, torch.nn.functional.pad(mask, (0, replied), value=1)


@pytest.mark.parametrize("name", ["gpt2", "llama", "qwen2", "gemma2"])
def test_each_turn_is_that_of_eager_mode(name):
    """Rows with different padding, and fewer rows than the cache has; only what is new is computed."""
    model = small_model(name)
    lm = pipeline.generation.compile(model, max_length=120, batch=3)
    mask = (torch.arange(9) >= torch.tensor([[0], [4]])).long()
    assert list(conversation(lm, model, prompt(2, 9), mask)) == [0, 20, 24, 34]
    assert list(conversation(lm, model, prompt(1, 9, seed=4), prefill_chunk_size=6))[1:] == [20, 24, 34]
    for size in (2, 7, 39, 40, 100):
        got = lm.generate(prompt(1, 40), max_new_tokens=9, prefill_chunk_size=size)
        assert torch.equal(got, eager(model, prompt(1, 40), max_new_tokens=9)), size
        assert lm.reused == 0


@pytest.fixture(scope="module")
def llama():
    model = small_model("llama")
    return model, pipeline.generation.compile(model, max_length=64, batch=4)


def test_what_is_reused_is_what_is_equal(llama):
    """A text that goes another way, one that is there already, padding that changes, rows that change places."""
    model, lm = llama
    ids = prompt(2, 12)
    mask = (torch.arange(12) >= torch.tensor([[0], [3]])).long()
    other = ids.clone()
    other[1, 7] = (other[1, 7] + 1) % 90
    unseen = ids.clone()
    unseen[1, :3] += 1
    none = torch.ones_like(mask)
    for given, its_mask, count in [
        (ids, mask, 0),
        (ids, mask, 11),  # the last token is computed again for its logits
        (other, mask, 7),
        (unseen, mask, 7),
        (ids[:, :1].repeat(1, 12), mask, 0),
        (ids, none, 0),
        (ids.flip(0), none, 0),
        (ids[:1], none[:1], 0),
        (ids[:1].repeat(4, 1), none[:1].repeat(4, 1), 11),  # rows that nobody asks for are like the first
    ]:
        got = lm.generate(given, its_mask, max_new_tokens=5, reuse_cache=True)
        assert torch.equal(got, eager(model, given, attention_mask=its_mask, max_new_tokens=5))
        assert lm.reused == count
    lm.reset()
    lm.generate(ids[:1], max_new_tokens=5, reuse_cache=True)
    assert lm.reused == 0
    lm.generate(ids[:1], max_new_tokens=5)
    assert lm.reused == 0


def test_beams_streams_and_draws_go_on_as_well(llama):
    model, lm = llama
    ids = prompt(1, 9, seed=8)
    for number, beams in enumerate((4, 2, 4)):
        got = lm.generate(ids, max_new_tokens=6, num_beams=beams, reuse_cache=True)
        assert torch.equal(got, eager(model, ids, max_new_tokens=6, num_beams=beams))
        assert (lm.reused > 0) == (number > 0)
        ids = torch.cat([ids, prompt(1, 3, seed=number)], 1)
    stream = lm.stream(ids, max_new_tokens=9, reuse_cache=True)
    some = [next(stream)[0] for _ in range(4)]
    ids = torch.cat([ids, torch.tensor([some])], 1)  # the rest is never asked for
    torch.manual_seed(3)
    got = lm.generate(ids, max_new_tokens=9, do_sample=True, temperature=3.0, reuse_cache=True)
    assert lm.reused == ids.shape[1] - 1
    torch.manual_seed(3)
    assert torch.equal(got, eager(model, ids, max_new_tokens=9, do_sample=True, temperature=3.0))
    with pytest.raises(OptionError, match="prefill_chunk_size: expected a number from 2"):
        lm.generate(ids, prefill_chunk_size=1)


def test_a_bundle_goes_on_without_torch(llama, tmp_path):
    model, lm = llama
    lm.save(tmp_path / "lm.pipeline")
    ids = prompt(3, 9)
    mask = (torch.arange(20) >= torch.tensor([[0], [4], [1]])).long()
    first = eager(model, ids, attention_mask=mask[:, :9], max_new_tokens=6)
    whole = torch.cat([first, prompt(3, 5, seed=2)], 1)
    second = eager(model, whole, attention_mask=mask, max_new_tokens=8)
    program = f"""
import sys
import numpy as np
import pipeline
lm = pipeline.generation.load({str(tmp_path / "lm.pipeline")!r})
mask = np.array({mask.tolist()})
first = lm.generate(np.array({ids.tolist()}), mask[:, :9], max_new_tokens=6)
assert first.tolist() == {first.tolist()}
whole = np.concatenate([first, np.array({whole[:, 15:].tolist()})], 1)
assert lm.generate(whole, mask, max_new_tokens=8, reuse_cache=True).tolist() == {second.tolist()}
assert lm.reused == 14
chunked = lm.generate(whole, mask, max_new_tokens=8, prefill_chunk_size=6)
assert chunked.tolist() == {second.tolist()}
assert not any(name in sys.modules for name in ("torch", "torch_mlir", "transformers"))
"""
    subprocess.run([sys.executable, "-c", program], check=True)
