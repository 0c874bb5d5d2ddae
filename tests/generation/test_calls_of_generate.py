"""What calls of transformers' `generate` give beside tokens: how many texts and tokens, configs, streamers."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
import torch
import transformers as tf
from generation.small_models import VOCABULARY, eager, prompt, small_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import pipeline
from pipeline import ArgumentError, OptionError
from pipeline.generation.settings import Settings


@pytest.fixture(scope="module")
def llama():
    model = small_model("llama")
    return model, pipeline.generation.compile(model, max_length=64, batch=8)


class Streamer:
    """Keeps what it is given."""

    def __init__(self):
        self.given, self.has_ended = [], False

    def put(self, tokens):
        assert not self.has_ended
        self.given.append(tokens)

    def end(self):
        self.has_ended = True


@pytest.mark.parametrize(
    "settings",
    [
        {"do_sample": True, "num_return_sequences": 4},
        {"do_sample": True, "num_return_sequences": 1, "top_k": 5},
        {"num_beams": 4, "num_return_sequences": 3},
        {"num_beams": 4, "num_return_sequences": 4, "ends": True, "early_stopping": True},
        {"num_beams": 3, "num_return_sequences": 2, "ends": True, "length_penalty": -1.0},
    ],
    ids=str,
)
def test_several_texts_of_each_prompt(llama, settings):
    model, lm = llama
    ids, mask = prompt(2, 7, seed=3), torch.ones(2, 7, dtype=torch.int64)
    mask[1, :3], ids[1, :3] = 0, 0
    settings = {"max_new_tokens": 20, "attention_mask": mask, **settings}
    if settings.pop("ends", False):
        free = eager(model, ids, max_new_tokens=20, num_beams=4)
        settings |= {"eos_token_id": sorted({int(free[0, -9]), int(free[1, -3])}), "pad_token_id": 0}
    torch.manual_seed(5)
    expected = eager(model, ids, **settings)
    torch.manual_seed(5)
    got = lm.generate(ids, **settings)
    assert torch.equal(got, expected)
    assert len({tuple(text) for text in got.tolist()}) == len(got) == 2 * settings["num_return_sequences"]


def test_several_texts_with_drafts(llama):
    """They are other texts than without: draws are others. Arrays come back as arrays."""
    _, lm = llama
    ids = prompt(2, 5).numpy()
    pipeline.manual_seed(1)
    got = lm.generate(ids, max_new_tokens=9, do_sample=True, num_return_sequences=3, prompt_lookup_num_tokens=2)
    assert got.shape == (6, 14) and (got[:, :5] == ids.repeat(3, 0)).all()
    assert len({tuple(text) for text in got.tolist()}) == 6
    pipeline.manual_seed(1)
    settings = {"max_new_tokens": 9, "do_sample": True, "num_return_sequences": 3}
    assert lm.generate(ids, **settings, assistant_model=small_assistant()).shape == (6, 14)


def small_assistant():
    return pipeline.generation.compile(small_model("llama"), max_length=64, batch=6)


def test_how_long_texts_are(llama):
    model, lm = llama
    ids = prompt(2, 7)
    for settings in (
        {"max_length": 12},
        {"max_length": 8},
        {"max_length": 9, "max_new_tokens": 20},
        {"max_length": 65},
    ):
        assert torch.equal(lm.generate(ids, **settings), eager(model, ids, **settings)), settings
    rows = lm.rows()
    row = rows.start(ids[0], max_length=10)
    while rows.step():
        pass
    assert row.tokens == eager(model, ids[:1], max_length=10)[0, 7:].tolist()


def test_generation_configs(llama):
    model, lm = llama
    ids = prompt(1, 7)
    config = tf.GenerationConfig(max_new_tokens=11, repetition_penalty=1.7, eos_token_id=None, pad_token_id=0)
    expected = model.generate(ids, generation_config=config, use_cache=True)
    assert torch.equal(lm.generate(ids, generation_config=config, use_cache=True), expected)
    assert not torch.equal(lm.generate(ids, max_new_tokens=11), expected)
    assert torch.equal(lm.generate(ids, generation_config=config.to_dict()), expected)
    shorter = model.generate(ids, generation_config=config, max_new_tokens=3)
    assert torch.equal(lm.generate(ids, generation_config=config, max_new_tokens=3), shorter)
    assert [tokens.tolist() for tokens in lm.stream(ids, generation_config=config)] == expected[0, 7:, None].tolist()


@pytest.mark.parametrize("settings", [{}, {"prompt_lookup_num_tokens": 3}, {"eos_token_id": 5}], ids=str)
def test_streamers(llama, settings):
    model, lm = llama
    ids = prompt(1, 7)
    theirs, ours = Streamer(), Streamer()
    expected = eager(model, ids, max_new_tokens=9, streamer=theirs, **settings)
    assert torch.equal(lm.generate(ids, max_new_tokens=9, streamer=ours, **settings), expected)
    assert ours.has_ended
    flat = [torch.cat([tokens.flatten() for tokens in streamer.given]) for streamer in (ours, theirs)]
    assert torch.equal(*flat) and torch.equal(ours.given[0], ids)


def without_multiples(number):
    def process(ids, scores):
        scores[:, ::number] = -torch.inf  # in place, as some do
        return scores

    return process


def below_the_last(ids, scores):
    """Depends on the text."""
    places = torch.arange(scores.shape[1])
    return scores.masked_fill((places - ids[:, -1:]).abs() < 9, -torch.inf)


@pytest.mark.parametrize("settings", [{}, {"do_sample": True, "temperature": 2.0}, {"num_beams": 3}], ids=str)
def test_processors_of_the_caller(llama, settings):
    model, lm = llama
    ids = prompt(2, 7)
    functions = tf.LogitsProcessorList([without_multiples(3), below_the_last])
    found = []
    for run in (model.generate, lm.generate):
        torch.manual_seed(3)
        found.append(run(ids, max_new_tokens=15, logits_processor=functions, **settings))
    assert torch.equal(*found) and (found[0][:, 7:] % 3 != 0).all()
    assert not torch.equal(found[0], lm.generate(ids, max_new_tokens=15, **settings))
    one = lm.generate(ids, max_new_tokens=15, logits_processor=without_multiples(3))
    assert torch.equal(one, lm.generate(ids, max_new_tokens=15, logits_processor=[without_multiples(3)]))


@pytest.mark.parametrize("settings", [{}, {"num_beams": 3}], ids=str)
def test_tokens_that_the_caller_allows(llama, settings):
    model, lm = llama
    ids = prompt(2, 7)

    def allow(number, text):
        assert text.ndim == 1
        return [(int(text[-1]) * 5 + step) % 90 + 2 for step in range(4 + number)]

    settings = {"max_new_tokens": 15, "prefix_allowed_tokens_fn": allow, **settings}
    assert torch.equal(lm.generate(ids, **settings), eager(model, ids, **settings))


@pytest.mark.parametrize("ends", [{}, {"eos_token_id": 96, "pad_token_id": 0}], ids=str)
def test_texts_that_the_caller_ends(llama, ends):
    model, lm = llama
    ids = prompt(2, 7)
    free = eager(model, ids, max_new_tokens=20)

    class AtToken(tf.StoppingCriteria):
        def __call__(self, ids, scores, **others):
            return ids[:, -1] == free[0, 12]

    for criteria in (
        tf.StoppingCriteriaList([AtToken()]),
        tf.StoppingCriteriaList([lambda ids, scores, **others: ids.sum(1) % 7 == 0, AtToken()]),
    ):
        settings = {"max_new_tokens": 20, "stopping_criteria": criteria, **ends}
        for rows in (ids, ids[:1]):
            assert torch.equal(lm.generate(rows, **settings), eager(model, rows, **settings))
    first = free[0, 7:].tolist().index(int(free[0, 12]))
    assert lm.generate(ids[:1], max_new_tokens=20, stopping_criteria=AtToken()).shape[1] == 8 + first


def test_functions_of_arrays(llama):
    _, lm = llama
    ids = prompt(1, 7).numpy()
    seen = []

    def process(text, scores):
        seen.append((type(text), text.shape, scores.dtype.name))
        return np.where(np.arange(scores.shape[1]) % 2, scores, -np.inf)

    got = lm.generate(ids, max_new_tokens=4, logits_processor=process, stopping_criteria=lambda text, _: False)
    assert (got[:, 7:] % 2 == 1).all()
    assert seen == [(np.ndarray, (1, 7 + step), "float32") for step in range(4)]
    row = lm.rows()
    text = row.start(ids[0], max_new_tokens=4, logits_processor=process)
    while row.step():
        pass
    assert text.tokens == got[0, 7:].tolist()


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"repetition_penalty": 1.7, "eos_token_id": 9},
        {"num_beams": 3, "num_return_sequences": 2},
        {"num_beams": 3, "eos_token_id": [9, 11], "length_penalty": 0.5, "renormalize_logits": True},
        {"do_sample": True, "temperature": 0.8, "top_k": 5, "max_new_tokens": 4},
    ],
    ids=str,
)
def test_scores_and_logits_of_steps(llama, how):
    model, lm = llama
    ids = prompt(2, 7)
    settings = {"max_new_tokens": 12, "return_dict_in_generate": True, "output_scores": True, "output_logits": True}
    settings |= how
    torch.manual_seed(0)
    expected = eager(model, ids, **settings)
    torch.manual_seed(0)
    found = lm.generate(ids, **settings)
    for name in ("sequences", "beam_indices"):
        assert (name in expected) == (getattr(found, name) is not None)
        if name in expected:
            assert torch.equal(found[name], expected[name])
    for name in ("scores", "logits"):
        for step, of_eager in zip(found[name], expected[name], strict=True):
            torch.testing.assert_close(step, of_eager, rtol=1e-4, atol=1e-4)
    if "num_beams" in how:
        torch.testing.assert_close(found.sequences_scores, expected.sequences_scores, rtol=1e-4, atol=1e-4)
    transitions = [
        model.compute_transition_scores(of.sequences, of.scores, of.beam_indices if "num_beams" in how else None)
        for of in (found, expected)
    ]
    torch.testing.assert_close(*transitions, rtol=1e-4, atol=1e-4)


def test_what_is_given_of_steps(llama):
    _, lm = llama
    ids = prompt(1, 5)
    plain = lm.generate(ids, max_new_tokens=3, output_scores=True)
    found = lm.generate(ids, max_new_tokens=3, return_dict_in_generate=True)
    assert torch.equal(found.sequences, plain) and found.scores is None and found.logits is None
    assert torch.equal(found[0], plain) and torch.equal(found["sequences"], plain)
    with pytest.raises(IndexError):
        found[1]
    arrays = lm.generate(ids.numpy(), max_new_tokens=3, return_dict_in_generate=True, output_logits=True)
    assert isinstance(arrays.logits[2], np.ndarray) and arrays[1] is arrays.logits
    drafts = {"prompt_lookup_num_tokens": 2, "max_new_tokens": 3, "return_dict_in_generate": True}
    assert torch.equal(lm.generate(ids, **drafts).sequences, plain)
    with pytest.raises(OptionError, match="prompt_lookup_num_tokens: output_scores and output_logits are not there"):
        lm.generate(ids, **drafts, output_scores=True)


def test_biased_sequences_and_texts_that_are_to_end(llama):
    model, lm = llama
    ids = prompt(2, 7)
    plain = lm.generate(ids, max_new_tokens=12)
    first = plain[0, 7:9].tolist()
    for settings in (
        {"sequence_bias": {(first[0],): -9.0, (3,): 2.0}},
        {"sequence_bias": [[first, -9.0]]},
        {"exponential_decay_length_penalty": (2, 1.9), "eos_token_id": 9},
    ):
        found = lm.generate(ids, max_new_tokens=12, **settings)
        assert torch.equal(found, eager(model, ids, max_new_tokens=12, **settings)), settings
        assert found.shape != plain.shape or not torch.equal(found, plain)


def test_texts_end_with_strings(llama):
    model, lm = llama
    letters = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet())[:VOCABULARY])}
    words = Tokenizer(models.BPE(letters, []))
    words.decoder = decoders.ByteLevel()
    tokenizer = tf.PreTrainedTokenizerFast(tokenizer_object=words)
    ids = prompt(1, 7)
    plain = lm.generate(ids, max_new_tokens=12)
    end = "".join(sorted(letters)[token] for token in plain[0, 9:11].tolist())
    settings = {"stop_strings": ["never", end], "tokenizer": tokenizer, "max_new_tokens": 12}
    expected = eager(model, ids, **settings)
    assert torch.equal(lm.generate(ids, **settings), expected) and expected.shape[1] < plain.shape[1]
    assert np.array_equal(lm.generate(ids.numpy(), **settings), expected)


def test_what_is_refused(llama):
    _, lm = llama
    ids = prompt(2, 7)
    for settings, message in (
        ({"num_return_sequences": 2}, "of 1 texts that are not drawn, 2 are asked for"),
        ({"num_return_sequences": 4, "num_beams": 3}, "of 3 texts that are not drawn, 4 are asked for"),
        ({"num_return_sequences": 0}, "num_return_sequences: expected a number from 1"),
        ({"max_length": -1}, "max_length: expected a number from 0"),
        ({"generation_config": 3}, "generation_config: expected one of transformers' or a dictionary, got 3"),
        ({"generation_config": {"penalty_alpha": 0.6}}, "the generation_config has penalty_alpha=0.6"),
        ({"logits_processor": 3}, "logits_processor: expected functions, got 3"),
        ({"sequence_bias": 3}, "sequence_bias: expected numbers by sequences of tokens, got 3"),
        ({"sequence_bias": {(VOCABULARY,): 1.0}}, "sequence_bias: expected tokens from 0 to"),
        ({"exponential_decay_length_penalty": 3}, "expected a number of tokens and a factor, got 3"),
        ({"stop_strings": "w3"}, "stop_strings: need tokenizer=, the model's tokenizer of transformers, got None"),
        ({"stop_strings": 3}, "stop_strings: expected strings, got 3"),
        ({"stopping_criteria": print, "num_beams": 2}, "stopping_criteria: is not there for beams"),
        ({"logits_processor": print, "prompt_lookup_num_tokens": 2}, "logits_processor: is not there for drafts"),
        ({"num_beams": 2, "streamer": Streamer()}, "num_beams: which beam is the best is known at the end"),
    ):
        with pytest.raises(OptionError, match=message):
            lm.generate(ids, max_new_tokens=3, **settings)
    with pytest.raises(ArgumentError, match="2 rows of 5 texts each, the model was compiled for batch=8"):
        lm.generate(ids, max_new_tokens=3, do_sample=True, num_return_sequences=5)
    for settings, message in (
        ({"logits_processor": lambda ids, scores: scores[:, :5]}, r"expected scores \[2, 97\] of .*, got \[2, 5\]"),
        ({"stopping_criteria": lambda ids, scores: ids[:, :2] > 3}, r"expected bool\[2\] of .*, got \[2, 2\]"),
        ({"prefix_allowed_tokens_fn": lambda number, ids: []}, "expected some tokens from 0 to 96 for row 0, got"),
        ({"prefix_allowed_tokens_fn": lambda number, ids: [97]}, r"for row 0, got \[97\]"),
    ):
        with pytest.raises(ArgumentError, match=message):
            lm.generate(ids, max_new_tokens=3, **settings)
    with pytest.raises(ArgumentError, match="7 tokens leave no room for new ones, max_length=7"):
        lm.generate(ids, max_length=7)
    with pytest.raises(OptionError, match="num_return_sequences: is not there for rows that come and go"):
        lm.rows().start(ids[0], do_sample=True, num_return_sequences=2)


@pytest.mark.parametrize("setting", [found.name for found in fields(Settings) if found.type.startswith("int")])
@pytest.mark.parametrize("value", ["12", [], 2.5], ids=str)
def test_whole_numbers_that_are_none_are_one_clear_error(setting, value):
    with pytest.raises(OptionError, match=f"{setting}: expected .*, got"):
        Settings().but(**{setting: value})


@pytest.mark.parametrize("setting", [found.name for found in fields(Settings) if found.type.startswith("float")])
@pytest.mark.parametrize("value", ["12", []], ids=str)
def test_numbers_that_are_none_are_one_clear_error(setting, value):
    with pytest.raises(OptionError, match=f"{setting}: expected .*, got"):
        Settings().but(**{setting: value})
