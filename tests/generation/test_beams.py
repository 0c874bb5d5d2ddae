"""Beams are those of transformers' own search, and the cache's rows change places where they are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from generation.small_models import eager, prompt, small_model

import pipeline
from pipeline import ArgumentError, OptionError
from pipeline.generation.beams import Beams
from pipeline.generation.cache import CacheRows, _moves
from pipeline.generation.prompt import Prompt
from pipeline.generation.sampling import NumpyDraw
from pipeline.generation.settings import Settings

BATCH = 8


@pytest.fixture(scope="module")
def llama():
    model = small_model("llama")
    return model, pipeline.generation.compile(model, max_length=64, batch=BATCH)


def ends_of(model, ids):
    """Tokens that likely texts have, so that beams end at different lengths."""
    free = eager(model, ids, max_new_tokens=24, num_beams=4)
    return sorted({int(free[0, -9]), int(free[0, -3])})


@pytest.mark.parametrize(
    "settings",
    [
        {"num_beams": 2},
        {"num_beams": 4},
        {"num_beams": 4, "ends": True},
        {"num_beams": 4, "ends": True, "early_stopping": True},
        {"num_beams": 3, "ends": True, "early_stopping": "never", "length_penalty": 2.0},
        {"num_beams": 3, "ends": True, "early_stopping": "never", "length_penalty": -1.0},
        {"num_beams": 4, "ends": True, "length_penalty": 0.0, "repetition_penalty": 1.3},
    ],
    ids=str,
)
def test_the_best_text_is_that_of_eager_mode(llama, settings):
    model, lm = llama
    settings = dict(settings)
    if settings.pop("ends", False):
        settings |= {"eos_token_id": ends_of(model, prompt(2, 7, seed=3)), "pad_token_id": 0}
    for rows, length in ((1, 9), (2, 7), (1, 1)):
        ids = prompt(rows, length, seed=length)
        got = lm.generate(ids, max_new_tokens=24, **settings)
        assert torch.equal(got, eager(model, ids, max_new_tokens=24, **settings)), (rows, length)


@pytest.mark.parametrize("name", ["gpt2", "mistral"])
def test_other_models_and_padding(name):
    model = small_model(name)
    lm = pipeline.generation.compile(model, max_length=64, batch=6)
    ids = prompt(2, 11)
    mask = torch.ones_like(ids)
    ids[1, :4], mask[1, :4] = 0, 0
    got = lm.generate(ids, mask, max_new_tokens=40, num_beams=3)
    assert torch.equal(got, eager(model, ids, attention_mask=mask, max_new_tokens=40, num_beams=3))


def test_texts_that_end_early_and_often(llama):
    model, lm = llama
    ends = [5, 11, 17]
    for seed in range(3):
        ids = prompt(2, 5, seed)
        for stopping, penalty in itertools.product((False, True, "never"), (1.0, 0.3)):
            settings = {"num_beams": 3, "early_stopping": stopping, "length_penalty": penalty, "eos_token_id": ends}
            got = lm.generate(ids, max_new_tokens=20, **settings)
            assert torch.equal(got, eager(model, ids, max_new_tokens=20, pad_token_id=0, **settings))


def test_rows_change_places_in_place():
    """All ways in which three rows, and some in which six, become each other's; nothing but these rows is written."""
    generator = np.random.default_rng(0)
    ways = [*itertools.product(range(3), repeat=3), *generator.integers(0, 6, (60, 6)).tolist(), [1, 2, 0, 4, 3, 3]]
    for sources in ways:
        rows, before = len(sources), generator.standard_normal((2 * len(sources), 4, 9))
        buffers = {"cache.keys_0": before.copy(), "cache.values_0": before.swapaxes(1, 2).copy()}
        CacheRows(buffers, rows).reorder(sources, 7)
        wanted = before.copy()
        wanted.reshape(rows, 2, 4, 9)[..., :7] = before.reshape(rows, 2, 4, 9)[list(sources), ..., :7]
        assert np.array_equal(buffers["cache.keys_0"], wanted)
        assert np.array_equal(buffers["cache.values_0"], wanted.swapaxes(1, 2))
        moved = list(_moves(sources))
        rings = sum(target < 0 for target, _ in moved)
        assert len(moved) - rings == sum(source != row for row, source in enumerate(sources))
        assert rings <= rows // 2


def test_the_cache_stays_where_it_is(llama):
    _, lm = llama
    places = [buffer.data_ptr() for buffer in lm.buffers.values()]
    lm.generate(prompt(2, 9), max_new_tokens=9, num_beams=4)
    assert places == [buffer.data_ptr() for buffer in lm.buffers.values()]


@pytest.mark.parametrize(
    "settings",
    [
        {"num_beams": 2},
        {"num_beams": 4, "num_return_sequences": 2, "temperature": 0.7},
        {"num_beams": 3, "eos_token_id": [9, 11], "top_p": 0.6, "top_k": 0},
        {"num_beams": 3, "min_p": 0.2, "length_penalty": 0.5},
        {"num_beams": 2, "typical_p": 0.4, "epsilon_cutoff": 0.02},
        {"num_beams": 2, "eta_cutoff": 0.3, "eos_token_id": 9},
    ],
    ids=str,
)
def test_beams_may_be_drawn(llama, settings):
    model, lm = llama
    ids = prompt(2, 7)
    settings = {"max_new_tokens": 10, "do_sample": True, **settings}
    found = []
    for seed in range(3):
        torch.manual_seed(seed)
        expected = eager(model, ids, **settings)
        torch.manual_seed(seed)
        found.append(lm.generate(ids, **settings))
        assert torch.equal(found[-1], expected)
    assert len({str(texts.tolist()) for texts in found}) == 3


def test_beams_of_arrays_are_drawn(llama):
    _, lm = llama
    ids = prompt(2, 7).numpy()
    found = []
    for seed in (1, 2, 1):
        pipeline.manual_seed(seed)
        found.append(lm.generate(ids, num_beams=3, do_sample=True, max_new_tokens=9))
    assert np.array_equal(found[0], found[2]) and not np.array_equal(found[0], found[1])


def test_places_are_drawn_as_they_are_likely():
    """The first of them as often as it is likely, and none twice."""
    likely = np.float32([[0.5, 0.3, 0.2, 0.0]]).repeat(20000, 0)
    drawn = NumpyDraw().several(likely, 3)
    assert (np.sort(drawn, -1) == [0, 1, 2]).all()
    shares = np.bincount(drawn[:, 0], minlength=4) / len(drawn)
    np.testing.assert_allclose(shares, likely[0], atol=0.02)
    second = np.bincount(drawn[drawn[:, 0] == 0, 1], minlength=4)
    np.testing.assert_allclose(second[1] / second.sum(), 0.6, atol=0.02)


def test_what_is_refused(llama):
    _, lm = llama
    ids = prompt(3, 5)
    with pytest.raises(ArgumentError, match="has 3 rows of 4 texts each, the model was compiled for batch=8"):
        lm.generate(ids, num_beams=4)
    with pytest.raises(OptionError, match="use generate, or num_beams=1"):
        lm.stream(ids, num_beams=2)
    with pytest.raises(OptionError, match="num_beams: 4 of the tokens that 2 beams go on with are drawn"):
        lm.generate(ids, num_beams=2, do_sample=True, top_k=1)
    with pytest.raises(OptionError, match="early_stopping"):
        lm.generate(ids, num_beams=2, early_stopping="soon")
    assert torch.equal(lm.generate(ids[:1], num_beams=2, max_new_tokens=0), ids[:1])
    assert Beams(Prompt.of(np.ones((1, 3), np.int64), None, 2, 2), 0, Settings(num_beams=2), NumpyDraw()).is_done
