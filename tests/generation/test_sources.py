"""Encoders that read speech or images, and those whose attention is their own: tokens of eager mode."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers as tf
from generation.models_with_inputs import ENCODERS, model_with_inputs, rows
from generation.small_models import VOCABULARY, prompt, traced_one_by_one

import pipeline
from pipeline import ArgumentError, CaptureError, OptionError


def compiled(model, read, batch=3, max_length=64):
    """From the first row, which is masked nowhere."""
    return pipeline.generation.compile(model, max_length, batch=batch, inputs=rows(read, 0, 1))


@pytest.fixture(scope="module")
def speech():
    model, read = model_with_inputs("speech_to_text")
    return model, read, compiled(model, read, batch=4)


@pytest.mark.parametrize("name", ENCODERS)
def test_tokens_are_those_of_eager_mode(name):
    """Two rows, of which one may be masked; each alone; texts that begin with tokens of the caller."""
    model, read = model_with_inputs(name)
    lm = compiled(model, read)
    assert not traced_one_by_one(lm)
    seen = set()
    for first, count, begun in (
        (0, 2, None),
        (1, 1, None),
        (0, 1, None),
        (0, 2, [[3, 7, 9], [3, 8, 9]]),
        (0, 1, [[7]]),
    ):
        given = rows(read, first, count)
        if begun is not None:
            given["decoder_input_ids"] = torch.tensor(begun)
        expected = model.generate(**given, max_new_tokens=25)
        got = lm.generate(**given, max_new_tokens=25)
        assert torch.equal(got, expected), (first, count, begun)
        seen.update(expected.flatten().tolist())
    assert len(seen) > 5  # or the test would say little


def test_positional_features_beams_draws_and_files(speech, tmp_path):
    model, read, lm = speech
    features, mask = read["input_features"], read["attention_mask"]
    expected = model.generate(**read, max_new_tokens=9)
    assert torch.equal(lm.generate(features, mask, max_new_tokens=9), expected)
    assert torch.equal(lm.generate(input_features=features, attention_mask=mask, max_new_tokens=9), expected)
    for settings in ({"num_beams": 2}, {"num_beams": 2, "num_return_sequences": 2}, {"do_sample": True}):
        found = []
        for run in (lm.generate, model.generate):
            torch.manual_seed(3)
            found.append(run(**read, max_new_tokens=15, **settings))
        assert torch.equal(*found), settings
    lm.save(tmp_path / "lm.pipeline")
    loaded = pipeline.generation.load(tmp_path / "lm.pipeline")
    for first in (0, 1, 0):  # nothing of a source before stays
        given = {name: tensor.numpy() for name, tensor in rows(read, first, 1).items()}
        assert np.array_equal(
            loaded.generate(**given, max_new_tokens=9), model.generate(**rows(read, first, 1), max_new_tokens=9)
        )


def test_what_does_not_fit(speech):
    model, read, lm = speech
    for wrong, said in (
        ({"input_features": torch.randn(2, 81, 16)}, "input_features.*expected float32"),
        ({"input_features": torch.randn(5, 80, 16)}, "input_features: expected 1 for each of 4 rows at most, got 5"),
        ({"attention_mask": read["attention_mask"][:1]}, "expected as many rows of each, got"),
        ({"attention_mask": None}, "attention_mask: expected a tensor for all rows, got NoneType"),
        ({"decoder_input_ids": torch.ones(3, 2, dtype=torch.int64)}, "decoder_input_ids: expected tokens for 2 rows"),
        ({"decoder_input_ids": torch.ones(2, 0, dtype=torch.int64)}, "decoder_input_ids: expected tokens for 2 rows"),
    ):
        with pytest.raises(ArgumentError, match=said):
            lm.generate(**read | wrong, max_new_tokens=2)
    with pytest.raises(OptionError, match="generate has no setting 'pixel_values'"):
        lm.generate(**read, pixel_values=read["input_features"])
    with pytest.raises(OptionError, match="inputs: the encoder of Speech2Text.* reads input_features"):
        pipeline.generation.compile(model, 64)
    wrong = rows(read, 0, 1) | {"input_features": torch.randn(1, 80, 17)}
    with pytest.raises(CaptureError, match="Speech2Text.*: does not run on attention_mask, input_features"):
        pipeline.generation.compile(model, 64, inputs=wrong)
    with pytest.raises(OptionError, match="max_source_length: the model reads no tokens"):
        pipeline.generation.compile(model, 64, max_source_length=9, inputs=rows(read, 0, 1))
    with pytest.raises(OptionError, match="max_length: the model has 128 positions, 200 are too many"):
        pipeline.generation.compile(model, 200, inputs=rows(read, 0, 1))
    bart = tf.BartForConditionalGeneration(tf.BartConfig(**_SIZES, max_position_embeddings=128))
    with pytest.raises(OptionError, match="inputs: sources of tokens have any length"):
        pipeline.generation.compile(bart, 64, inputs={"input_ids": prompt(1, 9)})


_HEADS = {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
_LAYERS = {"encoder_layers": 1, "decoder_layers": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48}
_TOKENS = {"pad_token_id": 1, "eos_token_id": None, "decoder_start_token_id": 2, "forced_eos_token_id": None}
_SIZES = {"vocab_size": VOCABULARY, "d_model": 32, **_HEADS, **_LAYERS, **_TOKENS}
_T5 = {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}

#: Encoders with attention of their own; masks that are added to scores; experts; sources in blocks.
_OF_TEXT = {
    "pegasus_x": lambda: tf.PegasusXForConditionalGeneration(tf.PegasusXConfig(**_SIZES, block_size=8)),
    "mvp": lambda: tf.MvpForConditionalGeneration(tf.MvpConfig(**_SIZES)),
    "nllb_moe": lambda: tf.NllbMoeForConditionalGeneration(tf.NllbMoeConfig(**_SIZES, num_experts=4)),
    "longt5": lambda: tf.LongT5ForConditionalGeneration(
        tf.LongT5Config(**_T5, local_radius=4, eos_token_id=None, decoder_start_token_id=0, pad_token_id=0)
    ),
}


@pytest.mark.parametrize("name", _OF_TEXT)
def test_sources_of_text(name):
    torch.manual_seed(0)
    model = _OF_TEXT[name]().eval().requires_grad_(False)
    for weight, parameter in model.named_parameters():
        if parameter.ndim > 1:
            parameter.normal_(0, 1 if "embed_positions" in weight else 0.5)
    model.lm_head.weight = torch.nn.Parameter(torch.randn(VOCABULARY, 32), requires_grad=False)
    model.generation_config.eos_token_id = None
    lm = pipeline.generation.compile(model, 64, max_source_length=40, batch=2)
    said = [one.reason for one in lm.prefill.remarks if "sources are as long as the longest" in one.reason]
    assert len(said) == (name in ("longt5", "pegasus_x"))
    seen = set()
    for length, padding in ((13, 4), (1, 0), (40, 25), (2, 1)):
        ids = prompt(2, length)
        mask = torch.ones_like(ids)
        ids[1, length - padding :], mask[1, length - padding :] = model.config.pad_token_id, 0
        expected = model.generate(ids, attention_mask=mask, max_new_tokens=15, do_sample=False, num_beams=1)
        assert torch.equal(lm.generate(ids, mask, max_new_tokens=15, num_beams=1), expected), length
        seen.update(expected.flatten().tolist())
    assert len(seen) > 5
