"""Scores are what transformers' processors make of logits, for settings one by one, together, and out of range."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers as tf
from generation.small_models import VOCABULARY, eager, prompt, small_model

import pipeline
from pipeline import OptionError
from pipeline.generation.settings import Settings
from pipeline.generation.token_choice import TokenChoice, warped

ROWS, BEGIN, END = 3, 6, 20

#: Tokens that end texts: the second one is seldom the best.
ENDS = [5, 60]

PROCESSED = [
    {"repetition_penalty": 1.7},
    {"no_repeat_ngram_size": 1},
    {"no_repeat_ngram_size": 2},
    {"no_repeat_ngram_size": 3},
    {"no_repeat_ngram_size": 40},
    {"bad_words_ids": [[3], [5], [4, 6], [2, 3, 4], [7] * 30]},
    {"bad_words_ids": [[3], [5], [60], [5, 6]], "eos_token_id": ENDS},
    {"bad_words_ids": [[5], [60]], "eos_token_id": ENDS[0]},
    {"min_length": BEGIN + 3, "eos_token_id": ENDS},
    {"min_new_tokens": 3, "eos_token_id": ENDS[0]},
    {"forced_bos_token_id": 8},
    {"forced_eos_token_id": 9},
    {"forced_eos_token_id": [9, 11]},
    {"suppress_tokens": [0, 1, 2]},
    {"begin_suppress_tokens": [3, 4]},
    {"begin_suppress_tokens": [3, 4], "forced_bos_token_id": 8},
    {"sequence_bias": {(3,): 2.0, (4, 6): -1.5, (2, 3, 4): 3.0, (7,) * 30: 1.0}},
    {"sequence_bias": [[[3], 2.5], [[5, 6], -2.5]]},
    {"exponential_decay_length_penalty": (3, 1.3), "eos_token_id": ENDS},
    {"exponential_decay_length_penalty": (0, 0.5), "eos_token_id": ENDS[0], "min_new_tokens": 4},
    {"encoder_repetition_penalty": 1.6},
    {"encoder_no_repeat_ngram_size": 1},
    {"encoder_no_repeat_ngram_size": 2},
    {"encoder_no_repeat_ngram_size": 40},
    {
        "repetition_penalty": 0.8,
        "no_repeat_ngram_size": 2,
        "bad_words_ids": [[3, 4]],
        "min_new_tokens": 5,
        "eos_token_id": ENDS,
        "forced_eos_token_id": 5,
        "suppress_tokens": [7],
        "sequence_bias": {(3,): 2.0, (4, 6): -1.5},
        "encoder_repetition_penalty": 1.6,
        "encoder_no_repeat_ngram_size": 3,
        "exponential_decay_length_penalty": (3, 1.3),
    },
]

#: The texts that prompts are about.
READ = torch.randint(2, 7, (ROWS, 9), generator=torch.Generator().manual_seed(5))

DRAWN = [
    {"typical_p": 0.3, "top_k": 0},
    {"typical_p": 0.9, "temperature": 0.5},
    {"epsilon_cutoff": 0.02, "top_k": 0},
    {"epsilon_cutoff": 0.9},
    {"eta_cutoff": 0.05, "top_k": 0},
    {"eta_cutoff": 0.3, "top_k": 7, "top_p": 0.9, "typical_p": 0.8, "no_repeat_ngram_size": 2},
]


@pytest.fixture(scope="module")
def llama():
    model = small_model("llama")
    return model, pipeline.generation.compile(model, max_length=64, batch=4)


def theirs(model, begin, mask, settings):
    """What transformers makes of (tokens so far, scores)."""
    config = tf.GenerationConfig(max_length=END, **settings)
    model._prepare_special_tokens(config, kwargs_has_attention_mask=True)
    processors = model._get_logits_processor(
        generation_config=config,
        input_ids_seq_length=begin,
        encoder_input_ids=READ,
        device="cpu",
        model_kwargs={"attention_mask": mask},
    )
    return lambda before, scores: processors(before, scores.clone())


@pytest.mark.parametrize("settings", PROCESSED, ids=str)
@pytest.mark.parametrize("begin", [1, BEGIN])
def test_scores_are_those_of_transformers(llama, begin, settings):
    """Texts of few tokens, so that much comes again, from the prompt on to their last place."""
    generator = torch.Generator().manual_seed(begin)
    text = torch.randint(2, 7, (ROWS, END), generator=generator)
    padding = torch.tensor([0, 2, 0]) if begin > 1 else torch.zeros(ROWS, dtype=torch.int64)
    text[torch.arange(END) < padding[:, None]] = 50  # a token that comes nowhere else
    mask = (torch.arange(begin) >= padding[:, None]).long()
    expected = theirs(llama[0], begin, mask, settings)
    choice = TokenChoice(Settings().but(**settings), begin, END, padding.numpy(), READ.numpy())
    for count in range(begin, END):
        scores = torch.randn(ROWS, VOCABULARY, generator=generator)
        got = choice.processed(scores.numpy(), text[:, :count].numpy())
        assert np.array_equal(got, expected(text[:, :count], scores).numpy()), count


@pytest.mark.parametrize("settings", DRAWN, ids=str)
def test_probabilities_are_those_of_transformers(llama, settings):
    generator = torch.Generator().manual_seed(0)
    text = torch.randint(2, 40, (ROWS, BEGIN), generator=generator)
    expected = theirs(llama[0], BEGIN, torch.ones_like(text), {"do_sample": True, "top_k": 50, **settings})
    choice = TokenChoice(Settings().but(do_sample=True, **settings), BEGIN, END, np.zeros(ROWS, np.int64))
    for scale in (0.1, 1, 4):
        scores = torch.randn(ROWS, VOCABULARY, generator=generator) * scale
        wanted = torch.softmax(expected(text, scores), -1).numpy()
        got = choice.probabilities(scores.numpy(), text.numpy())
        assert np.array_equal(got == 0, wanted == 0)
        assert np.allclose(got, wanted, rtol=1e-5)


@pytest.mark.parametrize(
    "settings",
    [{"top_k": 1}, {"top_p": 0.01}, {"min_p": 0.99}, {"typical_p": 0.01}, {"epsilon_cutoff": 0.9}, {"eta_cutoff": 0.9}],
    ids=str,
)
@pytest.mark.parametrize("ends", [None, ENDS])
def test_beams_that_are_drawn_have_tokens_to_go_on_with(llama, settings, ends):
    settings = {"top_k": 0, "eos_token_id": ends, **settings}
    text = torch.randint(2, 40, (ROWS, BEGIN), generator=torch.Generator().manual_seed(0))
    scores = torch.log_softmax(torch.randn(ROWS, VOCABULARY, generator=torch.Generator().manual_seed(1)) * 3, -1)
    expected = theirs(llama[0], BEGIN, torch.ones_like(text), {"do_sample": True, "num_beams": 2, **settings})
    found = warped(scores.numpy(), Settings().but(**settings), 2 if ends is None else 3)
    assert np.array_equal(found, expected(text, scores))
    assert ((found > -np.inf).sum(-1) > 1).all()


def test_scores_may_be_logarithms_of_probabilities(llama):
    text = torch.randint(2, 40, (ROWS, BEGIN), generator=torch.Generator().manual_seed(0))
    settings = {"renormalize_logits": True, "suppress_tokens": [3, 4]}
    scores = torch.randn(ROWS, VOCABULARY, generator=torch.Generator().manual_seed(1))
    expected = theirs(llama[0], BEGIN, torch.ones_like(text), settings)(text, scores)
    choice = TokenChoice(Settings().but(**settings), BEGIN, END, np.zeros(ROWS, np.int64))
    np.testing.assert_allclose(choice.kept(choice.processed(scores.numpy(), text.numpy())), expected, rtol=1e-5)


@pytest.mark.parametrize("how", [{}, {"num_beams": 2}, {"do_sample": True, "typical_p": 0.9}], ids=str)
def test_texts_are_those_of_transformers(llama, how):
    """Two rows, one with padding of a token that would come often."""
    model, lm = llama
    ids, mask = prompt(2, 7), torch.ones(2, 7, dtype=torch.int64)
    free = lm.generate(ids, mask, max_new_tokens=24)
    often = int(free[1, 7:].mode().values)
    ids[1, :3], mask[1, :3] = often, 0
    settings = {
        "repetition_penalty": 1.3,
        "no_repeat_ngram_size": 3,
        "bad_words_ids": [[int(free[0, 9])], free[0, 10:12].tolist()],
        "min_new_tokens": 12,
        "eos_token_id": [int(free[0, 8]), often],
        "forced_eos_token_id": 4,
        "begin_suppress_tokens": [int(free[0, 7])],
        "pad_token_id": 0,
        "max_new_tokens": 24,
        **how,
    }
    torch.manual_seed(0)
    got = lm.generate(ids, mask, **settings)
    torch.manual_seed(0)
    assert torch.equal(got, eager(model, ids, attention_mask=mask, **settings))


def test_tokens_are_of_any_library():
    for given in (5, [5], np.int64(5), np.array([5]), torch.tensor(5), torch.tensor([5])):
        settings = Settings().but(eos_token_id=given, suppress_tokens=given, bad_words_ids=[given])
        assert (settings.eos_token_id, settings.suppress_tokens, settings.bad_words_ids) == ((5,), (5,), ((5,),))
    assert Settings(forced_eos_token_id=(5,)).but(forced_eos_token_id=[]).forced_eos_token_id == ()


def test_drafts_heed_them(llama):
    _, lm = llama
    ids = prompt(2, 7)
    settings = {"no_repeat_ngram_size": 4, "min_new_tokens": 20, "eos_token_id": 3, "forced_eos_token_id": 4}
    expected = lm.generate(ids, max_new_tokens=30, **settings)
    assert torch.equal(lm.generate(ids, max_new_tokens=30, prompt_lookup_num_tokens=3, **settings), expected)


def test_rows_that_come_and_go_heed_them(llama):
    _, lm = llama
    ids = prompt(1, 7)
    settings = {"no_repeat_ngram_size": 2, "max_new_tokens": 20, "forced_eos_token_id": 4}
    expected = lm.generate(ids, **settings)[0, 7:].tolist()
    rows = lm.rows()
    row = rows.start(ids[0], **settings)
    while not row.is_done:
        rows.step()
    assert row.tokens == expected and expected[-1] == 4


def test_what_is_out_of_range_is_refused(llama):
    _, lm = llama
    for settings in (
        {"typical_p": 0.0},
        {"epsilon_cutoff": 1.0},
        {"eta_cutoff": -0.1},
        {"no_repeat_ngram_size": -1},
        {"bad_words_ids": [[]]},
        {"bad_words_ids": [[3.5]]},
        {"bad_words_ids": 5},
        {"eos_token_id": "end"},
        {"min_length": -1},
        {"min_new_tokens": -1},
        {"bad_words_ids": [[3, VOCABULARY]]},
        {"suppress_tokens": [-1]},
        {"begin_suppress_tokens": [VOCABULARY]},
        {"forced_bos_token_id": VOCABULARY},
        {"forced_eos_token_id": [VOCABULARY]},
    ):
        (name,) = settings
        with pytest.raises(OptionError, match=f"^{name}: expected"):
            lm.generate(prompt(1, 4), max_new_tokens=2, **settings)
        with pytest.raises(OptionError, match=f"^{name}: expected"):
            lm.rows().start(prompt(1, 4)[0], max_new_tokens=2, **settings)
