"""Models of which layers keep states from token to token: their tokens are eager mode's, and go on one by one."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import transformers as tf
from generation.small_models import STATE_NAMES, eager, prompt, small_model

import pipeline
from pipeline import CaptureError, OptionError


@pytest.fixture(scope="module")
def hybrid():
    """A model of states and of keys and values."""
    model = small_model("bamba")
    return model, pipeline.generation.compile(model, max_length=96, batch=3)


def padded(length, padding, other=0):
    """Two prompts with padding in front."""
    ids, mask = prompt(2, length), torch.ones(2, length, dtype=torch.int64)
    for row, count in enumerate((padding, other)):
        ids[row, :count], mask[row, :count] = 0, 0
    return ids, mask


@pytest.mark.parametrize("name", STATE_NAMES)
def test_tokens_are_those_of_eager_mode(name):
    """Prompts shorter and longer than a convolution, a chunk and two of a recurrence, one after the other."""
    model = small_model(name)
    lm = pipeline.generation.compile(model, max_length=200, batch=2)
    seen = set()
    for length, count in ((70, 40), (1, 9), (3, 20), (130, 9), (64, 5)):
        ids = prompt(1, length)
        got = lm.generate(ids, max_new_tokens=count, do_sample=False)
        assert torch.equal(got, eager(model, ids, max_new_tokens=count, do_sample=False)), (length, count)
        seen.update(got[0, length:].tolist())
    for length, padding in ((9, 4), (90, 75), (6, 5)):
        ids, mask = padded(length, padding)
        expected = eager(model, ids, attention_mask=mask, max_new_tokens=12, do_sample=False)
        assert torch.equal(lm.generate(ids, mask, max_new_tokens=12, do_sample=False), expected), (length, padding)
        seen.update(expected[0, length:].tolist())
    assert len(seen) > 9  # or the test would say little


def test_beams_change_places_with_their_states():
    model = small_model("mamba")
    lm = pipeline.generation.compile(model, max_length=48, batch=6)
    ids, mask = padded(9, 4)
    settings = {"max_new_tokens": 20, "num_beams": 3, "do_sample": False}
    assert torch.equal(lm.generate(ids, mask, **settings), eager(model, ids, attention_mask=mask, **settings))


def test_each_of_several_texts_is_as_alone(hybrid):
    """Texts that come and go, together and beside others, until rows move to other slots."""
    _, lm = hybrid
    given = [(prompt(1, length, seed)[0], 6 + 9 * seed) for seed, length in enumerate((9, 1, 70, 4, 30, 2))]
    wanted = [lm.generate(ids[None], max_new_tokens=count)[0, len(ids) :].tolist() for ids, count in given]
    rows, waiting, started = lm.rows(), list(given), []
    for step in range(200):
        while waiting and rows.free and step % 3 == 0:
            ids, count = waiting.pop(0)
            started.append(rows.start(ids, max_new_tokens=count))
        if not rows.step() and not waiting:
            break
    assert [row.tokens for row in started] == wanted


def test_a_file_goes_on_without_torch(hybrid, tmp_path):
    _, lm = hybrid
    ids = prompt(1, 7)
    expected = lm.generate(ids, max_new_tokens=20).tolist()
    lm.save(tmp_path / "lm")
    program = f"""
import sys
import pipeline
lm = pipeline.generation.load({str(tmp_path / "lm")!r})
assert (lm.batch, lm.max_length, lm.extends) == (3, 96, True)
assert lm.generate({ids.tolist()}, max_new_tokens=20).tolist() == {expected}
assert not any(name in sys.modules for name in ("torch", "torch_mlir", "transformers"))
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_nothing_of_a_text_is_left(hybrid):
    _, lm = hybrid
    lm.generate(prompt(1, 7), max_new_tokens=5)
    assert {"cache.conv_0_0", "cache.recurrent_0_0", "cache.keys_1", "cache.values_1"} == set(lm.buffers)
    assert all(buffer.any() for buffer in lm.buffers.values())
    lm.reset()
    assert not any(buffer.any() for buffer in lm.buffers.values())


def test_a_text_goes_on_from_what_is_cached(hybrid):
    """Turn by turn; from the start where a turn has other tokens, or fewer, than the states have seen."""
    model, lm = hybrid
    lm.reset()
    cached = 0

    def check(text, mask, reused):
        expected = eager(model, text, attention_mask=mask, max_new_tokens=4)
        assert torch.equal(lm.generate(text, mask, max_new_tokens=4, reuse_cache=True), expected)
        assert lm.reused == reused
        return expected

    text, mask = padded(60, 40, 12)
    for added in (3, 1, 5):
        text = torch.cat([check(text, mask, cached), prompt(2, added, added)], 1)
        mask = torch.nn.functional.pad(mask, (0, 4 + added), value=1)
        cached = text.shape[1] - added - 1  # the last token that was given is not in the cache
    text = torch.cat([check(text[:, 10:], mask[:, 10:], cached - 10), prompt(2, 2)], 1)  # with less padding
    mask = torch.nn.functional.pad(mask[:, 10:], (0, 6), value=1)
    check(text[:, :-4], mask[:, :-4], 0)
    other = text.clone()
    other[1, 20] += 1
    check(other, mask, 0)


def test_prompts_in_chunks(hybrid):
    model, lm = hybrid
    ids, mask = padded(75, 30)
    expected = eager(model, ids, attention_mask=mask, max_new_tokens=9)
    for size in (7, 37, 74):  # the last chunk has five tokens, and one
        assert torch.equal(lm.generate(ids, mask, max_new_tokens=9, prefill_chunk_size=size), expected), size


def test_what_goes_back_is_refused(hybrid):
    _, lm = hybrid
    assert lm.extends and not lm.goes_back
    llama = pipeline.generation.compile(small_model("llama"), max_length=32)
    for name, value in {"prompt_lookup_num_tokens": 3, "assistant_model": llama}.items():
        with pytest.raises(OptionError, match=f"{name}: is not there for models whose layers keep states"):
            lm.generate(prompt(1, 5), max_new_tokens=3, **{name: value})
    with pytest.raises(OptionError, match="assistant_model: its layers keep states"):
        llama.generate(prompt(1, 5), max_new_tokens=3, assistant_model=lm)


def test_models_that_go_on_one_by_one():
    """transformers' Mamba takes several tokens for the start of a text."""
    lm = pipeline.generation.compile(small_model("mamba"), max_length=32)
    assert not lm.extends
    for settings in ({"reuse_cache": True}, {"prefill_chunk_size": 4}, {"prompt_lookup_num_tokens": 3}):
        with pytest.raises(OptionError, match=f"{next(iter(settings))}: is not there for models that go on from their"):
            lm.generate(prompt(1, 5), max_new_tokens=3, **settings)
    with pytest.raises(OptionError, match="extend: is not there for models that go on from their states with one"):
        _ = lm.extend


class ByItsNumbers(tf.MambaForCausalLM):
    """Goes on from other states than those of its layers."""

    def forward(self, input_ids=None, cache_params=None, attention_mask=None, use_cache=None, logits_to_keep=0):
        results = super().forward(
            input_ids, cache_params=cache_params, attention_mask=attention_mask, use_cache=use_cache
        )
        if cache_params is not None and input_ids.shape[1] == 1:
            results.logits = results.logits + 1
        return results


def test_models_that_go_on_otherwise_are_refused():
    model = ByItsNumbers(small_model("mamba").config).eval()
    with pytest.raises(CaptureError, match="keeps states of a kind that generation has not yet"):
        pipeline.generation.compile(model, max_length=16)
