"""Models whose attention is their own: those that take masks as they come are eager mode's, the others are refused."""

from __future__ import annotations

import pytest
import torch
import transformers as tf
from generation.small_models import ATTENDING_NAMES, VOCABULARY, eager, prompt, small_model

import pipeline
from pipeline import CaptureError


@pytest.mark.parametrize("name", ATTENDING_NAMES)
def test_tokens_are_those_of_eager_mode(name):
    """Rows of which one has padding, and a text that goes on from the cache."""
    model = small_model(name)
    lm = pipeline.generation.compile(model, max_length=64, batch=2)
    ids, mask = prompt(2, 9), torch.ones(2, 9, dtype=torch.int64)
    ids[1, :3], mask[1, :3] = 0, 0
    expected = eager(model, ids, attention_mask=mask, max_new_tokens=50)
    assert len(set(expected[0].tolist())) > 9  # or the test would say little
    assert torch.equal(lm.generate(ids, mask, max_new_tokens=50), expected)
    lm.generate(ids[:, :5], mask[:, :5], max_new_tokens=1)
    longer = torch.nn.functional.pad(mask, (0, 6), value=1)
    assert torch.equal(lm.generate(expected[:, :15], longer, max_new_tokens=44, reuse_cache=True), expected)
    assert lm.reused == 5


def bloom():
    config = tf.BloomConfig(vocab_size=VOCABULARY, hidden_size=32, n_layer=1, n_head=2)
    return tf.AutoModelForCausalLM.from_config(config).eval()


class ByItsMask(tf.GPTJForCausalLM):
    """Makes something of a mask itself."""

    def forward(self, input_ids=None, attention_mask=None, past_key_values=None, position_ids=None, use_cache=None):
        results = super().forward(input_ids, past_key_values, attention_mask, None, position_ids, use_cache=use_cache)
        if attention_mask is not None:
            results.logits = results.logits * attention_mask.float().mean()
        return results


def by_its_mask():
    config = tf.GPTJConfig(vocab_size=VOCABULARY, n_embd=32, n_layer=1, n_head=4, n_positions=64, rotary_dim=4)
    return ByItsMask(config).eval()


@pytest.mark.parametrize("model", [bloom, by_its_mask])
def test_models_that_understand_masks_otherwise_are_refused(model):
    with pytest.raises(
        CaptureError, match=r"its attention is its own, .* takes no masks of \[batch, 1, tokens, slots\]"
    ):
        pipeline.generation.compile(model(), max_length=8)


def test_a_cache_of_bytes_is_refused():
    with pytest.raises(CaptureError, match="which kv_cache='int8' is not for"):
        pipeline.generation.compile(small_model("falcon"), max_length=16, kv_cache="int8")
